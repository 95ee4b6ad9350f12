import { setTimeout as delay } from 'node:timers/promises';
import { DynamicBuffer } from '@platformatic/dynamic-buffer';
import type { Logger } from '@playline/runtime';
import { explainConnection, waitAtMost } from '@playline/stores';
import { toPartition } from '../../murmur2.ts';
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
import { LATEST, NO_EPOCH } from '../protocol.ts';
import { type BrokerTarget, toPlatformaticSecurity } from '../security.ts';
import { createPartitioner, type Shipment, takeBatches } from './batch-plan.ts';
import { ProduceFault, toVerdict, type Verdict } from './broker-faults.ts';
import { RecordSizes } from './record-batch.ts';
import { type EncodedBatch, Sender, type Wire } from './sender.ts';

/** Shorter than the 30 s after which clients of the gateway give up, so that nothing is sent after their retry. */
const DELIVERY_TIMEOUT_MS = 20_000;
/** Well within the 25 s that a service has to shut down. */
const CLOSE_TIMEOUT_MS = 10_000;
/** After this time without an answer the brokers count as hanging, and the producer is not ready. */
const HANGING_MS = 2_000;
/** An acknowledgement within this time shows that it is ready; otherwise a probe is sent. */
const PROVEN_MS = 5_000;
const EXPIRY_CHECK_MS = 250;
/** A broker may not know a new topic for a moment. */
const TOPIC_ATTEMPTS = 5;
const TOPIC_WAIT_MS = 200;

export interface ProducerOptions extends BrokerTarget {
  clientId: string;
  /** Topics that are looked up at the start and checked by `ready`. Others are looked up at their first record. */
  topics?: readonly string[];
  /** Records that are neither acknowledged nor refused within this time fail. Default: 20 s. */
  deliveryTimeoutMs?: number;
  /** Called with the broker's time of each stored batch: a reference for the clock of this process. */
  onLogTime?: (loggedAtMs: number) => void;
  logger?: Logger;
}

interface DeliveryOptions {
  readonly onPlace?: Shipment['onStored'];
  readonly attemptsMaxMs?: number | undefined;
}

/**
 * Opens an idempotent producer with acks=all and one send in flight. Records that arrive meanwhile form the next send,
 * so batches grow with the load and a single record does not wait. Resolves at once, even while no broker answers.
 */
export async function openProducer(options: ProducerOptions): Promise<Producer> {
  return new KafkaProducer(options, openKafkaWire(options));
}

class KafkaProducer implements Producer {
  readonly #wire: KafkaWire;
  readonly #sender: Sender;
  readonly #partitionOf: ReturnType<typeof createPartitioner>;
  readonly #options: ProducerOptions;
  readonly #topics: Set<string>;
  /** Topics to look up before the next send, and how often the cluster said that they do not exist. */
  readonly #missing = new Map<string, number>();
  /** Set while shipments are open. */
  #expiry: NodeJS.Timeout | null = null;
  /** In order of arrival. Some records of the first one may be in flight. */
  #queue: Shipment[] = [];
  /** All open shipments in order of arrival, for time-outs. */
  #open: Shipment[] = [];
  #bytesHeld = 0;
  #running = false;
  #runningSince = 0;
  #provenAt = Number.NEGATIVE_INFINITY;
  #closing = false;
  #idle: (() => void) | null = null;

