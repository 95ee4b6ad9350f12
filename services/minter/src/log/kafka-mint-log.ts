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
import { SignerHoldings } from '../lane/signer-holdings.ts';
import type { LaneChange, LaneWriter, MintLog, SignerLane } from '../ports.ts';
import { PendingSigners } from './pending-signers.ts';
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
