import {
  createRecordReader,
  frameRecord,
  type MintStateRecord,
  mintStateCodec,
  TOPICS,
  toMintStateKey,
  toSignerKey,
} from '@playline/contracts';
import { type AtomicPublisher, isTakenOver, type LogReader } from '@playline/stream';
import type { Schemas } from '../await-schema.ts';
import { type ChangedLogSources, readDecidedBounds, withChangedLog } from '../changed-log.ts';
import { unconfirmed } from '../command.ts';

/** A signing address on a chain: the chain by name, the address as `0x` and 40 lower-case hexadecimal digits. */
export interface SignerName {
  readonly chain: string;
  readonly signer: string;
}

/** A change of a signer's states. */
export interface SignerChange {
  /** Decides by the states of all pending assets. Called again after a minter has taken over. */
  readonly decide: (states: readonly MintStateRecord[]) => readonly MintStateRecord[];
  /** Called with what was decided before it is written, with each state once. */
  readonly before: (states: readonly MintStateRecord[]) => Promise<void>;
}

/** The result of a change. */
export interface ChangedStates {
  readonly written: readonly MintStateRecord[];
  /** The pending assets when the last change was decided. */
  readonly states: readonly MintStateRecord[];
}

/** Records of one transaction, which then stays far below ten seconds. */
const PIECE = 500;
/**
 * A minter that was fenced waits ten seconds before it takes over again, which is enough for tens of pieces. Each
 * attempt writes at least what it can until then, and the next one continues.
 */
const ATTEMPTS = 5;
const AGAIN = 'the same command again does nothing twice';

/**
 * Changes the states of a signer in the place of its minter: opens the minter's transactional id, which fences it, and
 * reads the log only then. So no decision of the minter can come between the read and the change; afterwards the minter
 * takes over again on its own, and reads what was changed here. If it does so before all is written, it is fenced again.
 * @throws UnreachableError when brokers or registry do not answer; Error when records of the signer are in several
 * partitions, so that their order is unknown, or a minter takes over all the time
 */
export function changeSignerLog(
  sources: ChangedLogSources,
  name: SignerName,
  change: SignerChange,
): Promise<ChangedStates> {
  const { schemas } = sources;
  const changed = { name: TOPICS.mintStates.name, schema: mintStateCodec.schema };
  return withChangedLog(sources, changed, async ({ log, topic, schemaId, openPublisher }) => {
    const reading = new StateReading({ log, topic, schemas, name });
    // Read most before fencing the minter: after a long read it would have taken over again.
    await reading.readOn();
    const written: MintStateRecord[] = [];
    const announced = new Set<string>();
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const publisher = await openPublisher(`minter.${name.chain}.${name.signer}`);
      await reading.readOn();
      const { states } = reading;
      const wanted = change.decide(states);
      const { home } = reading;
      if (wanted.length === 0 || home === null) return { written, states };
      const added = wanted.filter((state) => !announced.has(toMintStateKey(state)));
      await change.before(added);
      for (const state of added) announced.add(toMintStateKey(state));
      if (await write({ publisher, topic, schemaId, partition: home }, wanted, written)) return { written, states };
    }
    throw new Error(`A minter of the signer took over ${ATTEMPTS} times. Stop it and run the command again: ${AGAIN}.`);
  });
}

interface Target {
  readonly publisher: AtomicPublisher;
  readonly topic: string;
  readonly schemaId: number;
  readonly partition: number;
}

/** @param written gets what was written. @returns false when a minter has taken over: the rest was not written */
async function write(
  { publisher, topic, schemaId, partition }: Target,
  states: readonly MintStateRecord[],
  written: MintStateRecord[],
): Promise<boolean> {
  for (let from = 0; from < states.length; from += PIECE) {
    const piece = states.slice(from, from + PIECE);
    const records = piece.map((state) => ({
      topic,
      partition,
      key: Buffer.from(toMintStateKey(state)),
      headers: {},
      value: frameRecord(schemaId, mintStateCodec.encode(state)),
    }));
    try {
      await publisher.publish(records);
    } catch (fault) {
      if (isTakenOver(fault)) return false;
      unconfirmed('it', AGAIN)(fault instanceof Error ? fault : new Error(String(fault)));
    }
    for (const state of piece) written.push(state);
  }
  return true;
}

interface StateReadingParts {
  readonly log: LogReader;
  readonly topic: string;
  readonly schemas: Schemas;
  readonly name: SignerName;
}

/** States of the pending assets of one signer, read on as the topic grows. Millions of others may have been settled. */
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
        const key = toMintStateKey(found.record);
        if (found.record.status === 'pending') this.#states.set(key, { ...found.record });
        else this.#states.delete(key);
      }
      this.#places.set(partition, Math.max(from, end));
    }
  }
}