  constructor(options: ProducerOptions, wire: KafkaWire) {
    this.#options = options;
    this.#wire = wire;
    this.#sender = new Sender(wire, (shipment, count, fault) => this.#settle(shipment, count, fault));
    this.#partitionOf = createPartitioner(wire, toPartition);
    this.#topics = new Set(options.topics);
    void wire.refresh(this.#topics);
  }

  get bytesHeld(): number {
    return this.#bytesHeld;
  }

  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void {
    this.#accept(records, done);
  }

  sendForOffset(record: PublishedRecord, { attemptsMaxMs }: SendForOffsetOptions = {}): Promise<RecordMetadata> {
    return new Promise((resolve, reject) => {
      let place: RecordMetadata | null = null;
      const done = (fault: Error | null) => {
        if (fault !== null) reject(fault);
        else if (place === null)
          reject(new ProduceFault('UNKNOWN_PLACE', 'stored, but the broker does not tell where'));
        else resolve(place);
      };
      const onPlace = (found: RecordMetadata) => {
        place = found;
      };
      this.#accept([record], done, { onPlace, attemptsMaxMs });
    });
  }

  #accept(
    records: readonly PublishedRecord[],
    done: NonNullable<Shipment['done']>,
    { onPlace, attemptsMaxMs = Number.POSITIVE_INFINITY }: DeliveryOptions = {},
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
      if (this.#wire.partitionCount(topic) === 0 && !this.#missing.has(topic)) this.#missing.set(topic, 0);
    }
    const now = performance.now();
    const shipment: Shipment = {
      records,
      bytes,
      dueAt: now + (this.#options.deliveryTimeoutMs ?? DELIVERY_TIMEOUT_MS),
      attemptsUntil: now + attemptsMaxMs,
      taken: 0,
      open: records.length,
      fault: null,
      done,
      onStored: onPlace,
    };
    this.#bytesHeld += bytes;
    this.#queue.push(shipment);
    this.#open.push(shipment);
    this.#expiry ??= setInterval(() => this.#expire(), EXPIRY_CHECK_MS).unref();
    if (this.#running) return;
    this.#running = true;
    // Records that are sent in the same turn of the event loop still join this send.
    setImmediate(() => void this.#run());
  }

  /** Sends until the queue is empty. */
  async #run() {
    while (this.#queue.length > 0) {
      this.#runningSince = performance.now();
      try {
        if (this.#missing.size > 0) await this.#findTopics();
        else await this.#sender.deliver(takeBatches(this.#queue, this.#partitionOf));
      } catch (error) {
        // Nothing should throw here. If it does, the records fail instead of waiting forever.
        this.#options.logger?.error({ error }, 'a send failed');
        for (const shipment of this.#open) this.#finish(shipment, new ProduceFault('UNEXPECTED', String(error)));
      }
      this.#queue = this.#queue.filter(({ done }) => done !== null);
      this.#open = this.#open.filter(({ done }) => done !== null);
    }
    this.#running = false;
    this.#idle?.();
  }

  /** Looks up new topics. Shipments to a topic that does not exist fail. */
  async #findTopics() {
    const absent = await this.#wire.refresh(this.#missing.keys());
    for (const topic of [...this.#missing.keys()]) {
      const attempts = absent.includes(topic) ? this.#missing.get(topic)! + 1 : 0;
      this.#missing.set(topic, attempts);
      if (this.#wire.partitionCount(topic) > 0) {
        this.#missing.delete(topic);
        this.#topics.add(topic);
      } else if (attempts >= TOPIC_ATTEMPTS) this.#refuse(topic);
    }
    if (this.#missing.size > 0) await delay(TOPIC_WAIT_MS);
  }

  #refuse(topic: string) {
    this.#missing.delete(topic);
    for (const shipment of this.#queue)
      if (shipment.records.some((record) => record.topic === topic))
        this.#finish(shipment, new ProduceFault('UNKNOWN_TOPIC', `there is no topic ${topic}`));
  }

  #settle(shipment: Shipment, count: number, fault: Error | null) {
    if (fault === null) this.#provenAt = performance.now();
    shipment.fault ??= fault;
    shipment.open -= count;
    if (shipment.open === 0) this.#finish(shipment, shipment.fault);
  }

  /** Frees the bytes and calls `done`, once. Its records in flight go on, but their results are ignored. */
  #finish(shipment: Shipment, fault: Error | null) {
    const { done } = shipment;
    if (done === null) return;
    shipment.done = null;
    this.#bytesHeld -= shipment.bytes;
    try {
      done(fault);
    } catch (error) {
      // A throw of one caller must not stop the records of others.
      this.#options.logger?.error({ error }, 'a callback of send threw');
    }
  }

  #expire() {
    if (this.#open.length === 0) return this.#endExpiry();
    const now = performance.now();
    for (const shipment of this.#open) {
      // One that is being sent is settled by the sender, because its attempt may still succeed.
      const isOver = shipment.attemptsUntil <= now && shipment.taken === 0;
      if (shipment.dueAt > now && !isOver) continue;
      this.#finish(shipment, new ProduceFault('DELIVERY_TIMEOUT', 'no broker acknowledged the records in time'));
    }
  }

  #endExpiry() {
    if (this.#expiry !== null) clearInterval(this.#expiry);
    this.#expiry = null;
  }

  /**
   * False while a send hangs. True after a recent acknowledgement, else when the leader of every partition answers. The
   * probe asks for offsets: that changes nothing, and a broker that is up but does not lead yet refuses it, unlike
   * metadata.
   */
  async ready(): Promise<boolean> {
    const now = performance.now();
    if (this.#closing || (this.#running && now - this.#runningSince > HANGING_MS)) return false;
    if (now - this.#provenAt < PROVEN_MS) return true;
    const answered = this.#wire.probe([...this.#topics]).then(
      () => true,
      () => false,
    );
    return await waitAtMost(HANGING_MS, answered, () => false);
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    if (this.#running) {
      const flushed = new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
      await waitAtMost(CLOSE_TIMEOUT_MS, flushed, () => {});
    }
    this.#endExpiry();
    for (const shipment of this.#open) this.#finish(shipment, new ProduceFault('CLOSED', 'not acknowledged in time'));
    await waitAtMost(
      HANGING_MS,
      this.#wire.close().catch(() => {}),
      () => {},
    );
  }
}

const PRODUCE_KEY = 0;
const PRODUCE_VERSION = 9;
/**
 * Longer than the leader waits for its replicas, and a quarter of the delivery time-out, so that a retry can still
 * reach another broker.
 */
const REQUEST_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const NO_LEADER = -1;

type ProduceAnswer = ReturnType<typeof produceV9.parseResponse>;

interface KafkaWireOptions extends BrokerTarget {
  clientId: string;
  /** Called with the broker's time of each stored batch, on topics that have it. */
  onLogTime?: ((loggedAtMs: number) => void) | undefined;
}

/** A real cluster, with the connections and metadata of @platformatic/kafka. */
interface KafkaWire extends Wire {
  /** Asks every leader of these topics for the ends of its logs. Rejects unless all of them answer as leaders. */
  probe(topics: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

function toVerdicts(batches: readonly EncodedBatch[], answer: ProduceAnswer): Verdict[] {
  const verdicts = new Map<string, Verdict>();
  for (const topic of answer.responses)
    for (const { index, errorCode, baseOffset, logAppendTimeMs } of topic.partitionResponses) {
      const base = { offset: Number(baseOffset), loggedAtMs: Number(logAppendTimeMs) };
      verdicts.set(`${topic.name}/${index}`, toVerdict(errorCode, base));
    }
  return batches.map(
    ({ topic, partition }) =>
      verdicts.get(`${topic}/${partition}`) ?? { kind: 'again', ambiguous: true, code: 'NO_ANSWER' },
  );
}

/** Gets the response out of a fault: the client throws for a response with error codes. */
function toAnswer(fault: Error & { response?: ProduceAnswer }): ProduceAnswer | undefined {
  return fault.response?.responses === undefined ? undefined : fault.response;
}

/** Metadata of the cluster, and connections to its brokers. */
class Cluster {
  readonly client: Base;
  brokers = new Map<number, { host: string; port: number }>();
  /** Leaders by topic and partition. Stays unchanged when a refresh fails. */
  readonly leaders = new Map<string, number[]>();

  constructor(options: KafkaWireOptions) {
    this.client = new Base({
      clientId: options.clientId,
      bootstrapBrokers: [...options.brokers],
      ...toPlatformaticSecurity(options),
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // One retry, to reach another broker. The sender does the waiting.
      retries: 1,
      retryDelay: 100,
    });
    guardConnections(this.client, options.onFault);
  }

  async connect(node: number): Promise<Connection> {
    const broker = this.brokers.get(node);
    if (broker === undefined) throw new Error(`broker ${node} is not known`);
    return await connect(this.client, broker);
  }

  async refreshBrokers() {
    this.brokers = (await this.client.metadata({ topics: [], forceUpdate: true })).brokers;
  }

  async refreshTopic(topic: string) {
    const metadata = await this.client.metadata({ topics: [topic], forceUpdate: true });
    this.brokers = metadata.brokers;
    const found = metadata.topics.get(topic);
    if (found === undefined) return;
    const leaders = found.partitions.map(({ leader }) => (metadata.brokers.has(leader) ? leader : NO_LEADER));
    this.leaders.set(topic, leaders);
  }
}

/** One request per topic, because one unknown topic, or one without a leader, fails a whole request. */
async function refreshTopics(cluster: Cluster, topics: readonly string[]): Promise<string[]> {
  const absent: string[] = [];
  for (const topic of topics)
    await cluster.refreshTopic(topic).catch((fault: Error) => {
      // The client also throws a `UserError` when only one side uses TLS. That is no absent topic.
      if (fault instanceof UserError && !explainConnection('Kafka', fault).isRefusal) absent.push(topic);
    });
  return absent;
}

async function initProducer(cluster: Cluster) {
  if (cluster.brokers.size === 0) await cluster.refreshBrokers();
  const nodes = [...cluster.brokers.keys()];
  const node = nodes[Math.floor(Math.random() * nodes.length)]!;
  const answer = await initProducerIdV4.api.async(await cluster.connect(node), null, 0, -1n, -1);
  return { producerId: answer.producerId, producerEpoch: answer.producerEpoch };
}

async function produceTo(cluster: Cluster, node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]> {
  const again = (ambiguous: boolean, code: string): Verdict[] =>
    batches.map(() => ({ kind: 'again', ambiguous, code }));
  let connection: Connection;
  try {
    connection = await cluster.connect(node);
  } catch {
    return again(false, 'NO_CONNECTION');
  }
  // Connecting takes up to `CONNECT_TIMEOUT_MS`.
  const now = performance.now();
  if (batches.some(({ attemptsUntil }) => attemptsUntil <= now)) return again(false, 'NO_CONNECTION');
  return await new Promise((resolve) => {
    const request = () => toProduceRequest(batches);
    const settle = (fault: Error | null, answer?: ProduceAnswer) => {
      const given = fault === null ? answer : toAnswer(fault);
      resolve(given === undefined ? again(true, 'NO_ANSWER') : toVerdicts(batches, given));
    };
    connection.send(PRODUCE_KEY, PRODUCE_VERSION, request, produceV9.parseResponse, true, true, settle);
  });
}

async function requestEnds(cluster: Cluster, node: number, topics: Map<string, number[]>) {
  const questions = [...topics].map(([name, partitions]) => ({
    name,
    partitions: partitions.map((partitionIndex) => ({
      partitionIndex,
      currentLeaderEpoch: NO_EPOCH,
      timestamp: LATEST,
    })),
  }));
  await listOffsetsV7.api.async(await cluster.connect(node), NO_LEADER, 0, questions);
}

async function probeLeaders(cluster: Cluster, topics: readonly string[]) {
  for (const topic of topics) await cluster.refreshTopic(topic);
  if (topics.length === 0) await cluster.refreshBrokers();
  const all = topics.flatMap((topic) =>
    (cluster.leaders.get(topic) ?? []).map((leader, partition) => ({ leader, topic, partition })),
  );
  await Promise.all([...groupByLeader(all)].map(([node, asked]) => requestEnds(cluster, node, asked)));
}

function openKafkaWire(options: KafkaWireOptions): KafkaWire {
  const cluster = new Cluster(options);
  const { onLogTime } = options;
  return {
    partitionCount: (topic) => cluster.leaders.get(topic)?.length ?? 0,
    leaderOf: (topic, partition) => cluster.leaders.get(topic)?.[partition] ?? NO_LEADER,
    refresh: (topics) => refreshTopics(cluster, [...topics]),
    newProducerId: () => initProducer(cluster),
    produce: async (node, batches) => {
      const verdicts = await produceTo(cluster, node, batches);
      for (const verdict of verdicts)
        if (verdict.kind === 'stored' && verdict.base?.loggedAtMs != null) onLogTime?.(verdict.base.loggedAtMs);
      return verdicts;
    },
    probe: (topics) => probeLeaders(cluster, topics),
    close: () => cluster.client.close(),
  };
}

const ACKS_ALL = -1;
/** How long a leader waits for its replicas. Shorter than the time-out of a request. */
const REPLICATION_TIMEOUT_MS = 4_000;

/**
 * A produce request of version 9 (the first flexible version, since Kafka 2.4; later ones only extend the answer):
 * transactional_id acks timeout_ms [name [index records TAGS] TAGS] TAGS. The bytes of the batches are not copied.
 */
export function toProduceRequest(batches: readonly EncodedBatch[]): Writer {
  const topics = new Map<string, EncodedBatch[]>();
  for (const batch of batches) {
    const same = topics.get(batch.topic);
    if (same === undefined) topics.set(batch.topic, [batch]);
    else same.push(batch);
  }
  const writer = Writer.create().appendString(null).appendInt16(ACKS_ALL).appendInt32(REPLICATION_TIMEOUT_MS);
  return writer
    .appendArray([...topics], (w, [topic, partitions]) => {
      w.appendString(topic).appendArray(partitions, (each, { partition, bytes }) => {
        each
          .appendInt32(partition)
          .appendUnsignedVarInt(bytes.length + 1)
          .appendFrom(new DynamicBuffer(bytes));
      });
    })
    .appendTaggedFields();
}
