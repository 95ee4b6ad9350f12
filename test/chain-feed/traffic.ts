import { setTimeout as delay } from 'node:timers/promises';
import type { ActivityRecord } from '@playline/contracts';
import type { AtomicPublisher, OutgoingRecord } from '@playline/stream';
import { openAtomicPublisher } from '@playline/stream/kafka';
import { createRandom, type Random } from '@playline/testkit/random';
import { activityOf, detailsOf } from '../../services/activity-writer/src/test/records.ts';
import type { FeedChain, FeedRig } from './feed-rig.ts';

const SOURCES = 3;
const TYPES = ['mint', 'burn', 'transfer'] as const;
const CONTRACTS = 4;
const INDEXED_AT_US = 1_700_000_000_000_000;
const INDEXED_STEP_US = 1_000_003;
const BURST_MAX = 25;
const PAUSE_MAX_MS = 600;
/** Maximum consumer lag, so that a run does not end with minutes of backlog. */
const LAG_MAX = 150;
const POLL_MS = 200;
const TRANSACTION_MAX_MS = 1_200;

/** The immutable fields of each activity, by which readers filter. */
export const typeOf = (number: number): (typeof TYPES)[number] => TYPES[number % TYPES.length]!;
export const contractOf = (number: number): number => 1 + (number % CONTRACTS);
export const indexedAtOf = (number: number): number => INDEXED_AT_US + number * INDEXED_STEP_US;

/** Versions that the sources have published. Every record contains its version number. */
export interface Journal {
  readonly acknowledged: Set<number>;
  readonly aborted: Set<number>;
  /** Versions that must be rejected, unless they are the first version of their activity. */
  readonly invalid: Set<number>;
  readonly transactions: { committed: number; aborted: number };
}

export interface Traffic {
  readonly journal: Journal;
  readonly numbers: number;
  stop(): Promise<void>;
}

type Outgoing = OutgoingRecord & { headers: Record<string, string> };

export function openTraffic(rig: FeedRig, seed: number): Traffic {
  const journal: Journal = {
    acknowledged: new Set(),
    aborted: new Set(),
    invalid: new Set(),
    transactions: { committed: 0, aborted: 0 },
  };
  const records = new RecordFactory(rig, journal);
  let [isOver, isFull] = [false, false];
  const sources = Array.from({ length: SOURCES }, async (_, index) => {
    const source = new Source(rig, records, createRandom(seed * 1_000 + index));
    while (!isOver) {
      while (isFull && !isOver) await delay(POLL_MS);
      await source.step();
    }
    await source.close();
  });
  const poll = async () => {
    while (!isOver) {
      isFull = (await rig.lag()) > LAG_MAX;
      await delay(POLL_MS);
    }
  };
  const all = Promise.all([...sources, poll()]);
  // `stop` reports an error. Until then, the error must not count as an unhandled rejection.
  all.catch(() => {});
  return {
    journal,
    get numbers() {
      return records.numbers;
    },
    stop: async () => {
      isOver = true;
      await all;
    },
  };
}

class RecordFactory {
  readonly journal: Journal;
  readonly #rig: FeedRig;
  readonly #known = new Map<string, number[]>();
  numbers = 0;
  #versions = 0;

  constructor(rig: FeedRig, journal: Journal) {
    this.#rig = rig;
    this.journal = journal;
  }

  /** Creates a new activity, or an update to an activity that any source has published, committed or not. */
  record(random: Random, chain: FeedChain): { version: number; outgoing: Outgoing } {
    const knownNumbers = this.#known.get(chain.name) ?? [];
    this.#known.set(chain.name, knownNumbers);
    const isNew = knownNumbers.length === 0 || random.chance(0.4);
    const number = isNew ? ++this.numbers : random.pick(knownNumbers);
    if (isNew) knownNumbers.push(number);
    const version = ++this.#versions;
    const written = { chain: chain.name, version, type: typeOf(number), contract: contractOf(number) };
    const isInvalid = !isNew && random.chance(0.06);
    if (isInvalid) this.journal.invalid.add(version);
    return {
      version,
      outgoing: isInvalid ? this.#toInvalid(random, number, written) : this.#rig.toOutgoing(recordOf(number, written)),
    };
  }

