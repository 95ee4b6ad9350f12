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
  type BlockSink,
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
import { isTick } from './steps/send-tick.ts';
import { TimedBlock, type TimedBlockOptions, type TimedRows } from './steps/timed-block.ts';

/** Increase it when the same record gives other rows. */
const TRANSFORM_VERSION = 1;

export interface PipelineOptions {
  readonly store: ActivityStore;
  readonly mints: Pick<MintWriter, 'insert'>;
  readonly watermarks: Watermarks;
  readonly schemaOf: SchemaSource;
  readonly deadLetters: Producer;
  /** The partition of the topic of activities that a chain's key gives. @throws RetryableFault */
  readonly partitionOf: (chain: string) => Promise<number>;
  /** Called for every record of activities that is read, except ticks. */
  readonly onRecordRead: (partition: number) => void;
  /** Called for every mint request, and every state of one, that is read. */
  readonly onMint: () => void;
  readonly metrics: Metrics;
  readonly topicPrefix: string;
}

/** The whole flow: which topics are read and what becomes of their records. */
export interface Pipeline {
  readonly topics: readonly string[];
  readonly sink: BlockSink;
}

/**
 * activities -> read -> assign times -> refuse updates -> write activities, activity_ids, activity_feeds -> publish the watermark
 * tokens     -> read -> assign times                   -> write tokens
 * mint requests, their states, metadata -> read -> assign times -> write mint_requests, mint_metadata, collections, nft_metadata, metadata_stacks
 * An idle partition of activities gets ticks (ticks.ts), which take part in the first line as records without a row.
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { store, watermarks, schemaOf, deadLetters, partitionOf, metrics, topicPrefix } = options;
  const calls = createStoreCalls(metrics);
  const writerMetrics = createWriterMetrics(metrics);
  const publishLetters = createPublishDeadLetters(deadLetters, writerMetrics.countRefused);
  const writeActivities = createWriteActivities({ store, calls });
  const publishWatermark = createPublishWatermark(watermarks, writerMetrics.setWatermark);
  const activities: TimedBlockOptions<ActivityRow> = {
    readRow: createReadRow({ codec: activityCodec, schemaOf, toRow: toActivityRow }),
    isTick,
    readWatermark: createReadWatermark(watermarks),
    storedOffsets: (rows) => calls.query('activities', () => store.storedOffsets(rows)),
    refuse: createRefuseUpdates({ store, calls, partitionOf }),
    publishDeadLetters: publishLetters,
    write: async (rows) => {
      await writeActivities(rows);
      await publishWatermark(rows.block.partition, rows.end);
    },
    onRecordRead: options.onRecordRead,
  };
  const tokens: TimedBlockOptions<TokenRow> = {
    ...createPlainBlocks(publishLetters),
    readRow: createReadRow({ codec: tokenCodec, schemaOf, toRow: toTokenRow }),
    write: createWriteFolding({ tablesOf: () => ['tokens'] as const, insert: (rows) => store.insert(rows), calls }),
  };
  const plain = { ...createPlainBlocks(publishLetters), onTaken: options.onMint };
  const minting = createMintingBlocks({ mints: options.mints, calls, schemaOf }, plain);
  const blocks = new Map<string, (partition: number) => BlockBuilder>([
    [topicPrefix + TOPICS.activities.name, (partition) => new TimedBlock(activities, partition)],
    [topicPrefix + TOPICS.tokens.name, (partition) => new TimedBlock(tokens, partition)],
    ...minting.map(({ topic, open }) => [topicPrefix + topic, open] as const),
  ]);
  return {
    topics: [...blocks.keys()],
    sink: {
      transformVersion: TRANSFORM_VERSION,
      openBlock(topic, partition) {
        const open = blocks.get(topic);
        if (open === undefined) throw new Error(`nothing reads ${topic}`);
        return open(partition);
      },
    },
  };
}

/** Metrics of this service only; the stream counts records, blocks, lag and calls of the store. */
function createWriterMetrics(metrics: Metrics) {
  const refusedTotal = metrics.counter(
    'playline_activity_writer_refused_total',
    'Records that became dead letters when their block was written',
  );
  const watermark = metrics.gauge(
    'playline_activity_writer_watermark_timestamp_seconds',
    'Up to where a partition is known, seconds since the epoch',
    ['partition'],
  );
  return {
    countRefused: (count: number) => refusedTotal.inc({}, count),
    setWatermark: (partition: number, us: number) => watermark.set({ partition: String(partition) }, us / 1_000_000),
  };
}

/**
 * Creates the step that publishes dead letters of records that turned out not to be rows when their block was written.
 * They name the step `write`; those of the stream itself name `transform`.
 * @param onRefused called with their number once they are acknowledged
 */
