import {
  type MintStateRecord,
  type MintTransactionRecord,
  mintStateCodec,
  mintTransactionCodec,
  type SchemaSource,
  toMintStateKey,
  toMintTransactionKey,
  toSignerKey,
} from '@playline/contracts';
import { type AtomicPublisher, type LogReader, type PlacedRecord, toPartition } from '@playline/stream';
import { DigestTable } from '../lane/digest-table.ts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { type ReferenceName, toReferenceKey } from '../lane/mint-ledger.ts';
import type { LaneChange, LaneWriter, MintLog, OtherSigners, SignerLane } from '../ports.ts';
import { createTopicLog, type Kept, type MintTopic, type TopicLog } from './topic-log.ts';

export interface MintLogParts {
  readonly reader: LogReader;
  /** Opens the publisher with this transactional id, and fences any earlier one. */
  openPublisher(name: string): Promise<AtomicPublisher>;
  readonly states: MintTopic;
  readonly transactions: MintTopic;
  readonly schemaOf: SchemaSource;
}

interface TopicLogs {
  readonly states: TopicLog<MintStateRecord>;
  readonly transactions: TopicLog<MintTransactionRecord>;
}

/** The partitions that a writer writes to as long as it lives. */
type Homes = Readonly<Record<keyof TopicLogs, number>>;

/** The logs of states and transactions on Kafka brokers. */
export function createMintLog(parts: MintLogParts): MintLog {
  const [holdings, pending] = [new SignerHoldings(), new PendingSigners()];
  const states = createTopicLog({
    ...parts,
    topic: parts.states,
    codec: mintStateCodec,
    onRecord: (state) => {
      holdings.apply(state);
      pending.apply(state);
    },
  });
  const transactions = createTopicLog({ ...parts, topic: parts.transactions, codec: mintTransactionCodec });
  return {
    openWriter: async (lane) => {
      // Guarantee: an earlier publisher of this id can write nothing after the ends that are read from here on.
      const publisher = await parts.openPublisher(`minter.${lane.chain}.0x${lane.signer.toString('hex')}`);
      try {
        return await toWriter(publisher, { states, transactions }, lane);
      } catch (fault) {
        await publisher.close();
        throw fault;
      }
    },
    lanesOf: async ({ partition, partitions }) => {
      await states.follow({ isWhole: true });
      return pending.lanes.filter((lane) => toPartition(Buffer.from(toSignerKey(lane)), partitions) === partition);
    },
    others: {
      look: async (options) => {
        await states.follow(options);
      },
      hold: (lane, request) => holdings.hold(lane, request),
      holdsItself: (lane, request) => holdings.holdsItself(lane, request),
      has: (lane, attempt) => holdings.has(lane, attempt),
    },
  };
}

/** Reads all records of a signer from the partition that they are in. New records go to the same partition. */
async function toWriter(
  publisher: AtomicPublisher,
  { states, transactions }: TopicLogs,
  lane: SignerLane,
): Promise<LaneWriter> {
  const ofStates = states.homeOf(lane, await states.follow({ isWhole: true }));
  const ofTransactions = transactions.homeOf(lane, await transactions.follow({ isWhole: true }));
  const homes: Homes = { states: ofStates.partition, transactions: ofTransactions.partition };
  return {
    readTransactions: () => readLast(transactions.read(lane, ofTransactions)),
    readStates: async function* () {
      const home = (await states.follow({ isWhole: true })).find(({ partition }) => partition === homes.states);
      if (home === undefined) throw new Error(`${states.name} has no partition ${homes.states} any more`);
      for await (const { record } of states.read(lane, home)) if (record !== null) yield record;
    },
    append: async (change) => publisher.publish(await toRecords({ states, transactions }, homes, change)),
    close: () => publisher.close(),
  };
}

/**
 * The last record of each key, in the order of the log. Compaction may not have removed the earlier records yet, so
 * they are dropped here, also those before a tombstone.
 */
