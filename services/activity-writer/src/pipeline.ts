import {
  type ActivityRow,
  type ActivityStore,
  type ChainInsert,
  type ChainTable,
  findSupersessions,
  type LoggedVersion,
  partOfActivity,
  type Supersession,
  type TokenRow,
  toActivityRow,
  toTokenRow,
  type Watermarks,
} from '@playline/chain';
import {
  activityCodec,
  type ChainMetadataRecord,
  chainMetadataCodec,
  type MintRequestRecord,
  type MintStateRecord,
  mintRequestCodec,
  mintStateCodec,
  type RecordCodec,
  type SchemaSource,
  TOPICS,
  type Topic,
  tokenCodec,
} from '@playline/contracts';
import {
  METADATA_TABLES,
  type MetadataRow,
  type MintRow,
  type MintTable,
  type MintWriter,
  toMintState,
  toRequestedState,
} from '@playline/mints';
import type { Metrics } from '@playline/runtime';
import {
  type BlockBuilder,
  createStoreCalls,
  type DeadLetter,
  type Producer,
  RetryableFault,
  type StoreCalls,
  sendDeadLetters,
  storeFolding,
  storeOnce,
  toBlockToken,
} from '@playline/stream';
import { createReadRow } from './steps/read-row.ts';
import { createRefuseUpdates } from './steps/refuse-updates.ts';
import { TimedBlock, type TimedBlockOptions, type TimedRows } from './steps/timed-block.ts';
import { isTick } from './ticks.ts';

/** Increase this version when the same record produces a different row. */
const TRANSFORM_VERSION = 1;

export interface PipelineOptions {
  readonly store: ActivityStore;
  readonly mints: Pick<MintWriter, 'insert'>;
  readonly watermarks: Watermarks;
  readonly schemaOf: SchemaSource;
  readonly deadLetters: Producer;
  /** Returns the activities partition that a chain's key maps to. @throws RetryableFault */
  readonly partitionOf: (chain: string) => Promise<number>;
  readonly onRecordRead: (partition: number) => void;
  /** Called for every mint request and mint state that is read. */
  readonly onMint: () => void;
  readonly metrics: Metrics;
  readonly topicPrefix: string;
}

/**
 * activities: read -> assign times -> reject updates -> write three tables -> publish the watermark
 * tokens: read -> assign times -> write one table
 * mint requests, mint states and metadata: read -> assign times -> write their tables
 *
 * An idle activities partition receives ticks (ticks.ts), which pass through the first flow without becoming rows.
 */
export function createPipeline(options: PipelineOptions) {
  const { store, mints, watermarks, schemaOf, deadLetters, partitionOf, onMint, onRecordRead, metrics } = options;
  const calls = createStoreCalls(metrics);
  const refusedTotal = metrics.counter(
    'playline_activity_writer_refused_total',
    'Records that became dead letters while their block was written',
  );
  /** Publishes dead letters with the step `write`. The stream itself uses the step `transform`. */
  const publishDeadLetters = async (rejected: readonly DeadLetter[]): Promise<void> => {
    await toRetryable('dead letters were not acknowledged', sendDeadLetters(deadLetters, rejected, 'write'));
    refusedTotal.inc({}, rejected.length);
  };
  const writeActivities = createWriteActivities({ store, calls });
  const publishWatermark = createPublishWatermark(watermarks, metrics);
  const activities: TimedBlockOptions<ActivityRow> = {
    readRow: createReadRow({ codec: activityCodec, schemaOf, toRow: toActivityRow }),
    isTick,
    readWatermark: async (partition) =>
      (await toRetryable('the watermark could not be read', watermarks.read(partition))) ?? 0,
    storedOffsets: (rows) => calls.query('activities', () => store.storedOffsets(rows)),
    refuse: createRefuseUpdates({ store, calls, partitionOf }),
    publishDeadLetters,
    write: async (rows) => {
      await writeActivities(rows);
      await publishWatermark(rows.block.partition, rows.end);
    },
    onRecordRead,
  };
  const plain = createOpenPlain(schemaOf, publishDeadLetters);
  const writeTokens = createWriteReplacing<TokenRow, 'tokens'>({
    tablesOf: () => ['tokens'],
    insert: store.insert,
    calls,
  });
  const write = createWriteReplacing<Row, MintTable>({ tablesOf, insert: mints.insert, calls });
  const minting = { write, onRead: onMint };
  const blocks = new Map<string, (partition: number) => BlockBuilder>(
    (
      [
        [TOPICS.activities, (partition) => new TimedBlock(activities, partition)],
        [TOPICS.tokens, plain({ codec: tokenCodec, toRow: toTokenRow, write: writeTokens })],
        [TOPICS.mintRequests, plain({ codec: mintRequestCodec, toRow: toRequestRow, ...minting })],
        [TOPICS.mintStates, plain({ codec: mintStateCodec, toRow: toStateRow, ...minting })],
        [TOPICS.chainMetadata, plain({ codec: chainMetadataCodec, toRow: toMetadataRow, ...minting })],
      ] satisfies [Topic, (partition: number) => BlockBuilder][]
    ).map(([topic, open]) => [options.topicPrefix + topic.name, open]),
  );
  return {
    topics: [...blocks.keys()],
    sink: {
      transformVersion: TRANSFORM_VERSION,
      openBlock(topic: string, partition: number) {
        const open = blocks.get(topic);
        if (open === undefined) throw new Error(`topic ${topic} has no block builder`);
        return open(partition);
      },
    },
  };
}