  /** Creates a record that must be rejected: it changes an immutable field, or is in another chain's partition. */
  #toInvalid(random: Random, number: number, written: WrittenVersion): Outgoing {
    const kind = random.integer(0, 3);
    const record = recordOf(number, written);
    if (kind === 0) return this.#rig.toOutgoing(recordOf(number, { ...written, type: typeOf(number + 1) }));
    if (kind === 1) return this.#rig.toOutgoing({ ...record, indexedAt: record.indexedAt + 1 });
    if (kind === 2) return this.#rig.toOutgoing(recordOf(number, { ...written, contract: contractOf(number + 1) }));
    const correct = this.#rig.chains.find(({ name }) => name === record.chain)!.partition;
    const others = [...new Set(this.#rig.chains.map(({ partition }) => partition))].filter((each) => each !== correct);
    return { ...this.#rig.toOutgoing(record), partition: random.pick(others) };
  }
}

const addressOf = (contract: number): Buffer => activityOf(contract).contractAddress;

interface WrittenVersion {
  readonly chain: string;
  readonly version: number;
  readonly type: (typeof TYPES)[number];
  readonly contract: number;
}

function recordOf(number: number, { chain, version, type, contract }: WrittenVersion): ActivityRecord {
  return activityOf(number, {
    chain,
    type,
    contractAddress: addressOf(contract),
    indexedAt: indexedAtOf(number),
    ...(number % 5 === 0 ? { blockchainMetadata: null } : {}),
    details: detailsOf(contract, String(version), type),
  });
}

class Aborted extends Error {
  override readonly name = 'Aborted';
}

/** Publishes activities in bursts, so that blocks can end between records with the same millisecond. */
class Source {
  readonly #rig: FeedRig;
  readonly #records: RecordFactory;
  readonly #random: Random;
  readonly #name: string;
  #publisher: AtomicPublisher | null = null;
  #beforeCommit = async () => {};

  constructor(rig: FeedRig, records: RecordFactory, random: Random) {
    this.#rig = rig;
    this.#records = records;
    this.#random = random;
    this.#name = `${rig.activities}-${random.hex(12)}`;
  }

  async step(): Promise<void> {
    const random = this.#random;
    const isAtomic = random.chance(0.12);
    const chains = isAtomic
      ? random.shuffle(this.#rig.chains).slice(0, random.integer(1, 2))
      : [random.pick(this.#rig.chains)];
    const size = random.chance(0.3) ? random.integer(1, BURST_MAX) : random.integer(1, 4);
    const burst = Array.from({ length: size }, () => this.#records.record(random, random.pick(chains)));
    if (isAtomic) await this.#publishAtomically(burst);
    else {
      await this.#rig.log.publish(burst.map(({ outgoing }) => outgoing));
      for (const { version } of burst) this.#records.journal.acknowledged.add(version);
    }
    await delay(random.integer(0, PAUSE_MAX_MS));
  }

  /** Publishes a burst in a transaction that stays open for a while, and may be aborted by opening a new publisher. */
  async #publishAtomically(burst: readonly { version: number; outgoing: Outgoing }[]): Promise<void> {
    const [openMs, isCommitted] = [this.#random.integer(0, TRANSACTION_MAX_MS), this.#random.chance(0.6)];
    this.#beforeCommit = async () => {
      await delay(openMs);
      if (!isCommitted) throw new Aborted();
    };
    const { journal } = this.#records;
    this.#publisher ??= await this.#open();
    try {
      await this.#publisher.publish(burst.map(({ outgoing }) => outgoing));
      for (const { version } of burst) journal.acknowledged.add(version);
      journal.transactions.committed++;
    } catch (fault) {
      if (!(fault instanceof Aborted)) throw fault;
      await this.#publisher.close();
      this.#publisher = await this.#open();
      for (const { version } of burst) journal.aborted.add(version);
      journal.transactions.aborted++;
    }
  }

  #open(): Promise<AtomicPublisher> {
    const beforeCommit = () => this.#beforeCommit();
    return openAtomicPublisher({ brokers: this.#rig.brokers, name: this.#name, beforeCommit });
  }

  async close(): Promise<void> {
    await this.#publisher?.close();
  }
}
