import type { OutgoingRecord, RecordPlace, StreamRecord } from '../ports.ts';

const PARTITIONS = 6;

/** A log in this process's memory: topics appear when they are used. */
export class MemoryTopics {
  readonly #partitions: number;
  readonly #topics = new Map<string, StreamRecord[][]>();
  readonly #recordBytesMax = new Map<string, number>();
  readonly #listeners = new Set<() => void>();

  constructor(partitions = PARTITIONS) {
    this.#partitions = partitions;
  }

  /** Makes a topic of its own shape before it is used. */
  createTopic(topic: string, options: { partitions: number; recordBytesMax?: number }): void {
    this.#topics.set(
      topic,
      Array.from({ length: options.partitions }, () => []),
    );
    if (options.recordBytesMax !== undefined) this.#recordBytesMax.set(topic, options.recordBytesMax);
  }

  takes({ topic, key, value }: OutgoingRecord): boolean {
    return (key?.length ?? 0) + value.length <= (this.#recordBytesMax.get(topic) ?? Number.POSITIVE_INFINITY);
  }

  /** Partitions of a topic, each in the order of its offsets. */
  partitionsOf(topic: string): StreamRecord[][] {
    const found = this.#topics.get(topic) ?? Array.from({ length: this.#partitions }, (): StreamRecord[] => []);
    this.#topics.set(topic, found);
    return found;
  }

  append(record: Omit<StreamRecord, 'offset' | 'timestampMs'>): RecordPlace {
    const partition = this.partitionsOf(record.topic)[record.partition]!;
    const offset = partition.length;
    const timestampMs = Date.now();
    partition.push({ ...record, offset, timestampMs });
    for (const listener of this.#listeners) listener();
    return { partition: record.partition, offset, loggedAtMs: timestampMs };
  }

  /** @returns a call that ends it */
  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