interface PlainParts<T, R> {
  readonly codec: RecordCodec<T>;
  readonly toRow: (record: T, version: LoggedVersion) => R;
  readonly write: (rows: TimedRows<R>) => Promise<void>;
  readonly onRead?: () => void;
}

/** Opens blocks without a watermark. These blocks reject no rows, because no reader waits for their times. */
function createOpenPlain(schemaOf: SchemaSource, publishDeadLetters: TimedBlockOptions<never>['publishDeadLetters']) {
  return <T, R extends LoggedVersion>({ codec, toRow, write, onRead = () => {} }: PlainParts<T, R>) => {
    const block: TimedBlockOptions<R> = {
      readRow: createReadRow({ codec, schemaOf, toRow }),
      isTick: () => false,
      readWatermark: async () => 0,
      storedOffsets: async () => new Set(),
      refuse: async () => [],
      publishDeadLetters,
      onRecordRead: onRead,
      write,
    };
    return (partition: number) => new TimedBlock(block, partition);
  };
}

/** Converts every fault to a retryable fault. @throws RetryableFault */
function toRetryable<T>(message: string, work: Promise<T>): Promise<T> {
  return work.catch((cause: unknown) => {
    throw new RetryableFault(message, { cause });
  });
}

/**
 * Creates the step that publishes the time up to which a partition's rows are stored, in epoch microseconds.
 * @throws RetryableFault
 */
function createPublishWatermark(watermarks: Pick<Watermarks, 'publish'>, metrics: Metrics) {
  const watermark = metrics.gauge(
    'playline_activity_writer_watermark_timestamp_seconds',
    'Time up to which a partition is complete, in seconds since the epoch',
    ['partition'],
  );
  return async (partition: number, us: number): Promise<void> => {
    await toRetryable('the watermark could not be published', watermarks.publish(partition, us));
    watermark.set({ partition: String(partition) }, us / 1_000_000);
  };
}

/**
 * Creates the step that stores a block's activities exactly once: first the versions (`activities`), then the versions
 * per activity (`activity_ids`), then the feeds with supersessions (`activity_feeds`). All rows are stored after the
 * rows of earlier blocks, and before the watermark covers them.
 */
function createWriteActivities({ store, calls }: { store: ActivityStore; calls: StoreCalls }) {
  /**
   * Adds rows that only an earlier attempt wrote, because their records are lost, unreadable, or now have other times.
   * These rows are in `activities` and therefore count as versions, but may be missing from the other tables.
   */
  const addEarlier = async ({ rows, block, after, end }: TimedRows<ActivityRow>): Promise<readonly ActivityRow[]> => {
    const earlier = await calls.query('activities', () => store.rowsBetween(block.partition, after, end));
    const all = new Map([...earlier, ...rows].map((row) => [`${row.chain} ${row.updatedAt} ${row.id}`, row]));
    return [...all.values()].toSorted((a, b) => a.updatedAt - b.updatedAt);
  };
  return async (block: TimedRows<ActivityRow>): Promise<void> => {
    const { rows, block: name, notes, signal } = block;
    const { start, end, triedBefore = false } = name;
    const createInsert =
      (table: ChainTable, tableRows: readonly (ActivityRow | Supersession)[]) =>
      (selected: readonly number[], token: string) => {
        const sent = { table, rows: selected.map((row) => tableRows[row]!), token, signal } as ChainInsert;
        return calls.insert(table, selected.length, () => store.insert(sent));
      };
    const access = {
      count: rows.length,
      offsetOf: (row: number) => rows[row]!.offset,
      partOf: (row: number) => partOfActivity(rows[row]!),
      insert: createInsert('activities', rows),
      storedOffsets: (selected: readonly number[]) =>
        calls.query('activities', () => store.storedOffsets(selected.map((row) => rows[row]!))),
    };
    const tokenOf = (from: number, to: number) => toBlockToken(name, 'activities', from, to);
    if (rows.length > 0) await storeOnce({ start, end, triedBefore, notes, tokenOf, rows: access });
    const storeReplacing = (
      table: 'activity_ids' | 'activity_feeds',
      tableRows: readonly (ActivityRow | Supersession)[],
    ) => {
      const token = toBlockToken(name, table, start, end);
      return storeFolding({
        count: tableRows.length,
        token,
        triedBefore,
        notes,
        insert: createInsert(table, tableRows),
      });
    };
    const all = block.isRecovered ? await addEarlier(block) : rows;
    await storeReplacing('activity_ids', all);
    const supersessions = await findSupersessions(all, (...selected) =>
      calls.query('activity_ids', () => store.lastBefore(...selected)),
    );
    await storeReplacing('activity_feeds', [...all, ...supersessions]);
  };
}