function createPublishDeadLetters(producer: Producer, onRefused: (count: number) => void) {
  return async (letters: readonly DeadLetter[]): Promise<void> => {
    try {
      await sendDeadLetters(producer, letters, 'write');
    } catch (cause) {
      throw new RetryableFault('dead letters are not acknowledged', { cause });
    }
    onRefused(letters.length);
  };
}

/**
 * Creates the step that publishes the time, in epoch microseconds, up to which every row of a partition is stored.
 * @param onPublished called with each watermark that Redis has stored
 * @throws RetryableFault
 */
function createPublishWatermark(
  watermarks: Pick<Watermarks, 'publish'>,
  onPublished: (partition: number, us: number) => void,
) {
  return async (partition: number, us: number): Promise<void> => {
    try {
      await watermarks.publish(partition, us);
    } catch (cause) {
      throw new RetryableFault('the watermark is not published', { cause });
    }
    onPublished(partition, us);
  };
}

/** Creates the function that reads the watermark of a partition; 0 when none is published. @throws RetryableFault */
function createReadWatermark(watermarks: Pick<Watermarks, 'read'>) {
  return async (partition: number): Promise<number> => {
    try {
      return (await watermarks.read(partition)) ?? 0;
    } catch (cause) {
      throw new RetryableFault('the watermark is not read', { cause });
    }
  };
}

/**
 * Creates the step that stores a block's activities once. First the versions (`activities`), then the list of versions
 * of each activity (`activity_ids`), then what readers get, with marks of the superseded versions (`activity_feeds`).
 * All of it is stored before the watermark covers it, and after all earlier blocks.
 */
function createWriteActivities({ store, calls }: { store: ActivityStore; calls: StoreCalls }) {
  /**
   * The rows, and those of an earlier attempt that this one would not write, because their records are gone, cannot be
   * read any more or have other times now. Those are in `activities`, so they count as versions; in the other tables
   * they may be missing.
   */
  const withStanding = async ({ rows, block, after, end }: TimedRows<ActivityRow>): Promise<readonly ActivityRow[]> => {
    const standing = await calls.query('activities', () => store.rowsBetween(block.partition, after, end));
    const all = new Map([...standing, ...rows].map((row) => [`${row.chain} ${row.updatedAt} ${row.id}`, row]));
    return [...all.values()].toSorted((a, b) => a.updatedAt - b.updatedAt);
  };
  return async (given: TimedRows<ActivityRow>): Promise<void> => {
    const { rows, block, notes, signal } = given;
    const { start, end, triedBefore = false } = block;
    const createInsert =
      (table: ChainTable, of: readonly (ActivityRow | Supersession)[]) => (asked: readonly number[], token: string) => {
        const sent = { table, rows: asked.map((row) => of[row]!), token, signal } as ChainInsert;
        return calls.insert(table, asked.length, () => store.insert(sent));
      };
    if (rows.length > 0)
      await storeOnce({
        start,
        end,
        triedBefore,
        notes,
        tokenOf: (from, to) => toBlockToken(block, 'activities', from, to),
        rows: {
          count: rows.length,
          offsetOf: (row) => rows[row]!.offset,
          partOf: (row) => partOfActivity(rows[row]!),
          insert: createInsert('activities', rows),
          storedOffsets: (asked) =>
            calls.query('activities', () => store.storedOffsets(asked.map((row) => rows[row]!))),
        },
      });
    const storeFolded = (table: 'activity_ids' | 'activity_feeds', of: readonly (ActivityRow | Supersession)[]) =>
      storeFolding({
        count: of.length,
        token: toBlockToken(block, table, start, end),
        triedBefore,
        notes,
        insert: createInsert(table, of),
      });
    const all = given.isRecovered ? await withStanding(given) : rows;
    await storeFolded('activity_ids', all);
    const supersessions = await findSupersessions(all, (...asked) =>
      calls.query('activity_ids', () => store.lastBefore(...asked)),
    );
    await storeFolded('activity_feeds', [...all, ...supersessions]);
  };
}

/** The options of blocks whose times no reader waits for, whatever their rows are. */
interface PlainBlocks
  extends Pick<
    TimedBlockOptions<unknown>,
    'isTick' | 'readWatermark' | 'storedOffsets' | 'publishDeadLetters' | 'onRecordRead'
  > {
  readonly refuse: (rows: readonly unknown[]) => Promise<readonly never[]>;
}

/** Options of blocks that refuse no row, read no watermark, and do not depend on which rows are stored. */
function createPlainBlocks(publishLetters: PlainBlocks['publishDeadLetters']): PlainBlocks {
  return {
    isTick: () => false,
    readWatermark: async () => 0,
    storedOffsets: async () => new Set(),
    refuse: async () => [],
    publishDeadLetters: publishLetters,
    onRecordRead: () => {},
  };
}

