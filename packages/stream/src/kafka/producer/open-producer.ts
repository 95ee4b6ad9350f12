import { setTimeout as delay } from 'node:timers/promises';
import { DynamicBuffer } from '@platformatic/dynamic-buffer';
import type { Logger } from '@playline/runtime';
import { explainConnection, toPartition, waitAtMost } from '@playline/stores';
import type { OutgoingRecord, Producer, PublishedRecord, RecordMetadata, SendForOffsetOptions } from '../../ports.ts';
import {
  Base,
  type Connection,
  initProducerIdV4,
  listOffsetsV7,
  produceV9,
  UserError,
  Writer,
} from '../broker-client.ts';
import { connect, groupByLeader, guardConnections } from '../log/open-admin.ts';
import { CONNECT_TIMEOUT_MS, LATEST, NO_EPOCH, REQUEST_TIMEOUT_MS } from '../protocol.ts';
import { type BrokerTarget, toPlatformaticSecurity } from '../security.ts';
import { createPartitioner, type SendCall, takeBatches } from './batch-plan.ts';
import { ProduceFault, toVerdict, type Verdict } from './broker-faults.ts';
import { RecordSizes } from './record-batch.ts';
import { type Cluster, type EncodedBatch, Sender } from './sender.ts';

/** Less than the 30 s after which gateway clients time out and retry. */
const DELIVERY_TIMEOUT_MS = 20_000;
/** Well below the 25 s that a service has for its shutdown. */
const CLOSE_TIMEOUT_MS = 10_000;
/** The producer is not ready after this time without a response. */
const HANGING_MS = 2_000;
/** How long an acknowledgement proves readiness. Afterwards a probe is sent. */
const PROOF_MAX_MS = 5_000;
const EXPIRY_CHECK_MS = 250;
/** Shorter than the five minutes of the Java client, because partitions are added to spread a load. */
const METADATA_MAX_AGE_MS = 60_000;
const TOPIC_ATTEMPTS = 5;
const TOPIC_WAIT_MS = 200;

export interface ProducerOptions extends BrokerTarget {
  clientId: string;
  /**
   * Topics whose metadata is requested at startup and checked by `ready`. Others are requested for their first record.
   */
  topics?: readonly string[];
  /** Records that are neither acknowledged nor rejected within this time fail. The default is 20 s. */
  deliveryTimeoutMs?: number;
  /** Called with the broker's timestamp of each stored batch, for comparison with this process's clock. */
  onLogTime?: (loggedAtMs: number) => void;
  logger?: Logger;
}

/** Opens an idempotent producer with acks=all and one request in flight. Resolves without a broker; see `ready`. */
export async function openProducer(options: ProducerOptions): Promise<Producer> {
  return new KafkaProducer(options, new KafkaCluster(options));
}

class KafkaProducer implements Producer {
  readonly #cluster: KafkaCluster;
  readonly #sender: Sender;
  readonly #partitionOf: ReturnType<typeof createPartitioner>;
  readonly #options: ProducerOptions;
  readonly #topics: Set<string>;
  /** Topics whose metadata is requested before the next send, and in how many responses each was missing. */
  readonly #missing = new Map<string, number>();
  #expiryTimer: NodeJS.Timeout | null = null;
  /** In order of arrival. Some records from the first call may be in flight. */
  #queue: SendCall[] = [];
  /** All open calls in order of arrival, to detect timeouts. */
  #open: SendCall[] = [];
  bytesHeld = 0;
  #running = false;
  #runningSince = 0;
  #acknowledgedAt = Number.NEGATIVE_INFINITY;
  #refreshedAt = performance.now();
  #closing = false;
  #onIdle: (() => void) | null = null;

