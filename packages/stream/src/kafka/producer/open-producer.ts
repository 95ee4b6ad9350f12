import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import { toPartition } from '../../murmur2.ts';
import type { OutgoingRecord, PlacedOptions, Producer, PublishedRecord, RecordPlace } from '../../ports.ts';
import type { BrokerTarget } from '../security.ts';
import { createPartitioner, type Shipment, takeBatches } from './batch-plan.ts';
import { ProduceFault } from './broker-faults.ts';
import { type KafkaWire, openKafkaWire } from './kafka-wire.ts';
import { RecordSizes } from './record-batch.ts';
import { Sender } from './sender.ts';

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

interface Placing {
  readonly onPlace?: Shipment['onPlace'];
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

  sendPlaced(record: PublishedRecord, { attemptsMaxMs }: PlacedOptions = {}): Promise<RecordPlace> {
    return new Promise((resolve, reject) => {
      let place: RecordPlace | null = null;
      const done = (fault: Error | null) => {
        if (fault !== null) reject(fault);
        else if (place === null)
          reject(new ProduceFault('UNKNOWN_PLACE', 'stored, but the broker does not tell where'));
        else resolve(place);
      };
      const onPlace = (found: RecordPlace) => {
        place = found;
      };
      this.#accept([record], done, { onPlace, attemptsMaxMs });
    });
  }

  #accept(
    records: readonly PublishedRecord[],
    done: NonNullable<Shipment['done']>,
    { onPlace, attemptsMaxMs = Number.POSITIVE_INFINITY }: Placing = {},
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
      onPlace,
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
