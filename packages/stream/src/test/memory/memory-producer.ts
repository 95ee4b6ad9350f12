import { toPartition } from '@playline/stores';
import type { OutgoingRecord, Producer, PublishedRecord, RecordMetadata } from '../../ports.ts';
import type { MemoryTopics } from './memory-log.ts';

/** A producer for an in-memory log. Acknowledges records in the next turn of the event loop. */
export class MemoryProducer implements Producer {
  readonly #topics: MemoryTopics;
  readonly #faults: Error[] = [];
  #sendCount = 0;
  #bytesHeld = 0;
  #closed = false;

  constructor(topics: MemoryTopics) {
    this.#topics = topics;
  }

  get bytesHeld(): number {
    return this.#bytesHeld;
  }

  /** Makes the next `send` fail without storing its records. */
  failNext(fault: Error): void {
    this.#faults.push(fault);
  }

  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void {
    this.#store(records, done);
  }

  sendForOffset(record: PublishedRecord): Promise<RecordMetadata> {
    return new Promise((resolve, reject) => {
      const stored = this.#store([record], (fault) => (fault === null ? resolve(stored[0]!) : reject(fault)));
    });
  }

  #store(records: readonly PublishedRecord[], done: (fault: Error | null) => void): RecordMetadata[] {
    const bytes = records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0);
    const fault = this.#faultOf(records);
    this.#bytesHeld += bytes;
    this.#sendCount++;
    const stored = fault === undefined ? records.map((record) => this.#append(record)) : [];
    setImmediate(() => {
      this.#bytesHeld -= bytes;
      done(fault ?? null);
    });
    return stored;
  }

  #faultOf(records: readonly PublishedRecord[]): Error | undefined {
    if (this.#closed) return new Error('the producer is closed');
    if (!records.every((record) => this.#topics.accepts(record)))
      return new Error('a record is too large for its topic');
    return this.#faults.shift();
  }

  #append({ topic, key, value, headers = {}, ...target }: PublishedRecord): RecordMetadata {
    const count = this.#topics.partitionsOf(topic).length;
    const partition = target.partition ?? (key === null ? this.#sendCount % count : toPartition(key, count));
    // Copied, because a caller may reuse its buffers after the acknowledgement.
    const copies = Object.entries(headers).map(([name, text]): [string, Buffer] => [name, Buffer.from(text)]);
    return this.#topics.append({
      topic,
      partition,
      key: key === null ? null : Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      headers: Object.fromEntries(copies),
    });
  }

  async ready(): Promise<boolean> {
    return !this.#closed;
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}
