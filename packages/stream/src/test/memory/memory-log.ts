import type { LogMark } from '../../partitions/log-mark.ts';
import type { PublishedRecord, RecordMetadata, StreamRecord } from '../../ports.ts';

const PARTITIONS = 6;

/** The state of a partition in addition to its records. */
interface PartitionState {
  /** First offset that retention has not deleted. */
  start: number;
  /** Leader epoch. Increased by every truncation, as by a new leader. */
  epoch: number;
  /** One batch per record. */
  readonly marks: LogMark[];
}

/** A log in memory. Topics are created at their first use. */
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

  /** Creates a topic with special options before its first use. */
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

  /** The partitions of a topic, each in offset order. */
  partitionsOf(topic: string): StreamRecord[][] {
    const found = this.#topics.get(topic) ?? Array.from({ length: this.#partitions }, (): StreamRecord[] => []);
    this.#topics.set(topic, found);
    return found;
  }

  append(record: Omit<StreamRecord, 'offset' | 'timestampMs'>): RecordMetadata {
    const partition = this.partitionsOf(record.topic)[record.partition]!;
    const offset = partition.length;
    const appendedAtMs = Date.now();
    // Makes times differ between a topic and its recreation: real topics are not recreated within a millisecond.
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

  /** The batch that contains an offset; null when no batch does. */
  batchAt(topic: string, partition: number, offset: number): LogMark | null {
    const { start, marks } = this.#stateOf(topic, partition);
    return offset < start ? null : (marks[offset] ?? null);
  }

  /** Truncates a log, like a power failure of a single broker. */
  truncate(topic: string, partition: number, end: number): void {
    const state = this.#stateOf(topic, partition);
    this.partitionsOf(topic)[partition]!.splice(end);
    state.marks.splice(end);
    state.epoch++;
    this.#notify();
  }

  /** Removes the beginning of a log, as retention does. */
  expire(topic: string, partition: number, start: number): void {
    this.#stateOf(topic, partition).start = start;
    this.#notify();
  }

  /** Distinguishes a topic from an earlier topic of the same name. */
  idOf(topic: string): number {
    return this.#ids.get(topic) ?? 0;
  }

  /** Deletes and recreates a topic: offsets and epochs restart. */
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

  /** @returns a function that removes the listener */
  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
