import type { LogMark } from './partitions/log-mark.ts';

export type { LogMark } from './partitions/log-mark.ts';

/** A record to publish, as uninterpreted bytes. */
export interface OutgoingRecord {
  topic: string;
  /** Null spreads records over all partitions; otherwise Kafka's murmur2 of the key selects the partition. */
  key: Buffer | null;
  /** An existing partition to publish to, regardless of the key. Absent: the key decides. */
  partition?: number;
  value: Buffer;
  headers?: Record<string, string | Buffer>;
}

/** A record with or without a value; Kafka distinguishes a null value from an empty value. */
export type PublishedRecord = Omit<OutgoingRecord, 'value'> & { value: Buffer | null };

export interface RecordMetadata {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the broker's clock; null on a topic with producer times. */
  readonly loggedAtMs: number | null;
}

export interface SendForOffsetOptions {
  /**
   * No attempt begins after this time, so that a record reported as failed is not stored after later requests. A
   * running attempt is awaited. Default: the producer's delivery timeout.
   */
  readonly attemptsMaxMs?: number;
}

/** Publishes records. Acknowledged means stored on every in-sync replica, once, in order. */
export interface Producer {
  /** Bytes passed to `send` that are neither acknowledged nor failed. The caller must bound them. */
  readonly bytesHeld: number;
  /** `done` is called exactly once. No promise per record or call, because this is the hot path. */
  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void;
  /**
   * Publishes a record, in order with the records of `send`, and returns its offset. Not for the hot path.
   * @throws the faults of `send`, and when the record is stored but its offset is unknown: publish the record again
   */
  sendForOffset(record: PublishedRecord, options?: SendForOffsetOptions): Promise<RecordMetadata>;
  /** True when brokers acknowledged records recently, or respond to a probe now. */
  ready(): Promise<boolean>;
  /** Waits for sent records within a bound, then disconnects. */
  close(): Promise<void>;
}

export interface StreamRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds, set by the producer or the broker. */
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, Buffer | string | undefined>>;
}

/** The outcome of a record: a value instead of an exception. */
export type Outcome =
  | { kind: 'ok' }
  /** Dropped intentionally, and counted by reason. */
  | { kind: 'drop'; reason: string }
  /** Published unchanged to `<topic>.dead`, with this reason. */
  | { kind: 'deadLetter'; reason: string };

/** Identifies a block in a partition: offsets from `start` to before `end`. */
export interface BlockName {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  /** Version of the transform that builds the block; part of tokens. */
  readonly transformVersion: number;
  /**
   * True when rows of the block may have been sent before. The store may have some of the rows, or know the token
   * without the rows, so a writer first reads which rows are stored (`storeOnce`).
   */
  readonly triedBefore?: boolean;
  /** Time of the block's first record; part of tokens, because a recreated topic has the same offsets. */
  readonly firstTimestampMs?: number;
  /**
   * When an operator accepted a replaced log; part of tokens, because its blocks may have the offsets of earlier
   * blocks.
   */
  readonly logDecidedAtMs?: number;
}

/**
 * Rows of a partition to be written to a store. `add` must be pure: a block that is rebuilt after a crash must have the
 * same rows under the same token.
 */
export interface BlockBuilder {
  readonly rows: number;
  readonly bytes: number;
  /** Adds a record. If this throws, the record becomes a dead letter, and the builder must be unchanged. */
  add(record: StreamRecord): Outcome;
  /**
   * Computes what the rows depend on in addition to the block's records; absent when nothing. Called once, after the
   * block is closed and before it is named, in log order.
   * @throws RetryableFault to be called again; any other fault pauses the partition
   */
  settle?(origin: BlockOrigin): Promise<BlockTrace>;
  /**
   * Writes the rows under tokens derived from the block's name. Not called for a block without rows.
   * @throws RetryableFault to be called again; any other fault pauses the partition
   */
  write(block: BlockName, signal: AbortSignal): Promise<void>;
  /** Called once, when the block is committed or lost to another owner, so that buffers may be reused. */
  release(): void;
}

/** What earlier blocks stored in commits. The strings are defined by the sink, at most 1,000 characters each. */
export interface BlockOrigin {
  /** `carries` of the previous block; null for the first block of a log, and after a decision about a replaced log. */
  readonly carried: string | null;
  /** `basis` committed by an owner that named this block without completing it; null for a block without a name. */
  readonly basis: string | null;
}

