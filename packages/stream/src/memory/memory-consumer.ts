import { setImmediate as turn } from 'node:timers/promises';
import { Fenced, type LogPartition } from '../partitions/log-partition.ts';
import type { PartitionWorker } from '../partitions/partition-worker.ts';
import type { PartitionReading, StreamMetrics } from '../partitions/stream-metrics.ts';
import type { Consumer } from '../ports.ts';
import type { MemoryTopics } from './memory-log.ts';

/** Committed offsets of one group, by `topic/partition`. */
export type CommittedOffsets = Map<string, { offset: number; metadata: string }>;

const DRAIN_MS = 5_000;
/** Small, so that workers see several deliveries. */
const RECORDS_PER_DELIVERY = 100;

interface Assignment {
  readonly topic: string;
  readonly partition: number;
  readonly worker: PartitionWorker;
  position: number;
  paused: boolean;
  over: boolean;
}

/** The only member of its group: every partition of its topics is its own until it closes. */
export class MemoryConsumer implements Consumer {
  readonly #topics: MemoryTopics;
  readonly #assignments: Assignment[] = [];
  readonly #unlisten: () => void;
  #scheduled = false;
  #closed = false;

  constructor(options: {
    log: MemoryTopics;
    topics: readonly string[];
    committed: CommittedOffsets;
    metrics: StreamMetrics;
    openWorker(log: LogPartition): PartitionWorker;
  }) {
    this.#topics = options.log;
    for (const topic of options.topics)
      for (const partition of options.log.partitionsOf(topic).keys()) this.#assign(options, topic, partition);
    const unlisten = options.log.onAppend(() => this.#schedule());
    const unwatch = options.metrics.watch(this);
    this.#unlisten = () => {
      unlisten();
      unwatch();
    };
    this.#schedule();
  }

  #assign(
    options: { committed: CommittedOffsets; openWorker(log: LogPartition): PartitionWorker },
    topic: string,
    partition: number,
  ) {
    const name = `${topic}/${partition}`;
    const stands = options.committed.get(name);
    const state = { topic, partition, position: stands?.offset ?? 0, paused: false, over: false };
    let assignment: Assignment | null = null;
    const current = () => assignment ?? state;
    const log: LogPartition = {
      topic,
      partition,
      committed: state.position,
      metadata: stands?.metadata ?? null,
      commit: async (offset, metadata) => {
        await turn();
        if (current().over) throw new Fenced('closed');
        options.committed.set(name, { offset, metadata });
      },
      seek: (offset) => {
        current().position = offset;
      },
      pause: () => {
        current().paused = true;
      },
      resume: () => {
        current().paused = false;
        this.#schedule();
      },
    };
    const worker = options.openWorker(log);
    assignment = { ...state, worker };
    this.#assignments.push(assignment);
  }

  #schedule() {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#deliver();
    });
  }

  #deliver() {
    let more = false;
    for (const assignment of this.#assignments) {
      const records = this.#topics.partitionsOf(assignment.topic)[assignment.partition]!;
      if (assignment.paused || assignment.over || assignment.position >= records.length) continue;
      const end = Math.min(records.length, assignment.position + RECORDS_PER_DELIVERY);
      assignment.worker.accept(records.slice(assignment.position, end), end);
      assignment.position = end;
      more ||= end < records.length;
    }
    if (more) this.#schedule();
  }

  ready(): boolean {
    return !this.#closed && this.#assignments.every(({ worker }) => worker.healthy);
  }

  lag(): ReadonlyMap<string, number> {
    return new Map(this.readings().map(({ topic, partition, lag }) => [`${topic}/${partition}`, lag]));
  }

  readings(): readonly PartitionReading[] {
    return this.#assignments.map(({ topic, partition, worker }) => {
      const end = this.#topics.partitionsOf(topic)[partition]!.length;
      const { settled, writingSinceMs, oldestUnwrittenMs } = worker;
      return { topic, partition, lag: Math.max(0, end - settled), writingSinceMs, oldestUnwrittenMs };
    });
  }

  /**
   * Resolves when everything in the log has been processed and committed. Stopped partitions are not waited for, unless
   * they are asked for: they go on by themselves when what stopped them has been mended.
   */
  async idle({ stopped = false } = {}): Promise<void> {
    const isBehind = ({ topic, partition, worker }: Assignment) =>
      (worker.healthy || stopped) && worker.done < this.#topics.partitionsOf(topic)[partition]!.length;
    while (!this.#closed && this.#assignments.some(isBehind)) await turn();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#unlisten();
    await Promise.all(this.#assignments.map(({ worker }) => worker.drain(DRAIN_MS)));
    for (const assignment of this.#assignments) assignment.over = true;
  }

  /** Ends as a killed process does: nothing is finished, nothing is committed any more. */
  kill(): void {
    this.#closed = true;
    this.#unlisten();
    for (const assignment of this.#assignments) {
      assignment.over = true;
      assignment.worker.end();
    }
  }
}
