import {
  createRecordReader,
  frameRecord,
  type MintStateRecord,
  mintStateCodec,
  TOPICS,
  toMintStateKey,
  toSignerKey,
} from '@playline/contracts';
import type { AtomicPublisher, LogReader } from '@playline/stream';
import type { Schemas } from '../await-schema.ts';
import {
  type ChangedLogSources,
  type ChangeWords,
  publishChange,
  readDecidedBounds,
  withChangedLog,
} from '../changed-log.ts';

/** A signing address on a chain: the chain by name, the address as `0x` and 40 lower-case hexadecimal digits. */
export interface SignerName {
  readonly chain: string;
  readonly signer: string;
}

/** The log of a signer, opened in the place of its minter. */
export interface SignerLog {
  /** The last state of each attempt, read after the minter was fenced. */
  readonly states: readonly MintStateRecord[];
  /** Resolves when all of them are in the log. @throws Error when a minter has taken over: none of them is */
  write(states: readonly MintStateRecord[]): Promise<void>;
}

/** Records of one transaction, which then stays far below ten seconds. */
const PIECE = 500;
const WORDS: ChangeWords = {
  takenOver: 'the minter took the signer over at this moment: run the same command again',
  again: 'the same command again does nothing twice',
};

/**
 * Works on the states of a signer in the place of its minter: opens the minter's transactional id, which fences it, and
 * reads the log only then. So no decision of the minter can come between the read and the change; afterwards the minter
 * takes over again on its own, and reads what was changed here.
 * @throws UnreachableError when brokers or registry do not answer; Error when records of the signer are in several
 * partitions, so that their order is unknown
 */
export function withSignerLog<T>(
  sources: ChangedLogSources,
  name: SignerName,
  work: (log: SignerLog) => Promise<T>,
): Promise<T> {
  const { schemas } = sources;
  const changed = { name: TOPICS.mintStates.name, schema: mintStateCodec.schema };
  return withChangedLog(sources, changed, async ({ log, topic, schemaId, openPublisher }) => {
    const reading = new StateReading({ log, topic, schemas, name });
    // Read most before fencing the minter: after a long read it would have taken over again.
    await reading.readOn();
    const publisher = await openPublisher(`minter.${name.chain}.${name.signer}`);
    await reading.readOn();
    const { states } = reading;
    // Asked for before the work begins, which may write elsewhere that it is done.
    const partition = states.length === 0 ? null : reading.home;
    return await work({
      states,
      write: async (given) => {
        if (partition === null) throw new Error(`${topic} has no records of the signer: nothing is written for it`);
        await write({ publisher, topic, schemaId, partition }, given);
      },
    });
  });
}

interface Target {
  readonly publisher: AtomicPublisher;
  readonly topic: string;
  readonly schemaId: number;
  readonly partition: number;
}

async function write({ publisher, topic, schemaId, partition }: Target, states: readonly MintStateRecord[]) {
  for (let from = 0; from < states.length; from += PIECE) {
    const records = states.slice(from, from + PIECE).map((state) => ({
      ...{ topic, partition, key: Buffer.from(toMintStateKey(state)), headers: {} },
      value: frameRecord(schemaId, mintStateCodec.encode(state)),
    }));
    await publishChange(publisher, records, WORDS);
  }
}

interface StateReadingParts {
  readonly log: LogReader;
  readonly topic: string;
  readonly schemas: Schemas;
  readonly name: SignerName;
}

/** States of one signer, read on as the topic grows. */
class StateReading {
  readonly #parts: StateReadingParts;
  readonly #decode;
  readonly #states = new Map<string, MintStateRecord>();
  readonly #partitions = new Set<number>();
  readonly #places = new Map<number, number>();

  constructor(parts: StateReadingParts) {
    this.#parts = parts;
    const { schemaOf } = parts.schemas;
    this.#decode = createRecordReader({ schemaOf, createReader: mintStateCodec.decoderOf });
  }

  get states(): readonly MintStateRecord[] {
    return [...this.#states.values()];
  }

  /** The partition of the signer's records. @throws Error when there are several: their order is unknown */
  get home(): number | null {
    const [home = null, ...others] = this.#partitions;
    if (others.length === 0) return home;
    throw new Error(`records of the signer stand in several partitions of ${this.#parts.topic}: nothing is written`);
  }

  /** Reads to the current end, after all open transactions have ended. */
  async readOn(): Promise<void> {
    const { log, topic, name } = this.#parts;
    const signer = `${name.chain}:${name.signer}`;
    for (const { partition, start, end } of await readDecidedBounds(log, topic)) {
      const from = Math.max(this.#places.get(partition) ?? start, start);
      for await (const { value } of log.read({ topic, partition, start: from, end, isWhole: true })) {
        if (value === null) continue;
        const found = await this.#decode(value);
        if (found.kind !== 'record') throw new Error(`a record of ${topic} cannot be read: ${found.reason}`);
        if (toSignerKey(found.record) !== signer) continue;
        this.#partitions.add(partition);
        this.#states.set(toMintStateKey(found.record), { ...found.record });
      }
      this.#places.set(partition, Math.max(from, end));
    }
  }
}