export interface BlockTrace {
  /** What the rows depend on in addition to the records; passed in when the block is rebuilt. */
  readonly basis: string;
  readonly carries: string;
}

export class RetryableFault extends Error {
  override readonly name: string = 'RetryableFault';
}

/** The store refused an insert because of its size. The same work is retried; fewer rows may succeed. */
export class OversizeFault extends RetryableFault {
  override readonly name = 'OversizeFault';
}

/** A schema is not registered under its subject: the release that writes it is not deployed yet. */
export class UnregisteredSchemaFault extends Error {
  override readonly name = 'UnregisteredSchemaFault';
}

/** Ids and contents of registered schemas, cached, so that known schemas remain available without the registry. */
export interface SchemaRegistry {
  /**
   * The id under which exactly this schema is registered, never the id of a newer version.
   * @throws UnregisteredSchemaFault, or a fault of the registry or the network; the next call sends a new request
   */
  idOf(subject: string, schema: string): Promise<number>;
  /** The registered schema; null, and not cached, when the registry has no such id. @throws like `idOf` */
  schemaOf(id: number): Promise<string | null>;
}

export interface BlockSink {
  /** Part of intents and tokens. Must be increased when the same record produces different rows. */
  readonly transformVersion: number;
  openBlock(topic: string, partition: number): BlockBuilder;
}

export interface BlockLimits {
  rowsMax: number;
  bytesMax: number;
  /** A block is closed at this age even if it is not full. */
  ageMaxMs: number;
}

export interface Consumer {
  /** True while the consumer is a member of its group and no partition is blocked. */
  ready(): boolean;
  /** Why partitions are paused or make no progress: a message by `topic/partition`. */
  blockers(): ReadonlyMap<string, string>;
  /** Unprocessed records before the last known end of the log, by assigned `topic/partition`. */
  lag(): ReadonlyMap<string, number>;
  /** Starts no new blocks, finishes blocks whose intent is committed, and leaves the group. */
  close(): Promise<void>;
}

/** The state of a record consumer's partition at its assignment. */
export interface AssignedPartition {
  readonly topic: string;
  readonly partition: number;
  /** The group's committed offset, or the first offset of the log when it has committed none. */
  readonly committed: number;
  readonly logStart: number;
  /** True when an operator chose `committed`, and nothing was committed afterwards. */
  readonly isOperatorDecision: boolean;
  /** Aborted when the partition is revoked. */
  readonly signal: AbortSignal;
  /**
   * Whether the log still has a batch that was read. False means that the log was replaced; null, that no comparison
   * is possible.
   * @throws RetryableFault
   */
  hasBatch(mark: LogMark): Promise<boolean | null>;
}

/** The offsets of a batch, from `start` to before `end`, including offsets without a record. */
export interface BatchPosition {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  /** The log's batch before `end`; null when unknown. */
  readonly mark: LogMark | null;
  /** The group's committed offset: records before it are not delivered again. */
  readonly committed: number;
  /** Aborted when the partition is revoked. The same signal for the whole assignment. */
  readonly signal: AbortSignal;
  /** Reports that unfinished work has ended, so that `unfinishedFrom` is called again. May be called at any time. */
  workEnded(): void;
}

/** A service's handler for records that are processed in order, batch by batch. */
export interface BatchHandler {
  /**
   * Called with one batch at a time per partition, in log order.
   * @throws RetryableFault to get the same batch again; any other fault pauses the partition
   */
  onBatch(records: readonly StreamRecord[], position: BatchPosition): Promise<void>;
  /**
   * Returns the start offset, at or before `committed`. Default: `committed`.
   * @throws RetryableFault to be called again
   */
  onAssign?(assigned: AssignedPartition): Promise<number>;
  /** Called after the partition's last batch in this process has ended. */
  onRevoke?(topic: string, partition: number): void;
  /**
   * The lowest offset with unfinished work after its batch has ended; null, the default, when all work is finished.
   * Batches from this offset on are not committed. Called at the end of each batch, and after each `workEnded`.
   */
  unfinishedFrom?(position: BatchPosition): number | null;
  readonly batchRecordsMax?: number;
}

/**
 * Publishes records and resolves when all of them are acknowledged; immediately for an empty list.
 * @throws the producer's fault
 */
export function sendAll(producer: Pick<Producer, 'send'>, records: readonly OutgoingRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    if (records.length === 0) return resolve();
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
}