  constructor(options: ProducerOptions, cluster: KafkaCluster) {
    this.#options = options;
    this.#cluster = cluster;
    this.#sender = new Sender(cluster, (sendCall, count, fault) => this.#settle(sendCall, count, fault));
    this.#partitionOf = createPartitioner(cluster, toPartition);
    this.#topics = new Set(options.topics);
    void cluster.refresh(this.#topics);
  }

  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void {
    this.#accept(records, done);
  }

  sendForOffset(record: PublishedRecord, { attemptsMaxMs }: SendForOffsetOptions = {}): Promise<RecordMetadata> {
    return new Promise((resolve, reject) => {
      const message = 'The record is stored, but its offset is unknown. Resend the record.';
      // If the offset is known, `onStored` resolves first and this rejection is ignored.
      const done = (fault: Error | null) => reject(fault ?? new ProduceFault('UNKNOWN_OFFSET', message));
      this.#accept([record], done, { onStored: resolve, attemptsMaxMs });
    });
  }

  #accept(
    records: readonly PublishedRecord[],
    done: NonNullable<SendCall['done']>,
    { onStored, attemptsMaxMs = Number.POSITIVE_INFINITY }: Pick<SendCall, 'onStored'> & SendForOffsetOptions = {},
  ) {
    if (this.#closing) return void queueMicrotask(() => done(new ProduceFault('CLOSED', 'the producer is closing')));
    if (records.length === 0) return void queueMicrotask(() => done(null));
    let bytes = 0;
    let topic = '';
    const sizes = new RecordSizes();
    for (const record of records) {
      bytes += sizes.bytesMaxOf(record);
      if (record.topic === topic) continue;
      topic = record.topic;
      if (this.#cluster.partitionCount(topic) === 0 && !this.#missing.has(topic)) this.#missing.set(topic, 0);
    }
    const now = performance.now();
    const sendCall: SendCall = {
      records,
      bytes,
      dueAt: now + (this.#options.deliveryTimeoutMs ?? DELIVERY_TIMEOUT_MS),
      attemptsUntil: now + attemptsMaxMs,
      batched: 0,
      pending: records.length,
      fault: null,
      done,
      onStored,
    };
    this.bytesHeld += bytes;
    this.#queue.push(sendCall);
    this.#open.push(sendCall);
    this.#expiryTimer ??= setInterval(() => this.#expire(), EXPIRY_CHECK_MS).unref();
    if (this.#running) return;
    this.#running = true;
    // Records sent in the same turn of the event loop are included in this request.
    setImmediate(() => void this.#run());
  }

  async #run() {
    while (this.#queue.length > 0) {
      this.#runningSince = performance.now();
      try {
        this.#refreshAgedMetadata();
        if (this.#missing.size > 0) await this.#findTopics();
        else await this.#sender.deliver(takeBatches(this.#queue, this.#partitionOf));
      } catch (error) {
        // Fails the records, because they would otherwise wait forever.
        this.#options.logger?.error({ error }, 'unexpected send failure');
        for (const sendCall of this.#open) this.#finish(sendCall, new ProduceFault('UNEXPECTED', String(error)));
      }
      this.#queue = this.#queue.filter(({ done }) => done !== null);
      this.#open = this.#open.filter(({ done }) => done !== null);
    }
    this.#running = false;
    this.#onIdle?.();
  }

  /** Requests the metadata of known topics in the background, because partitions may have been added. */
  #refreshAgedMetadata() {
    const now = performance.now();
    if (now - this.#refreshedAt < METADATA_MAX_AGE_MS) return;
    this.#refreshedAt = now;
    void this.#cluster.refresh(this.#topics);
  }

  /** Requests metadata for new topics. Calls to a topic that does not exist fail. */
  async #findTopics() {
    const absent = await this.#cluster.refresh(this.#missing.keys());
    for (const topic of [...this.#missing.keys()]) {
      const attempts = absent.includes(topic) ? this.#missing.get(topic)! + 1 : 0;
      this.#missing.set(topic, attempts);
      if (this.#cluster.partitionCount(topic) > 0) {
        this.#missing.delete(topic);
        this.#topics.add(topic);
      } else if (attempts >= TOPIC_ATTEMPTS) this.#rejectTopic(topic);
    }
    if (this.#missing.size > 0) await delay(TOPIC_WAIT_MS);
  }

  #rejectTopic(topic: string) {
    this.#missing.delete(topic);
    for (const sendCall of this.#queue)
      if (sendCall.records.some((record) => record.topic === topic))
        this.#finish(sendCall, new ProduceFault('UNKNOWN_TOPIC', `Topic ${topic} does not exist. Create it first.`));
  }

  #settle(sendCall: SendCall, count: number, fault: Error | null) {
    if (fault === null) this.#acknowledgedAt = performance.now();
    sendCall.fault ??= fault;
    sendCall.pending -= count;
    if (sendCall.pending === 0) this.#finish(sendCall, sendCall.fault);
  }

  /** Releases the bytes and calls `done` once. Later results for records in flight are ignored. */
  #finish(sendCall: SendCall, fault: Error | null) {
    const { done } = sendCall;
    if (done === null) return;
    sendCall.done = null;
    this.bytesHeld -= sendCall.bytes;
    try {
      done(fault);
    } catch (error) {
      // A callback that throws must not stop other callers' records.
      this.#options.logger?.error({ error }, 'send callback failed');
    }
  }

  #expire() {
    if (this.#open.length === 0) return this.#endExpiry();
    const now = performance.now();
    for (const sendCall of this.#open) {
      // The sender settles an attempt in flight, because it may still succeed.
      const isExpired = sendCall.attemptsUntil <= now && sendCall.batched === 0;
      if (sendCall.dueAt > now && !isExpired) continue;
      this.#finish(sendCall, new ProduceFault('DELIVERY_TIMEOUT', 'no broker acknowledged the records in time'));
    }
  }

  #endExpiry() {
    if (this.#expiryTimer !== null) clearInterval(this.#expiryTimer);
    this.#expiryTimer = null;
  }

  /** False while a request hangs. Otherwise true after a recent acknowledgement or if all leaders return offsets. */
  async ready(): Promise<boolean> {
    const now = performance.now();
    if (this.#closing || (this.#running && now - this.#runningSince > HANGING_MS)) return false;
    if (now - this.#acknowledgedAt < PROOF_MAX_MS) return true;
    const probe = this.#cluster.probe([...this.#topics]);
    const isResponding = probe.then(() => true).catch(() => false);
    return await waitAtMost(HANGING_MS, isResponding, () => false);
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    if (this.#running) {
      const flushed = Promise.withResolvers<void>();
      this.#onIdle = flushed.resolve;
      await waitAtMost(CLOSE_TIMEOUT_MS, flushed.promise, () => {});
    }
    this.#endExpiry();
    for (const sendCall of this.#open)
      this.#finish(sendCall, new ProduceFault('CLOSED', 'the producer closed before the acknowledgement'));
    const closed = this.#cluster.close().catch(() => {});
    await waitAtMost(HANGING_MS, closed, () => {});
  }
}

const PRODUCE_KEY = 0;
const PRODUCE_VERSION = 9;
const NO_LEADER = -1;

type ProduceResponse = ReturnType<typeof produceV9.parseResponse>;

function toVerdicts(batches: readonly EncodedBatch[], response: ProduceResponse): Verdict[] {
  const verdicts = new Map<string, Verdict>();
  for (const topic of response.responses)
    for (const { index, errorCode, baseOffset, logAppendTimeMs } of topic.partitionResponses) {
      const base = { offset: Number(baseOffset), loggedAtMs: Number(logAppendTimeMs) };
      verdicts.set(`${topic.name}/${index}`, toVerdict(errorCode, base));
    }
  return batches.map(
    ({ topic, partition }) =>
      verdicts.get(`${topic}/${partition}`) ?? { kind: 'retry', ambiguous: true, code: 'NO_RESPONSE' },
  );
}

/** Manages cluster metadata and broker connections. */
class KafkaCluster implements Cluster {
  readonly #client: Base;
  readonly #onLogTime: ProducerOptions['onLogTime'];
  #brokers = new Map<number, { host: string; port: number }>();
  /** Leaders by topic and partition. Unchanged if a refresh fails. */
  readonly #leaders = new Map<string, number[]>();

  constructor(options: ProducerOptions) {
    this.#onLogTime = options.onLogTime;
    this.#client = new Base({
      clientId: options.clientId,
      bootstrapBrokers: [...options.brokers],
      ...toPlatformaticSecurity(options),
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // One retry, so that another broker is tried. The sender waits between attempts.
      retries: 1,
      retryDelay: 100,
    });
    guardConnections(this.#client, options.onFault);
  }

  partitionCount(topic: string): number {
    return this.#leaders.get(topic)?.length ?? 0;
  }

  leaderOf(topic: string, partition: number): number {
    return this.#leaders.get(topic)?.[partition] ?? NO_LEADER;
  }

  /** Sends one request per topic, because a topic that is unknown or has no leader would fail the whole request. */
  async refresh(topics: Iterable<string>): Promise<string[]> {
    const absent: string[] = [];
    for (const topic of [...topics])
      await this.#refreshTopic(topic).catch((fault: Error) => {
        // The client also throws a `UserError` if only one side uses TLS.
        if (fault instanceof UserError && !explainConnection('Kafka', fault).isRefusal) absent.push(topic);
      });
    return absent;
  }

  async newProducerId() {
    if (this.#brokers.size === 0) await this.#refreshBrokers();
    const nodes = [...this.#brokers.keys()];
    const node = nodes[Math.floor(Math.random() * nodes.length)]!;
    return await initProducerIdV4.api.async(await this.#connect(node), null, 0, -1n, -1);
  }

  async produce(node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]> {
    const verdicts = await this.#produceTo(node, batches);
    for (const verdict of verdicts)
      if (verdict.kind === 'stored' && verdict.base?.loggedAtMs != null) this.#onLogTime?.(verdict.base.loggedAtMs);
    return verdicts;
  }

  /** Requests the end offsets of these topics. Rejects unless all leaders respond. */
  async probe(topics: readonly string[]): Promise<void> {
    for (const topic of topics) await this.#refreshTopic(topic);
    if (topics.length === 0) await this.#refreshBrokers();
    const all = topics.flatMap((topic) =>
      (this.#leaders.get(topic) ?? []).map((leader, partition) => ({ leader, topic, partition })),
    );
    await Promise.all([...groupByLeader(all)].map(([node, byTopic]) => this.#requestEnds(node, byTopic)));
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #connect(node: number): Promise<Connection> {
    const broker = this.#brokers.get(node);
    if (broker === undefined) throw new Error(`Broker ${node} is not in the metadata.`);
    return await connect(this.#client, broker);
  }

  async #refreshBrokers() {
    this.#brokers = (await this.#client.metadata({ topics: [], forceUpdate: true })).brokers;
  }

  async #refreshTopic(topic: string) {
    const { brokers, topics } = await this.#client.metadata({ topics: [topic], forceUpdate: true });
    this.#brokers = brokers;
    const leaders = topics.get(topic)?.partitions.map(({ leader }) => (brokers.has(leader) ? leader : NO_LEADER));
    if (leaders !== undefined) this.#leaders.set(topic, leaders);
  }

  async #produceTo(node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]> {
    const retry = (ambiguous: boolean, code: string): Verdict[] =>
      batches.map(() => ({ kind: 'retry', ambiguous, code }));
    const connection = await this.#connect(node).catch(() => null);
    // The deadline may have passed during the connection attempt.
    const now = performance.now();
    if (connection === null || batches.some(({ attemptsUntil }) => attemptsUntil <= now))
      return retry(false, 'NO_CONNECTION');
    return await new Promise((resolve) => {
      const request = () => toProduceRequest(batches);
      const settle = (fault: (Error & { response?: ProduceResponse }) | null, response?: ProduceResponse) => {
        // For a response that contains error codes, the client returns a fault with the response.
        const received = fault === null ? response : fault.response;
        resolve(received?.responses === undefined ? retry(true, 'NO_RESPONSE') : toVerdicts(batches, received));
      };
      connection.send(PRODUCE_KEY, PRODUCE_VERSION, request, produceV9.parseResponse, true, true, settle);
    });
  }

  async #requestEnds(node: number, topics: Map<string, number[]>) {
    const requests = [...topics].map(([name, partitions]) => ({
      name,
      partitions: partitions.map((at) => ({ partitionIndex: at, currentLeaderEpoch: NO_EPOCH, timestamp: LATEST })),
    }));
    await listOffsetsV7.api.async(await this.#connect(node), NO_LEADER, 0, requests);
  }
}

const ACKS_ALL = -1;
const REPLICATION_TIMEOUT_MS = 4_000;

/**
 * Encodes a version 9 produce request (Kafka 2.4 and later): transactional_id acks timeout_ms [name [index records
 * TAGS] TAGS] TAGS. The batches are not copied.
 */
export function toProduceRequest(batches: readonly EncodedBatch[]): Writer {
  const topics = [...Map.groupBy(batches, ({ topic }) => topic)];
  const writer = Writer.create().appendString(null).appendInt16(ACKS_ALL).appendInt32(REPLICATION_TIMEOUT_MS);
  writer.appendArray(topics, (w, [topic, partitions]) => {
    w.appendString(topic).appendArray(partitions, (each, { partition, bytes }) => {
      each.appendInt32(partition);
      each.appendUnsignedVarInt(bytes.length + 1).appendFrom(new DynamicBuffer(bytes));
    });
  });
  return writer.appendTaggedFields();
}
