import type { LogMark } from '../../partitions/log-mark.ts';
import type { PublishedRecord, RecordMetadata, StreamRecord } from '../../ports.ts';

const PARTITIONS = 6;

interface PartitionState {
  start: number;
  /** Leader epoch. Every truncation increases the epoch, like a new leader. */
  epoch: number;
  /** One batch per record. */
  readonly marks: LogMark[];
}

/** An in-memory log. Topics are created when they are first used. */
export class MemoryTopics {
  readonly #partitions: number;
  readonly #topics = new Map<string, StreamRecord[][]>();
  readonly #recordBytesMax = new Map<string, number>();
  readonly #states = new Map<string, PartitionState>();
  readonly #ids = new Map<string, number>();
  #appended = 0;
  #recreations = 0;
  readonly #listeners = new Set<() => void>();

  constructor(partitions = PARTITIONS) {
    this.#partitions = partitions;
  }

  createTopic(topic: string, options: { partitions: number; recordBytesMax?: number }): void {
    this.#topics.set(
      topic,
      Array.from({ length: options.partitions }, () => []),
    );
    if (options.recordBytesMax !== undefined) this.#recordBytesMax.set(topic, options.recordBytesMax);
  }

  accepts({ topic, key, value }: PublishedRecord): boolean {
    return (key?.length ?? 0) + (value?.length ?? 0) <= (this.#recordBytesMax.get(topic) ?? Number.POSITIVE_INFINITY);
  }

  partitionsOf(topic: string): StreamRecord[][] {
    const partitions = this.#topics.get(topic) ?? Array.from({ length: this.#partitions }, (): StreamRecord[] => []);
    this.#topics.set(topic, partitions);
    return partitions;
  }

  append(record: Omit<StreamRecord, 'offset' | 'timestampMs'>): RecordMetadata {
    const partition = this.partitionsOf(record.topic)[record.partition]!;
    const offset = partition.length;
    const appendedAtMs = Date.now();
    // Ensures that a recreated topic has different times. Real topics are not recreated within a millisecond.
    const timestampMs = appendedAtMs + this.#recreations;
    partition.push({ ...record, offset, timestampMs });
    const { marks, epoch } = this.#stateOf(record.topic, record.partition);
    marks.push({ base: offset, epoch, crc: this.#appended++ });
    this.#notify();
    return { partition: record.partition, offset, loggedAtMs: timestampMs };
  }

  startOf(topic: string, partition: number): number {
    return this.#stateOf(topic, partition).start;
  }

  batchAt(topic: string, partition: number, offset: number): LogMark | null {
    const { start, marks } = this.#stateOf(topic, partition);
    return offset < start ? null : (marks[offset] ?? null);
  }

  truncate(topic: string, partition: number, end: number): void {
    const state = this.#stateOf(topic, partition);
    this.partitionsOf(topic)[partition]!.splice(end);
    state.marks.splice(end);
    state.epoch++;
    this.#notify();
  }

  expire(topic: string, partition: number, start: number): void {
    this.#stateOf(topic, partition).start = start;
    this.#notify();
  }

  /** Distinguishes a topic from an earlier topic with the same name. */
  idOf(topic: string): number {
    return this.#ids.get(topic) ?? 0;
  }

  /** Deletes and recreates a topic. Offsets and epochs start again. */
  recreate(topic: string): void {
    this.#ids.set(topic, ++this.#recreations);
    for (const [partition, records] of this.partitionsOf(topic).entries()) {
      records.splice(0);
      this.#states.delete(`${topic}/${partition}`);
    }
    this.#notify();
  }

  #stateOf(topic: string, partition: number): PartitionState {
    const name = `${topic}/${partition}`;
    const state = this.#states.get(name) ?? { start: 0, epoch: 0, marks: [] };
    this.#states.set(name, state);
    return state;
  }

  #notify() {
    for (const listener of this.#listeners) listener();
  }

  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