type Row = MintRow | MetadataRow;

function tablesOf(row: Row): readonly MintTable[] {
  if ('kind' in row) return [METADATA_TABLES[row.kind]];
  // Only the request record contains metadata. Without a metadata row, no metadata was requested.
  return row.revision === 0 ? ['mint_requests', 'mint_metadata'] : ['mint_requests'];
}

/** Latest time that a column with milliseconds can store: the end of 2299. */
const TIME_MAX_MS = Date.UTC(2299, 11, 31);

/** @throws RangeError that names the member but not its value */
function assertTime(name: string, epochMs: number): void {
  if (!(epochMs >= 0 && epochMs <= TIME_MAX_MS)) throw new RangeError(`${name} is not between 1970 and 2299`);
}

function assertCount(name: string, count: number | null): void {
  if (count !== null && !(Number.isSafeInteger(count) && count >= 0))
    throw new RangeError(`${name} is not a non-negative integer`);
}

/** @throws RangeError that names the invalid member */
function toRequestRow(record: MintRequestRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  return { ...toRequestedState(record), metadata: record.metadata, ...version };
}

/** @throws RangeError that names the invalid member */
function toStateRow(record: MintStateRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  assertTime('changedAt', record.changedAt);
  assertCount('nonce', record.nonce);
  // Revision 0 is the request itself.
  if (!Number.isSafeInteger(record.revision) || record.revision < 1) throw new RangeError('revision is below 1');
  return { ...toMintState(record), metadata: null, ...version };
}

/** @throws RangeError that names the invalid member */
function toMetadataRow(record: ChainMetadataRecord, version: LoggedVersion): MetadataRow {
  assertTime('requestedAt', record.requestedAt);
  const { contractAddress, ...rest } = record;
  return { ...rest, ...version, contractAddress: `0x${contractAddress.toString('hex')}` };
}

interface WriteReplacingParts<R, T extends string> {
  /** Returns all tables that store data from the row. */
  readonly tablesOf: (row: R) => readonly T[];
  /** Inserts rows into one table with a token for exactly these rows. */
  readonly insert: (block: { table: T; rows: readonly R[]; token: string; signal: AbortSignal }) => Promise<void>;
  readonly calls: StoreCalls;
}

/**
 * Creates the step that stores a block's rows in deduplicating tables. For each key, the row with the highest revision
 * or the latest time is current.
 */
function createWriteReplacing<R, T extends string>({ tablesOf, insert, calls }: WriteReplacingParts<R, T>) {
  return async ({ rows, block, notes, signal }: TimedRows<R>): Promise<void> => {
    const pairs = rows.flatMap((row) => tablesOf(row).map((table) => ({ row, table })));
    for (const [table, tablePairs] of Map.groupBy(pairs, (pair) => pair.table)) {
      const rowsOfTable = tablePairs.map(({ row }) => row);
      const insertSelected = (selected: readonly number[], token: string) =>
        calls.insert(table, selected.length, () =>
          insert({ table, rows: selected.map((row) => rowsOfTable[row]!), token, signal }),
        );
      const token = toBlockToken(block, table, block.start, block.end);
      const triedBefore = block.triedBefore ?? false;
      await storeFolding({ count: rowsOfTable.length, token, triedBefore, notes, insert: insertSelected });
    }
  };
}
