import { setTimeout as delay } from 'node:timers/promises';
import type { Logger, Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import {
  type Cluster,
  type EachBatchPayload,
  Kafka,
  type Consumer as KafkaConsumer,
  type logCreator,
  logLevel,
  PartitionAssigners,
} from 'kafkajs';
import { type ExaminedPartition, GuardedPartition, type WhenExpired } from '../../partitions/guarded-partition.ts';
import type { LogMark } from '../../partitions/log-mark.ts';
import type { LogPartition } from '../../partitions/log-partition.ts';
import { blockersOf, type PartitionWorker } from '../../partitions/partition-worker.ts';
import type { PartitionReading, StreamMetrics } from '../../partitions/stream-metrics.ts';
import type { Consumer } from '../../ports.ts';
import { REQUEST_TIMEOUT_MS } from '../protocol.ts';
import { type BrokerTarget, toKafkajsSecurity } from '../security.ts';
import { BUSY_WAIT_MS, FetchPace } from './fetch-pace.ts';
import { examinePartitions, openGeneration } from './generation.ts';
import { type ConsumerGroup, createSocketFactory, type FetchedBatch, onMembership } from './kafkajs-overrides.ts';
import { createEndsReader, createPartitionCheck } from './log-ends.ts';
import { createLogView, type LogView } from './log-view.ts';
import { type FetchedRecord, toStreamRecord } from './record-decoding.ts';

export interface GroupOptions extends BrokerTarget {
  groupId: string;
  topics: readonly string[];
  /** A member that sends no heartbeat for this long loses its partitions. A shutdown may take half as long. */
  sessionTimeoutMs: number;
  clientId?: string;
  logger?: Logger;
  metrics?: Metrics;
}

/** Members have half a session timeout to finish their work. A member that hangs delays the others by this time. */
const REBALANCE_TIMEOUT_MIN_MS = 20_000;
const HEARTBEAT_MAX_MS = 1_000;
/**
 * Small, because each response is decoded as a whole, and small responses are cheap to garbage-collect: limits of 1 and
 * 4 MiB use 4.1 µs of CPU time per record and 340 MiB of memory; limits of 4 and 16 MiB use 4.8 µs and 390 MiB.
 */
const PARTITION_FETCH_BYTES_MAX = 1024 * 1024;
const FETCH_BYTES_MAX = 4 * 1024 * 1024;
const RETRY_WAIT_MIN_MS = 100;
const RETRY_WAIT_MAX_MS = 2_000;
const RETRIES = 1_000_000;
/** Few retries, because `run` retries the first connection and can be stopped by `close`. */
const CONNECT_RETRIES = 5;
const RESTART_WAIT_MS = 1_000;
/** Limited, so that a broker that hangs does not prevent the process from exiting. */
const DISCONNECT_TIMEOUT_MS = 3_000;

export interface PartitionedOptions extends GroupOptions {
  streamMetrics: StreamMetrics;
  whenExpired: WhenExpired;
  openWorker(log: LogPartition, retention: TopicRetention): PartitionWorker;
}

/** A consumer group member that runs one worker for each assigned partition. */
export class PartitionedConsumer implements Consumer {
  readonly #options: PartitionedOptions;
  readonly #assignments = new Map<string, Assignment>();
  readonly #kafka: Kafka;
  readonly #unwatch: () => void;
  readonly #retention: TopicRetention;
  readonly #pace: FetchPace;
  readonly #heartbeatMs: number;
  #consumer: KafkaConsumer | null = null;
  /** When the group last responded, from `performance.now()`. */
  #lastResponseAt = 0;
  #isMember = false;
  #closing = false;
  #cluster: Cluster | null = null;
  #refreshEnds: (() => Promise<void>) | null = null;
  #checkPartitions: (() => Promise<void>) | null = null;

  constructor(options: PartitionedOptions) {
    this.#options = options;
    this.#pace = new FetchPace(options);
    this.#heartbeatMs = Math.min(HEARTBEAT_MAX_MS, Math.floor(options.sessionTimeoutMs / 4));
    this.#unwatch = options.streamMetrics.watch(this);
    this.#retention = createTopicRetention(options.topics);
    this.#kafka = new Kafka({
      clientId: options.clientId ?? options.groupId,
      brokers: [...options.brokers],
      ...toKafkajsSecurity(options.security),
      socketFactory: createSocketFactory(options.onFault),
      logLevel: logLevel.WARN,
      logCreator: createKafkaLogger(options.logger),
      requestTimeout: REQUEST_TIMEOUT_MS,
      retry: { initialRetryTime: RETRY_WAIT_MIN_MS, maxRetryTime: RETRY_WAIT_MAX_MS, retries: CONNECT_RETRIES },
    });
  }

  ready(): boolean {
    if (!this.#isMember || performance.now() - this.#lastResponseAt > this.#options.sessionTimeoutMs) return false;
    return this.blockers().size === 0;
  }

  blockers(): ReadonlyMap<string, string> {
    return blockersOf([...this.#assignments.values()].map(({ guarded }) => guarded));
  }

  lag(): ReadonlyMap<string, number> {
    return new Map(this.readings().map(({ topic, partition, lag }) => [`${topic}/${partition}`, lag]));
  }

  readings(): readonly PartitionReading[] {
    return [...this.#assignments.values()].map(({ end, guarded: { log, worker } }) => {
      const { topic, partition } = log;
      const { settled, writingSinceMs, oldestUnwrittenMs } = worker;
      const retentionMs = this.#retention.retentionMsOf(topic);
      return { topic, partition, lag: Math.max(0, end - settled), writingSinceMs, oldestUnwrittenMs, retentionMs };
    });
  }

  async refresh(): Promise<void> {
    await this.#refreshEnds?.();
  }

  /** Joins the group, and rejoins after every client fault until the consumer is closed. */
  async run(): Promise<void> {
    while (!this.#closing) {
      const ended = Promise.withResolvers<Error>();
      try {
        await this.#join(ended.resolve);
        const error = await ended.promise;
        this.#options.onFault?.(error);
        if (!this.#closing) this.#options.logger?.error({ error }, 'consumer crashed; restarting');
      } catch (error) {
        this.#options.onFault?.(error);
        if (!this.#closing) this.#options.logger?.error({ error }, 'consumer failed to start; retrying');
      }
      this.#endAll();
      if (!this.#closing) await delay(RESTART_WAIT_MS);
    }
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#unwatch();
    // Must precede the disconnect, because commits silently do nothing while kafkajs disconnects.
    await this.#drain();
    const disconnected = this.#consumer?.disconnect().catch(() => {}) ?? Promise.resolve();
    if (this.#cluster !== null) this.#pace.endAll(this.#cluster);
    await waitAtMost(DISCONNECT_TIMEOUT_MS, disconnected, () => {});
  }

  async #join(ended: (error: Error) => void) {
    const { groupId, sessionTimeoutMs, topics } = this.#options;
    const consumer = this.#kafka.consumer({
      groupId,
      sessionTimeout: sessionTimeoutMs,
      rebalanceTimeout: Math.max(sessionTimeoutMs, REBALANCE_TIMEOUT_MIN_MS),
      heartbeatInterval: this.#heartbeatMs,
      maxWaitTimeInMs: BUSY_WAIT_MS,
      maxBytesPerPartition: PARTITION_FETCH_BYTES_MAX,
      maxBytes: FETCH_BYTES_MAX,
      retry: { initialRetryTime: RETRY_WAIT_MIN_MS, maxRetryTime: RETRY_WAIT_MAX_MS, retries: RETRIES },
      partitionAssigners: [
        (config) => {
          this.#watch(config.cluster);
          return PartitionAssigners.roundRobin(config);
        },
      ],
    });
    this.#consumer = consumer;
    this.#observe(consumer, ended);
    await consumer.connect();
    if (this.#closing) return void (await consumer.disconnect());
    await consumer.subscribe({ topics: [...topics], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async (payload) => this.#receive(payload),
    });
  }

  #observe(consumer: KafkaConsumer, ended: (error: Error) => void) {
    consumer.on(consumer.events.HEARTBEAT, () => {
      this.#lastResponseAt = performance.now();
      void this.#checkPartitions?.();
    });
    // The only event for a batch that contains only transaction markers and aborted records.
    consumer.on(consumer.events.START_BATCH_PROCESS, ({ payload }) => {
      if (payload.batchSize === 0) this.#skip(payload);
    });
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      this.#isMember = false;
      // If `restart` is set, kafkajs restarts the consumer itself.
      if (!payload.restart) ended(payload.error);
    });
  }

  #watch(cluster: Cluster) {
    this.#cluster = cluster;
    const view = createLogView(cluster);
    const refreshEnds = createEndsReader(cluster, () => [...this.#assignments.values()]);
    this.#refreshEnds = async () => void (await Promise.all([refreshEnds(), this.#retention.refresh(cluster)]));
    this.#checkPartitions = createPartitionCheck(cluster, this.#options.topics);
    onMembership(cluster, {
      cancelled: () => this.#closing,
      leaving: async (group) => {
        this.#isMember = false;
        // A member without an ID was removed from its group and must not write or commit.
        if (group.memberId === null) this.#endAll();
        else await this.#drain();
      },
      joined: async (group) => {
        await this.#assign(group, view);
        void this.#retention.refresh(cluster);
      },
      outOfRange: ({ topic, partition }) => this.#assignments.get(`${topic}/${partition}`)?.guarded.outOfRange(),
      fetchWaitMs: (group) => {
        const heartbeatInMs = this.#lastResponseAt + this.#heartbeatMs - performance.now();
        return this.#pace.waitMs({ hasPaused: group.paused().length > 0, heartbeatInMs });
      },
      awaitFetch: (fetching) => this.#pace.awaitFetch(fetching),
      fetched: (batches) => this.#recordFetch(batches),
    });
  }

  async #assign(group: ConsumerGroup, view: LogView) {
    const { groupId, logger } = this.#options;
    const examined = await openGeneration(group, { groupId, view, cancelled: () => this.#closing });
    this.#endAll();
    for (const each of examined) {
      if (this.#closing) return;
      const { topic, partition, committed: end } = each.log;
      const fetched = { from: 0, batches: [] };
      const guarded = this.#guard(each, group, view);
      this.#assignments.set(`${topic}/${partition}`, { log: each.log, guarded, end, fetched });
    }
    this.#isMember = true;
    this.#pace.joined();
    this.#lastResponseAt = performance.now();
    const names = examined.map(({ log: { topic, partition, committed } }) => `${topic}/${partition}@${committed}`);
    logger?.info({ generation: group.generationId, partitions: names }, 'partitions assigned');
  }

  #guard(first: ExaminedPartition, group: ConsumerGroup, view: LogView): GuardedPartition {
    const { groupId, whenExpired, openWorker, logger, streamMetrics, sessionTimeoutMs } = this.#options;
    const { topic, partition } = first.log;
    return new GuardedPartition(first, {
      groupId,
      whenExpired,
      logger,
      metrics: streamMetrics,
      drainBudgetMs: sessionTimeoutMs / 2,
      openWorker: (log) => openWorker(log, this.#retention),
      examine: async () =>
        (await examinePartitions(group, { groupId, view }, [{ topic, partitions: [partition] }]))[0]!,
      refresh: view.refresh,
      readDecision: () => view.decision(groupId, { topic, partition }),
    });
  }

  #recordFetch(batches: readonly FetchedBatch[]) {
    this.#pace.fetched(batches);
    for (const { topic, partition, fetchedOffset, rawMessages } of batches) {
      const assignment = this.#assignments.get(`${topic}/${partition}`);
      if (assignment !== undefined)
        assignment.fetched = { from: Number(fetchedOffset), batches: rawMessages.batches ?? [] };
    }
  }

  /** Must not wait, because the fetches, handlers and heartbeats of all partitions share one loop. */
  #receive({ batch, resolveOffset }: EachBatchPayload) {
    const assignment = this.#assignments.get(`${batch.topic}/${batch.partition}`);
    if (assignment === undefined || assignment.guarded.isClosed) return;
    // Missing from the kafkajs types.
    const { fetchedOffset, rawMessages } = batch as typeof batch & FetchedBatch;
    const { batches = [] } = rawMessages;
    const { guarded } = assignment;
    if (!guarded.acceptsBatches(batches) || !guarded.acceptsFetchFrom(Number(fetchedOffset))) return;
    const end = Number(batch.lastOffset()) + 1;
    // record-decoding.ts decodes these records, which differ from the kafkajs types.
    const fetched = batch.messages as unknown as readonly FetchedRecord[];
    const records = fetched.map((record) => toStreamRecord(batch, record));
    guarded.worker.accept(records, end, batches);
    resolveOffset(batch.lastOffset());
    assignment.end = Number(batch.highWatermark);
  }

  /** Counts offsets without a record as read. Otherwise an idle partition would report a marker as lag. */
  #skip(batch: { topic: string; partition: number; firstOffset: string | null; lastOffset: string }) {
    const assignment = this.#assignments.get(`${batch.topic}/${batch.partition}`);
    if (assignment === undefined || assignment.guarded.isClosed) return;
    const { guarded, fetched } = assignment;
    const isAccepted = guarded.acceptsBatches(fetched.batches) && guarded.acceptsFetchFrom(fetched.from);
    if (batch.firstOffset !== null && isAccepted)
      guarded.worker.accept([], Number(batch.lastOffset) + 1, fetched.batches);
  }

  async #drain() {
    const budgetMs = this.#options.sessionTimeoutMs / 2;
    await Promise.all([...this.#assignments.values()].map(({ guarded }) => guarded.drain(budgetMs)));
    this.#assignments.clear();
  }

  #endAll() {
    for (const { guarded } of this.#assignments.values()) guarded.end();
    this.#assignments.clear();
  }
}

interface Assignment {
  readonly log: LogPartition;
  readonly guarded: GuardedPartition;
  end: number;
  fetched: { readonly from: number; readonly batches: readonly LogMark[] };
}

/** Drops kafkajs info messages, which do not help operators. */
function createKafkaLogger(logger: Logger | undefined): logCreator {
  return () =>
    ({ level, log }) => {
      const { message, timestamp: _, logger: __, ...fields } = log;
      if (level === logLevel.ERROR) logger?.warn(fields, message);
      else if (level === logLevel.WARN) logger?.debug(fields, message);
    };
}

/** Long, because retention rarely changes. */
const RETENTION_INTERVAL_MS = 10 * 60 * 1000;
const TOPIC_RESOURCE = 2;
const SETTING = 'retention.ms';

/** Members of the kafkajs broker that the kafkajs types omit. */
interface SettingsBroker {
  describeConfigs(query: {
    resources: { type: number; name: string; configNames: string[] }[];
    includeSynonyms: boolean;
  }): Promise<{
    resources: { resourceName: string; configEntries: { configName: string; configValue: string | null }[] }[];
  }>;
}

type TopicRetention = ReturnType<typeof createTopicRetention>;

export function createTopicRetention(topics: readonly string[]) {
  const retentions = new Map<string, number>();
  let requestedAtMs = Number.NEGATIVE_INFINITY;
  return {
    /** Returns the retention in milliseconds, or null if it is unknown or unlimited. */
    retentionMsOf: (topic: string): number | null => retentions.get(topic) ?? null,
    /** Updates the retention at most every ten minutes, over the consumer's connections. Never throws. */
    async refresh(cluster: Pick<Cluster, 'findControllerBroker'>): Promise<void> {
      if (performance.now() - requestedAtMs < RETENTION_INTERVAL_MS) return;
      requestedAtMs = performance.now();
      try {
        const broker = (await cluster.findControllerBroker()) as unknown as SettingsBroker;
        const resources = topics.map((name) => ({ type: TOPIC_RESOURCE, name, configNames: [SETTING] }));
        const response = await broker.describeConfigs({ resources, includeSynonyms: false });
        for (const { resourceName, configEntries } of response.resources) {
          const retentionMs = Number(configEntries.find(({ configName }) => configName === SETTING)?.configValue ?? -1);
          if (retentionMs >= 0) retentions.set(resourceName, retentionMs);
          else retentions.delete(resourceName);
        }
      } catch {
        // The last value is retained, and the next refresh repeats the request.
        requestedAtMs = Number.NEGATIVE_INFINITY;
      }
    },
  };
}
