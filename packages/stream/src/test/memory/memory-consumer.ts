import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '@playline/runtime';
import { type ExaminedPartition, GuardedPartition, type WhenExpired } from '../../partitions/guarded-partition.ts';
import { parseRead } from '../../partitions/intent.ts';
import { Fenced, type LogPartition, TopicDeleted } from '../../partitions/log-partition.ts';
import type { OffsetDecision } from '../../partitions/offset-decision.ts';
import { compareWithLog } from '../../partitions/offset-decision.ts';
import { blockersOf, type PartitionWorker } from '../../partitions/partition-worker.ts';
import type { PartitionReading, StreamMetrics } from '../../partitions/stream-metrics.ts';
import type { Consumer } from '../../ports.ts';
import type { MemoryTopics } from './memory-log.ts';

export type CommittedOffsets = Map<string, { offset: number; metadata: string }>;

const DRAIN_MS = 5_000;
/** Small, so that workers receive several deliveries. */
const RECORDS_PER_DELIVERY = 100;

interface Assignment {
  readonly topic: string;
  readonly partition: number;
  readonly guarded: GuardedPartition;
  readonly position: ReadPosition;
}

interface ReadPosition {
  offset: number;
  paused: boolean;
  isClosed: boolean;
  /** ID of the examined topic. A new topic with the same name is not read until it is examined. */
  topicId: number;
}

export interface MemoryConsumerOptions {
  readonly log: MemoryTopics;
  readonly groupId: string;
  readonly topics: readonly string[];
  readonly committed: CommittedOffsets;
  commitFault(): Error | null;
  readonly decisions: ReadonlyMap<string, OffsetDecision>;
  readonly whenExpired: WhenExpired;
  readonly logger: Logger | undefined;
  readonly metrics: StreamMetrics;
  openWorker(log: LogPartition): PartitionWorker;
}

/** The only member of its group, which owns every partition of its topics until it closes. */
export class MemoryConsumer implements Consumer {
  readonly #topics: MemoryTopics;
  readonly #assignments: Assignment[] = [];
  readonly #unlisten: () => void;
  #scheduled = false;
  #closed = false;

  constructor(options: MemoryConsumerOptions) {
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

  #assign(options: MemoryConsumerOptions, topic: string, partition: number) {
    const position: ReadPosition = { offset: 0, paused: false, isClosed: false, topicId: 0 };
    const examine = () => this.#examine(options, { topic, partition, position });
    const { groupId, whenExpired, openWorker, logger, metrics } = options;
    const guarded = new GuardedPartition(examine(), {
      groupId,
      whenExpired,
      openWorker,
      logger,
      metrics,
      drainBudgetMs: DRAIN_MS,
      examine: async () => examine(),
      refresh: async () => {},
      readDecision: async () => options.decisions.get(`${topic}/${partition}`) ?? null,
    });
    this.#assignments.push({ topic, partition, guarded, position });
  }

  #examine(
    { committed: offsets, log: topics, commitFault }: MemoryConsumerOptions,
    { topic, partition, position }: { topic: string; partition: number; position: ReadPosition },
  ): ExaminedPartition {
    const name = `${topic}/${partition}`;
    const stored = offsets.get(name);
    const [start, end] = [topics.startOf(topic, partition), topics.partitionsOf(topic)[partition]!.length];
    const topicId = topics.idOf(topic);
    position.topicId = topicId;
    const [committed, metadata] = [stored?.offset ?? start, stored?.metadata ?? null];
    const log: LogPartition = {
      topic,
      partition,
      committed,
      metadata,
      start,
      commit: async (offset, metadata) => {
        await nextTurn();
        if (position.isClosed) throw new Fenced('closed');
        const fault = commitFault();
        if (fault !== null) throw fault;
        offsets.set(name, { offset, metadata });
      },
      batchAt: async (offset) => {
        if (topics.idOf(topic) !== topicId) throw new TopicDeleted({ topic, partition });
        return topics.batchAt(topic, partition, offset);
      },
      firstOffset: async () => topics.startOf(topic, partition),
      seek: (offset) => {
        position.offset = Math.max(offset, start);
      },
      pause: () => {
        position.paused = true;
      },
      resume: () => {
        position.paused = false;
        this.#schedule();
      },
    };
    const read = parseRead(committed, metadata);
    const found = read.mark === null ? null : topics.batchAt(topic, partition, read.mark.base);
    return { log, finding: compareWithLog(read, { start, end, found }) };
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
    for (const assignment of this.#assignments) more = this.#deliverTo(assignment) || more;
    if (more) this.#schedule();
  }

  #deliverTo({ topic, partition, guarded, position }: Assignment): boolean {
    const records = this.#topics.partitionsOf(topic)[partition]!;
    if (position.paused || position.isClosed || guarded.isClosed) return false;
    const isDeleted = this.#topics.idOf(topic) !== position.topicId;
    const isOutOfRange = position.offset > records.length || position.offset < this.#topics.startOf(topic, partition);
    if (isDeleted || isOutOfRange) guarded.outOfRange();
    if (isDeleted || isOutOfRange || position.offset === records.length) return false;
    if (!guarded.acceptsFetchFrom(position.offset)) return true;
    const { worker } = guarded;
    const end = Math.min(records.length, position.offset + RECORDS_PER_DELIVERY);
    const delivered = records.slice(position.offset, end);
    const batches = delivered.map(({ offset }) => this.#topics.batchAt(topic, partition, offset)!);
    if (!guarded.acceptsBatches(batches)) return false;
    worker.accept(delivered, end, batches);
    position.offset = end;
    return end < records.length;
  }

  ready(): boolean {
    return !this.#closed && this.blockers().size === 0;
  }

  blockers(): ReadonlyMap<string, string> {
    return blockersOf(this.#assignments.map(({ guarded }) => guarded));
  }

  lag(): ReadonlyMap<string, number> {
    return new Map(this.readings().map(({ topic, partition, lag }) => [`${topic}/${partition}`, lag]));
  }

  readings(): readonly PartitionReading[] {
    return this.#assignments.map(({ topic, partition, guarded: { worker } }) => {
      const end = this.#topics.partitionsOf(topic)[partition]!.length;
      const { settled, writingSinceMs, oldestUnwrittenMs } = worker;
      return { topic, partition, lag: Math.max(0, end - settled), writingSinceMs, oldestUnwrittenMs };
    });
  }

  /** Resolves when all records are committed; with `stopped`, including those in paused partitions. */
  async idle({ stopped = false } = {}): Promise<void> {
    const isBehind = ({ topic, partition, guarded: { worker } }: Assignment) =>
      (worker.healthy || stopped) && worker.done < this.#topics.partitionsOf(topic)[partition]!.length;
    while (!this.#closed && this.#assignments.some(isBehind)) await nextTurn();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#unlisten();
    await Promise.all(this.#assignments.map(({ guarded }) => guarded.drain(DRAIN_MS)));
    for (const { position } of this.#assignments) position.isClosed = true;
  }

  /** Ends like a killed process, which finishes and commits nothing more. */
  kill(): void {
    this.#closed = true;
    this.#unlisten();
    for (const { guarded, position } of this.#assignments) {
      position.isClosed = true;
      guarded.end();
    }
  }
}
