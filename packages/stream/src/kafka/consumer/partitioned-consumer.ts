import '../kafkajs-clock.ts';
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
import { type BrokerTarget, toKafkajsSecurity } from '../security.ts';
import { BUSY_WAIT_MS, FetchPace } from './fetch-pace.ts';
import { examinePartitions, openGeneration } from './generation.ts';
import { type ConsumerGroup, createSocketFactory, type FetchedBatch, onMembership } from './kafkajs-overrides.ts';
import { createEndsReader, createPartitionCheck } from './log-ends.ts';
import { createLogView, type LogView } from './log-view.ts';
import { type FetchedRecord, toStreamRecord } from './record-decoding.ts';

/** Options of every consumer of a group. */
export interface GroupOptions extends BrokerTarget {
  groupId: string;
  /** Names on the broker. */
  topics: readonly string[];
  /**
   * A member that sends nothing for this long loses its partitions. Finishing its work on shutdown may take half of it.
   */
  sessionTimeoutMs: number;
  /** Default: the group's id. */
  clientId?: string;
  logger?: Logger;
  metrics?: Metrics;
}

/** Members have half a session to finish their work. A member that hangs makes the others wait this long. */
const REBALANCE_TIMEOUT_MIN_MS = 20_000;
/** A member learns of a rebalance with its next heartbeat. */
const HEARTBEAT_MAX_MS = 1_000;
/**
 * All records of an answer are decoded before the first is delivered, so small answers are collected cheaply as young
 * garbage. Measured on the writer: 1 and 4 MiB take 4.1 µs of CPU a record and 340 MiB of memory, 4 and 16 MiB take 4.8
 * µs and 390 MiB. A larger batch is still sent.
 */
const PARTITION_FETCH_BYTES_MAX = 1024 * 1024;
const FETCH_BYTES_MAX = 4 * 1024 * 1024;
const RETRY_WAIT_MIN_MS = 100;
const RETRY_WAIT_MAX_MS = 2_000;
/** A member that has lost its brokers keeps trying, since a broker may come back after an hour. */
const RETRIES = 1_000_000;
/** The first connection is retried by our code, so that closing the consumer ends it: kafkajs would retry for ever. */
const CONNECT_RETRIES = 5;
const REQUEST_TIMEOUT_MS = 10_000;
const RESTART_WAIT_MS = 1_000;
/** A broker that hangs must not keep the process from exiting. */
const DISCONNECT_TIMEOUT_MS = 3_000;

export interface PartitionedOptions extends GroupOptions {
  streamMetrics: StreamMetrics;
  whenExpired: WhenExpired;
  /** Creates the worker of a partition that was just assigned. The log is read from `worker.next` on. */
  openWorker(log: LogPartition, retention: TopicRetention): PartitionWorker;
}