interface MintingBlocksParts {
  readonly mints: Pick<MintWriter, 'insert'>;
  readonly calls: StoreCalls;
  readonly schemaOf: SchemaSource;
}

/** How to open blocks of one topic. */
interface OpenBlocks {
  readonly topic: string;
  readonly open: (partition: number) => BlockBuilder;
}

type Row = MintRow | MetadataRow;

function tablesOf(row: Row): readonly MintTable[] {
  if ('kind' in row) return [METADATA_TABLES[row.kind]];
  // Only the request has the metadata. A row without any says that none was requested.
  return row.revision === 0 ? ['mint_requests', 'mint_metadata'] : ['mint_requests'];
}

/** The blocks of mint requests, of their states and of metadata. */
function createMintingBlocks(
  { mints, calls, schemaOf }: MintingBlocksParts,
  plain: PlainBlocks,
): readonly OpenBlocks[] {
  const write = createWriteFolding<Row, MintTable>({ tablesOf, insert: (rows) => mints.insert(rows), calls });
  const createOpen = <T, R extends Row>(
    codec: RecordCodec<T>,
    toRow: (record: T, version: LoggedVersion) => R,
  ): OpenBlocks['open'] => {
    const readRow = createReadRow({ codec, schemaOf, toRow });
    return (partition) => new TimedBlock<R>({ ...plain, readRow, write }, partition);
  };
  return [
    { topic: TOPICS.mintRequests.name, open: createOpen(mintRequestCodec, toRequestRow) },
    { topic: TOPICS.mintStates.name, open: createOpen(mintStateCodec, toStateRow) },
    { topic: TOPICS.chainMetadata.name, open: createOpen(chainMetadataCodec, toMetadataRow) },
  ];
}

/** Largest time of a column with milliseconds: the end of 2299. */
const TIME_MAX_MS = Date.UTC(2299, 11, 31);

/** @throws RangeError that names the member, without its value */
function assertTime(name: string, epochMs: number): void {
  if (!(epochMs >= 0 && epochMs <= TIME_MAX_MS)) throw new RangeError(`${name} is no time that is stored`);
}

function assertCount(name: string, count: number | null): void {
  if (count !== null && !(Number.isSafeInteger(count) && count >= 0)) throw new RangeError(`${name} is no count`);
}

/** @throws RangeError that names what is invalid */
function toRequestRow(record: MintRequestRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  return { ...toRequestedState(record), metadata: record.metadata, ...version };
}

/** @throws RangeError that names what is invalid */
function toStateRow(record: MintStateRecord, version: LoggedVersion): MintRow {
  assertTime('requestedAt', record.requestedAt);
  assertTime('changedAt', record.changedAt);
  assertCount('nonce', record.nonce);
  // The request itself has revision 0.
  if (!Number.isSafeInteger(record.revision) || record.revision < 1) throw new RangeError('revision is below 1');
  return { ...toMintState(record), metadata: null, ...version };
}

/** @throws RangeError that names what is invalid */
function toMetadataRow(record: ChainMetadataRecord, version: LoggedVersion): MetadataRow {
  assertTime('requestedAt', record.requestedAt);
  const { contractAddress, ...rest } = record;
  return { ...rest, ...version, contractAddress: `0x${contractAddress.toString('hex')}` };
}

/** Rows of one table, with the token that names exactly this set of them. */
interface Insert<R, T extends string> {
  readonly table: T;
  readonly rows: readonly R[];
  readonly token: string;
  readonly signal: AbortSignal;
}

interface WriteFoldingParts<R, T extends string> {
  /** All tables that get something of the row. */
  readonly tablesOf: (row: R) => readonly T[];
  readonly insert: (rows: Insert<R, T>) => Promise<void>;
  readonly calls: StoreCalls;
}

/**
 * Creates the step that stores a block's rows in folding tables: of all rows about one thing the one with the largest
 * revision, or the latest time, counts.
 */
function createWriteFolding<R, T extends string>({ tablesOf, insert, calls }: WriteFoldingParts<R, T>) {
  return async ({ rows, block, notes, signal }: TimedRows<R>): Promise<void> => {
    const byTable = new Map<T, R[]>();
    for (const row of rows)
      for (const table of tablesOf(row)) {
        const own = byTable.get(table);
        if (own === undefined) byTable.set(table, [row]);
        else own.push(row);
      }
    for (const [table, own] of byTable) {
      const insertAsked = (asked: readonly number[], token: string) =>
        calls.insert(table, asked.length, () => insert({ table, rows: asked.map((row) => own[row]!), token, signal }));
      const token = toBlockToken(block, table, block.start, block.end);
      const triedBefore = block.triedBefore ?? false;
      await storeFolding({ count: own.length, token, triedBefore, notes, insert: insertAsked });
    }
  };
}
