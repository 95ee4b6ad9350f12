import {
  type ActivityRow,
  type ActivityStore,
  type TokenRow,
  toActivityRow,
  toTokenRow,
  type Watermarks,
} from '@playline/chain';
import { activityCodec, type SchemaSource, TOPICS, tokenCodec } from '@playline/contracts';
import type { MintWriter } from '@playline/mints';
import type { Metrics } from '@playline/runtime';
import {
  type BlockBuilder,
  type BlockSink,
  createStoreCalls,
  type DeadLetter,
  type Producer,
  RetryableFault,
  sendDeadLetters,
} from '@playline/stream';
import { createMintingBlocks, createPlainBlocks } from './minting-blocks.ts';
import { createReadRow } from './steps/read-row.ts';
import { createRefuseUpdates } from './steps/refuse-updates.ts';
import { isTick } from './steps/send-tick.ts';
import { TimedBlock, type TimedBlockOptions } from './steps/timed-block.ts';
import { createWriteActivities } from './steps/write-activities.ts';
import { createWriteFolding } from './steps/write-folding.ts';

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
  readonly onTaken: (partition: number) => void;
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
  const calls = createStoreCalls(metrics, 'activity_writer');
  const writerMetrics = createWriterMetrics(metrics);
  const publishLetters = createPublishLetters(deadLetters, writerMetrics.countRefused);
  const writeActivities = createWriteActivities({ store, calls });
  const publishWatermark = createPublishWatermark(watermarks, writerMetrics.setWatermark);
  const activities: TimedBlockOptions<ActivityRow> = {
    readRow: createReadRow({ codec: activityCodec, schemaOf, toRow: toActivityRow }),
    isTick,
    readWatermark: createReadWatermark(watermarks),
    storedOffsets: (rows) => calls.ask('activities', () => store.storedOffsets(rows)),
    refuse: createRefuseUpdates({ store, calls, partitionOf }),
    publishLetters,
    write: async (rows) => {
      await writeActivities(rows);
      await publishWatermark(rows.block.partition, rows.end);
    },
    onTaken: options.onTaken,
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
    'activity_writer_refused_total',
    'Records that became dead letters when their block was written',
  );
  const watermark = metrics.gauge(
    'activity_writer_watermark_seconds',
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
function createPublishLetters(producer: Producer, onRefused: (count: number) => void) {
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