/** A member of a consumer group that runs one worker for each of its partitions. */
export class PartitionedConsumer implements Consumer {
  readonly #options: PartitionedOptions;
  readonly #assignments = new Map<string, Assignment>();
  readonly #kafka: Kafka;
  readonly #unwatch: () => void;
  readonly #retention: TopicRetention;
  readonly #pace: FetchPace;
  readonly #heartbeatMs: number;
  #consumer: KafkaConsumer | null = null;
  #lastHeardAt = 0; // The last sign of life of the group, by `performance.now`.
  #member = false;
  #closing = false;
  #cluster: Cluster | null = null;
  /** Asks for the ends of the partitions assigned to this member; set when it first joins. */
  #askEnds: (() => Promise<void>) | null = null;
  /** Notices added partitions; set with it. */
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
    if (!this.#member || performance.now() - this.#lastHeardAt > this.#options.sessionTimeoutMs) return false;
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

  /** A paused partition is not fetched, so its end of log must be asked for. */
  async refresh(): Promise<void> {
    await this.#askEnds?.();
  }

  /** Joins the group, and joins again whenever the client ends, until the consumer is closed. */
  async run(): Promise<void> {
    while (!this.#closing) {
      const ended = Promise.withResolvers<Error>();
      try {
        await this.#join(ended.resolve);
        const error = await ended.promise;
        this.#options.onFault?.(error);
        if (!this.#closing) this.#options.logger?.error({ error }, 'the consumer ended and starts again');
      } catch (error) {
        this.#options.onFault?.(error);
        if (!this.#closing) this.#options.logger?.error({ error }, 'the consumer could not start and tries again');
      }
      this.#endAll();
      if (!this.#closing) await delay(RESTART_WAIT_MS);
    }
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#unwatch();
    // Before disconnecting: while kafkajs disconnects, commits silently do nothing.
    await this.#drain();
    const left = this.#consumer?.disconnect().catch(() => {}) ?? Promise.resolve();
    if (this.#cluster !== null) this.#pace.endAll(this.#cluster);
    await waitAtMost(DISCONNECT_TIMEOUT_MS, left, () => {});
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
      this.#lastHeardAt = performance.now();
      void this.#checkPartitions?.();
    });
    // A batch with nothing but markers and aborted records is not delivered; this event is the only sign of it.
    consumer.on(consumer.events.START_BATCH_PROCESS, ({ payload }) => {
      if (payload.batchSize === 0) this.#pass(payload);
    });
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      this.#member = false;
      // When `restart` is set, kafkajs starts again by itself.
      if (!payload.restart) ended(payload.error);
    });
  }

  #watch(cluster: Cluster) {
    this.#cluster = cluster;
    const view = createLogView(cluster);
    const askEnds = createEndsReader(cluster, () => [...this.#assignments.values()]);
    this.#askEnds = async () => void (await Promise.all([askEnds(), this.#retention.refresh(cluster)]));
    this.#checkPartitions = createPartitionCheck(cluster, this.#options.topics);
    onMembership(cluster, {
      cancelled: () => this.#closing,
      leaving: async (group) => {
        this.#member = false;
        // Without a member id the group has forgotten this member: it may neither write nor commit any more.
        if (group.memberId === null) this.#endAll();
        else await this.#drain();
      },
      joined: async (group) => {
        await this.#assign(group, view);
        void this.#retention.refresh(cluster);
      },
      outOfRange: ({ topic, partition }) => this.#assignments.get(`${topic}/${partition}`)?.guarded.outOfRange(),
      fetchWaitMs: (group) => this.#fetchWaitMs(group),
      awaitFetch: (fetching) => this.#pace.until(fetching),
      fetched: (batches) => this.#note(batches),
    });
  }

  async #assign(group: ConsumerGroup, view: LogView) {
    const { groupId, logger } = this.#options;
    const examined = await openGeneration(group, { groupId, view, cancelled: () => this.#closing });
    this.#endAll();
    for (const each of examined) {
      if (this.#closing) return;
      this.#assignments.set(`${each.log.topic}/${each.log.partition}`, new Assignment(this.#guard(each, group, view)));
    }
    this.#member = true;
    this.#pace.joined();
    this.#lastHeardAt = performance.now();
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

  #fetchWaitMs(group: ConsumerGroup): number {
    const heartbeatInMs = this.#lastHeardAt + this.#heartbeatMs - performance.now();
    return this.#pace.waitMs({ hasPaused: group.paused().length > 0, heartbeatInMs });
  }

  #note(batches: readonly FetchedBatch[]) {
    this.#pace.fetched(batches);
    for (const { topic, partition, fetchedOffset, rawMessages } of batches) {
      const assignment = this.#assignments.get(`${topic}/${partition}`);
      if (assignment !== undefined)
        assignment.fetched = { from: Number(fetchedOffset), batches: rawMessages.batches ?? [] };
    }
  }

  /** Records are only passed on here: fetches, handlers and heartbeats of all partitions share one loop. */
  #receive({ batch, resolveOffset }: EachBatchPayload) {
    const assignment = this.#assignments.get(`${batch.topic}/${batch.partition}`);
    if (assignment === undefined || assignment.guarded.isClosed) return;
    // missing in kafkajs's types
    const { fetchedOffset, rawMessages } = batch as typeof batch & FetchedBatch;
    const { batches = [] } = rawMessages;
    if (!assignment.guarded.acceptsBatches(batches)) return;
    if (!assignment.guarded.acceptsFetchFrom(Number(fetchedOffset))) return;
    const end = Number(batch.lastOffset()) + 1;
    // Ours, whatever kafkajs's types say: see record-decoding.ts.
    const fetched = batch.messages as unknown as readonly FetchedRecord[];
    const records = fetched.map((record) => toStreamRecord(batch, record));
    assignment.guarded.worker.accept(records, end, batches);
    resolveOffset(batch.lastOffset());
    assignment.end = Number(batch.highWatermark);
  }

  /**
   * Offsets without a record for us count as read too. Otherwise an idle partition would stay behind a marker for ever.
   */
  #pass(batch: { topic: string; partition: number; firstOffset: string | null; lastOffset: string }) {
    const assignment = this.#assignments.get(`${batch.topic}/${batch.partition}`);
    if (assignment === undefined || assignment.guarded.isClosed) return;
    const { guarded, fetched } = assignment;
    if (
      batch.firstOffset === null ||
      !guarded.acceptsBatches(fetched.batches) ||
      !guarded.acceptsFetchFrom(fetched.from)
    )
      return;
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

/** What a member of a group knows of one partition assigned to it. */
class Assignment {
  readonly guarded: GuardedPartition;
  /** End of the log as last learned, from a fetch or by asking. */
  end: number;
  /** The last fetch: the offset it asked for, and the batches it brought. */
  fetched: { readonly from: number; readonly batches: readonly LogMark[] } = { from: 0, batches: [] };

  constructor(guarded: GuardedPartition) {
    this.guarded = guarded;
    this.end = guarded.log.committed;
  }

  get log(): LogPartition {
    return this.guarded.log;
  }
}

/** Writes log lines of kafkajs to our log. Its lines of level info do not help an operator, so they are left out. */
function createKafkaLogger(logger: Logger | undefined): logCreator {
  return () =>
    ({ level, log }) => {
      const { message, timestamp: _, logger: __, ...fields } = log;
      if (level === logLevel.ERROR) logger?.warn(fields, message);
      else if (level === logLevel.WARN) logger?.debug(fields, message);
    };
}

/** Retention of a topic is changed by hand, and rarely. */
const RETENTION_INTERVAL_MS = 10 * 60 * 1000;
/** Kafka's number for a topic among the kinds of resources that have settings. */
const TOPIC_RESOURCE = 2;
const SETTING = 'retention.ms';

/** Members of kafkajs's broker that its types lack. */
interface SettingsBroker {
  describeConfigs(query: {
    resources: { type: number; name: string; configNames: string[] }[];
    includeSynonyms: boolean;
  }): Promise<{
    resources: { resourceName: string; configEntries: { configName: string; configValue: string | null }[] }[];
  }>;
}

/** How long the brokers keep records of some topics. */
interface TopicRetention {
  /** Milliseconds; null while it is unknown, and for a topic whose records are kept for ever. */
  retentionMsOf(topic: string): number | null;
  /** Asks again after ten minutes or more, over the connections that the consumer already has. Never throws. */
  refresh(cluster: Pick<Cluster, 'findControllerBroker'>): Promise<void>;
}

export function createTopicRetention(topics: readonly string[]): TopicRetention {
  const known = new Map<string, number>();
  let askedAtMs = Number.NEGATIVE_INFINITY;
  return {
    retentionMsOf: (topic) => known.get(topic) ?? null,
    async refresh(cluster) {
      if (performance.now() - askedAtMs < RETENTION_INTERVAL_MS) return;
      askedAtMs = performance.now();
      try {
        const broker = (await cluster.findControllerBroker()) as unknown as SettingsBroker;
        const resources = topics.map((name) => ({ type: TOPIC_RESOURCE, name, configNames: [SETTING] }));
        const answer = await broker.describeConfigs({ resources, includeSynonyms: false });
        for (const { resourceName, configEntries } of answer.resources) {
          const retentionMs = Number(configEntries.find(({ configName }) => configName === SETTING)?.configValue ?? -1);
          if (retentionMs >= 0) known.set(resourceName, retentionMs);
          else known.delete(resourceName);
        }
      } catch {
        // The next refresh asks again. Until then the last known value is returned.
        askedAtMs = Number.NEGATIVE_INFINITY;
      }
    },
  };
}