async function readLast<R>(records: AsyncIterable<Kept<R>>): Promise<R[]> {
  const last = new Map<string, R>();
  for await (const { key, record } of records) {
    last.delete(key);
    if (record !== null) last.set(key, record);
  }
  return [...last.values()];
}

async function toRecords(
  { states, transactions }: TopicLogs,
  homes: Homes,
  change: LaneChange,
): Promise<PlacedRecord[]> {
  const placed: PlacedRecord[] = [];
  for (const state of change.states) placed.push(await states.toPlaced(homes.states, toMintStateKey(state), state));
  for (const record of change.transactions)
    placed.push(await transactions.toPlaced(homes.transactions, toMintTransactionKey(record), record));
  for (const record of change.forgotten)
    placed.push(await transactions.toPlaced(homes.transactions, toMintTransactionKey(record), null));
  return placed;
}

/** Signers with pending assets, built from states as they are read. Stores keys only. */
class PendingSigners {
  readonly #pending = new Map<string, { readonly lane: SignerLane; readonly states: Set<string> }>();

  apply(state: MintStateRecord): void {
    const key = toSignerKey(state);
    if (state.status === 'pending') {
      const found = this.#pending.get(key);
      // A copy: the record's Buffer may be a slice of everything that was read with it.
      const own = found ?? { lane: { chain: state.chain, signer: Buffer.from(state.signer) }, states: new Set() };
      own.states.add(toMintStateKey(state));
      this.#pending.set(key, own);
      return;
    }
    const found = this.#pending.get(key);
    found?.states.delete(toMintStateKey(state));
    if (found?.states.size === 0) this.#pending.delete(key);
  }

  /** In the order in which the signers were first seen. */
  get lanes(): readonly SignerLane[] {
    return [...this.#pending.values()].map(({ lane }) => lane);
  }
}

/** Which signers hold which reference ids, as states are read on. */
export class SignerHoldings implements Pick<OtherSigners, 'hold' | 'holdsItself' | 'has'> {
  /** By chain and reference id of pending assets: the signer and the attempt, one after the other. */
  readonly #pending = new Map<string, Map<string, string>>();
  /** By chain and reference id of minted assets: the number of the signer. */
  readonly #minted = new DigestTable();
  readonly #numbers = new Map<string, number>();

  apply(state: MintStateRecord): void {
    const key = `${state.chain}:${toReferenceKey(state)}`;
    const [signer, attempt] = [state.signer.toString('hex'), toAttemptKey(state)];
    const pending = this.#pending.get(key) ?? new Map<string, string>();
    if (state.status === 'pending') pending.set(signer, attempt);
    else if (pending.get(signer) === attempt) pending.delete(signer);
    if (state.status === 'succeeded') this.#minted.set(key, this.#numberOf(signer));
    if (pending.size === 0) this.#pending.delete(key);
    else this.#pending.set(key, pending);
  }

  #numberOf(signer: string): number {
    const number = this.#numbers.get(signer) ?? this.#numbers.size + 1;
    this.#numbers.set(signer, number);
    return number;
  }

  hold({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    const key = `${chain}:${toReferenceKey(request)}`;
    const own = signer.toString('hex');
    const minted = this.#minted.get(key);
    if (minted !== 0 && minted !== this.#numbers.get(own)) return true;
    const pending = this.#pending.get(key);
    return pending !== undefined && (pending.size > 1 || !pending.has(own));
  }

  holdsItself({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    const key = `${chain}:${toReferenceKey(request)}`;
    const own = signer.toString('hex');
    const minted = this.#minted.get(key);
    return (minted !== 0 && minted === this.#numbers.get(own)) || this.#pending.get(key)?.has(own) === true;
  }

  has({ chain, signer }: SignerLane, attempt: ReferenceName & Pick<MintStateRecord, 'attemptId'>): boolean {
    const pending = this.#pending.get(`${chain}:${toReferenceKey(attempt)}`);
    return pending?.get(signer.toString('hex')) === toAttemptKey(attempt);
  }
}
