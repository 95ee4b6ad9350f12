import type { LogMark } from './partitions/log-mark.ts';

export type { LogMark } from './partitions/log-mark.ts';

/** A record to publish, as uninterpreted bytes. */
export interface OutgoingRecord {
  topic: string;
  /** Kafka's murmur2 of the key selects the partition. Null distributes records across all partitions. */
  key: Buffer | null;
  /** Publishes to this existing partition, regardless of the key. */
  partition?: number;
  value: Buffer;
  headers?: Record<string, string | Buffer>;
}

/** A record with or without a value. Kafka distinguishes a null value from an empty value. */
export type PublishedRecord = Omit<OutgoingRecord, 'value'> & { value: Buffer | null };

export interface RecordMetadata {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds from the broker's clock; null for a topic with producer timestamps. */
  readonly loggedAtMs: number | null;
}

export interface SendForOffsetOptions {
  /**
   * No attempt starts after this time, so that a record reported as failed is not stored after later requests. A
   * running attempt is awaited. Defaults to the producer's delivery timeout.
   */
  readonly attemptsMaxMs?: number;
}

/** Publishes records. An acknowledged record is stored on every in-sync replica, once and in order. */
export interface Producer {
  /** Bytes passed to `send` that are neither acknowledged nor failed. The caller must limit them. */
  readonly bytesHeld: number;
  /** Calls `done` exactly once. There is no promise per record or call, because this is the hot path. */
  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void;
  /**
   * Publishes a record in order with the records of `send`, and returns its offset. Not for the hot path.
   * @throws the faults of `send`, or a fault if the record is stored but its offset is unknown. Publish the record
   * again
   */
  sendForOffset(record: PublishedRecord, options?: SendForOffsetOptions): Promise<RecordMetadata>;
  /** Resolves to true if brokers acknowledged records recently or respond to a probe. */
  ready(): Promise<boolean>;
  /** Waits for sent records, up to a time limit, then disconnects. */
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

/** The outcome of a record, returned instead of thrown. */
export type Outcome =
  | { kind: 'ok' }
  /** Dropped intentionally, and counted by reason. */
  | { kind: 'drop'; reason: string }
  /** Published unchanged to `<topic>.dead` with this reason. */
  | { kind: 'deadLetter'; reason: string };

/** Identifies a block in a partition by its offsets, from `start` up to, but not including, `end`. */
export interface BlockName {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  /** Version of the transform that builds the block. Part of tokens. */
  readonly transformVersion: number;
  /**
   * True if rows of the block may have been sent before. The store may have some of the rows, or only the token, so a
   * writer first reads which rows are stored (`storeOnce`).
   */
  readonly triedBefore?: boolean;
  /** Time of the block's first record. Part of tokens, because a recreated topic has the same offsets. */
  readonly firstTimestampMs?: number;
  /** When an operator accepted a replaced log. Part of tokens, because offsets in the new log may repeat. */
  readonly logDecidedAtMs?: number;
}

/**
 * Builds a partition's rows for a store. `add` must be pure, because a block that is rebuilt after a crash must have
 * the same rows for the same token.
 */
export interface BlockBuilder {
  readonly rows: number;
  readonly bytes: number;
  /** Adds a record. If `add` throws, the record becomes a dead letter, and the builder must be unchanged. */
  add(record: StreamRecord): Outcome;
  /**
   * Computes the inputs of the rows besides the records. Omitted if there are none. Called once in log order, after the
   * block is closed and before its intent is committed.
   * @throws RetryableFault if the call should be repeated; any other fault pauses the partition
   */
  settle?(origin: BlockOrigin): Promise<BlockTrace>;
  /**
   * Writes the rows with tokens derived from the block's name. Not called for a block without rows.
   * @throws RetryableFault if the call should be repeated; any other fault pauses the partition
   */
  write(block: BlockName, signal: AbortSignal): Promise<void>;
  /** Called once when the block is committed or lost to another owner, so that buffers can be reused. */
  release(): void;
}

/** What earlier blocks stored in commits. The sink defines the strings, which have at most 1,000 characters each. */
export interface BlockOrigin {
  /** `carries` of the previous block; null for the first block in a log and after a decision about a replaced log. */
  readonly carried: string | null;
  /** `basis` in the intent of an owner that did not complete this block; null if the block has no committed intent. */
  readonly basis: string | null;
}

export interface BlockTrace {
  /** The inputs of the rows besides the records. Passed to `settle` when the block is rebuilt. */
  readonly basis: string;
  readonly carries: string;
}

export class RetryableFault extends Error {
  override readonly name: string = 'RetryableFault';
}

/** The store rejected an insert because of its size. The same work is retried, and fewer rows may succeed. */
export class OversizeFault extends RetryableFault {
  override readonly name = 'OversizeFault';
}

/** A schema is not registered for its subject, because the release that writes it is not deployed yet. */
export class UnregisteredSchemaFault extends Error {
  override readonly name = 'UnregisteredSchemaFault';
}

/** Caches the ids and contents of registered schemas, so that known schemas are available without the registry. */
export interface SchemaRegistry {
  /**
   * Returns the id of exactly this schema, never the id of a newer version.
   * @throws UnregisteredSchemaFault, or a fault of the registry or network. The next call sends a new request
   */
  idOf(subject: string, schema: string): Promise<number>;
  /** Returns the registered schema, or null, which is not cached, if the id is unknown. @throws the faults of `idOf` */
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
  /** Returns true while the consumer is a group member and no partition is blocked. */
  ready(): boolean;
  /** Returns why partitions are paused or make no progress, by `topic/partition`. */
  blockers(): ReadonlyMap<string, string>;
  /** Returns the unprocessed records before the last known end of the log, by assigned `topic/partition`. */
  lag(): ReadonlyMap<string, number>;
  /** Starts no new blocks, finishes blocks whose intent is committed, and leaves the group. */
  close(): Promise<void>;
}

/** The state of a record consumer's partition when it is assigned. */
export interface AssignedPartition {
  readonly topic: string;
  readonly partition: number;
  /** The group's committed offset, or the start of the log if the group has no commit. */
  readonly committed: number;
  readonly logStart: number;
  /** True if an operator chose `committed` and nothing was committed afterwards. */
  readonly isOperatorDecision: boolean;
  /** Aborted when the partition is revoked. */
  readonly signal: AbortSignal;
  /**
   * Returns true if the log still contains a batch that was read, false if the log was replaced, and null if no
   * comparison is possible.
   * @throws RetryableFault
   */
  hasBatch(mark: LogMark): Promise<boolean | null>;
}

/** A batch's offsets from `start` up to, but not including, `end`, including offsets without a record. */
export interface BatchPosition {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  /** The log's batch before `end`; null if unknown. */
  readonly mark: LogMark | null;
  /** The group's committed offset. Records before it are not delivered again. */
  readonly committed: number;
  /** Aborted when the partition is revoked. All batches of an assignment have the same signal. */
  readonly signal: AbortSignal;
  /** Reports that unfinished work has ended, so that `unfinishedFrom` is called again. May be called at any time. */
  workEnded(): void;
}

/** A service's handler for records that are processed in order, batch by batch. */
export interface BatchHandler {
  /**
   * Called with one batch at a time per partition, in log order.
   * @throws RetryableFault if the batch should be delivered again; any other fault pauses the partition
   */
  onBatch(records: readonly StreamRecord[], position: BatchPosition): Promise<void>;
  /**
   * Returns the start offset, which must not be after `committed`. Defaults to `committed`.
   * @throws RetryableFault if the call should be repeated
   */
  onAssign?(assigned: AssignedPartition): Promise<number>;
  /** Called after the partition's last batch in this process has ended. */
  onRevoke?(topic: string, partition: number): void;
  /**
   * Returns the lowest offset whose work is unfinished after its batch has ended, or null if there is none. Batches at
   * or after this offset are not committed. Called at the end of each batch and after each `workEnded`.
   */
  unfinishedFrom?(position: BatchPosition): number | null;
  readonly batchRecordsMax?: number;
}

/** Publishes records, and resolves when all of them are acknowledged. @throws the producer's fault */
export function sendAll(producer: Pick<Producer, 'send'>, records: readonly OutgoingRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    if (records.length === 0) return resolve();
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
}
