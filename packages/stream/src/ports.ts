import type { LogMark } from './partitions/log-mark.ts';

export type { LogMark } from './partitions/log-mark.ts';

/** A record to be published, as bytes that are not interpreted here. */
export interface OutgoingRecord {
  topic: string;
  /** Null spreads the records over all partitions; otherwise Kafka's murmur2 of the key picks one. */
  key: Buffer | null;
  /** An existing partition to publish to, whatever the key. Absent: the key decides. */
  partition?: number;
  value: Buffer;
  headers?: Record<string, string | Buffer>;
}

/** A record with or without a value; Kafka distinguishes no value from an empty one. */
export type PublishedRecord = Omit<OutgoingRecord, 'value'> & { value: Buffer | null };

export interface RecordMetadata {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the broker's clock; null on a topic that keeps the producer's times. */
  readonly loggedAtMs: number | null;
}

export interface SendForOffsetOptions {
  /**
   * No attempt begins after this time, so that a record whose failure was reported does not overtake later requests. A
   * running attempt is awaited. Default: the delivery time-out of the producer.
   */
  readonly attemptsMaxMs?: number;
}

/** Publishes records; acknowledged means stored by every in-sync replica, once, in order. */
export interface Producer {
  /** Bytes handed to `send` that are neither acknowledged nor failed yet. The caller must bound them. */
  readonly bytesHeld: number;
  /** `done` is called exactly once. No promise for each record or call, because this is the hot path. */
  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void;
  /**
   * Publishes one record, in order with those of `send`, and returns its offset. Not for the hot path.
   * @throws as `done` of `send`, and when the record is stored but its offset is unknown: publish it again then
   */
  sendForOffset(record: PublishedRecord, options?: SendForOffsetOptions): Promise<RecordMetadata>;
  /** True when the brokers acknowledged something recently, or answer a probe now. */
  ready(): Promise<boolean>;
  /** Waits for everything that was sent, within a bound, then disconnects. */
  close(): Promise<void>;
}

export interface StreamRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds, as the producer or the broker set it. */
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, Buffer | string | undefined>>;
}

/** The result of one record: a value instead of an exception. */
export type Outcome =
  | { kind: 'ok' }
  /** Left out on purpose, and counted under its reason. */
  | { kind: 'drop'; reason: string }
  /** Goes to `<topic>.dead` unchanged, with this reason. */
  | { kind: 'deadLetter'; reason: string };

/** Names a block of one partition: offsets from `start` to before `end`. */
export interface BlockName {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  /** Version of the transform that builds the block; part of tokens. */
  readonly transformVersion: number;
  /**
   * True when rows of the block may have been sent before. The store may have some of them, or remember the token
   * without them, so a writer first reads which rows are stored (`storeOnce`).
   */
  readonly triedBefore?: boolean;
  /** Time of the block's first record; part of tokens, because a recreated topic has the same offsets. */
  readonly firstTimestampMs?: number;
  /** When an operator accepted a replaced log; part of tokens, because its blocks may have names of earlier blocks. */
  readonly logDecidedAtMs?: number;
}

/**
 * Rows of one partition on their way to a store. `add` must be pure: a block that is built again after a crash must have
 * the same rows under the same token.
 */
export interface BlockBuilder {
  readonly rows: number;
  readonly bytes: number;
  /** Adds one record. A throw makes it a dead letter with the fault as its reason, and must leave the builder unchanged. */
  add(record: StreamRecord): Outcome;
  /**
   * Computes what the rows depend on besides the block's records; absent when there is nothing else. Called once, after
   * the block is cut and before it is named, in the order of the log.
   * @throws RetryableFault to be called again; any other fault pauses the partition
   */
  settle?(origin: BlockOrigin): Promise<BlockTrace>;
  /**
   * Writes the rows under tokens made of the block's name, until it succeeds. Not called for a block without rows.
   * @throws RetryableFault to be called again; any other fault pauses the partition
   */
  write(block: BlockName, signal: AbortSignal): Promise<void>;
  /** The block is committed or lost to another owner, so buffers may be reused. Called once. */
  release(): void;
}

/** What earlier blocks left in commits. The texts belong to the sink, at most 1,000 characters each. */
export interface BlockOrigin {
  /** `carries` of the previous block; null for the first block of a log, and after a decision about a replaced log. */
  readonly carried: string | null;
  /** `basis` committed by an owner that named this block and did not complete it; null for a block without a name. */
  readonly basis: string | null;
}

export interface BlockTrace {
  /** What its rows depend on besides the records; passed in when the block is built again. */
  readonly basis: string;
  readonly carries: string;
}

export class RetryableFault extends Error {
  override readonly name: string = 'RetryableFault';
}

/** The store refused so many rows in one insert. The same work is retried; fewer rows may succeed. */
export class OversizeFault extends RetryableFault {
  override readonly name = 'OversizeFault';
}

/** A schema is not registered under its subject: the release that writes it is not deployed yet. */
export class UnregisteredSchemaFault extends Error {
  override readonly name = 'UnregisteredSchemaFault';
}

/** Ids and texts of registered schemas, cached, so that known schemas survive an outage of the registry. */
export interface SchemaRegistry {
  /**
   * The id under which exactly this text is registered, never that of a newer version.
   * @throws UnregisteredSchemaFault, or the fault of the registry or the network; the next call sends a new request
   */
  idOf(subject: string, schema: string): Promise<number>;
  /** The schema's registered text; null, and not cached, when the registry has no such id. @throws as `idOf` */
  schemaOf(id: number): Promise<string | null>;
}

export interface BlockSink {
  /** Part of intents and tokens. Raise it when the same record gives other rows. */
  readonly transformVersion: number;
  openBlock(topic: string, partition: number): BlockBuilder;
}

export interface BlockLimits {
  rowsMax: number;
  bytesMax: number;
  /** A block is cut at this age although it is not full. */
  ageMaxMs: number;
}

export interface Consumer {
  /** True while it is a member of its group and no partition is blocked. */
  ready(): boolean;
  /** Why partitions are paused or make no progress: a message by `topic/partition`. */
  blockers(): ReadonlyMap<string, string>;
  /** Unprocessed records before the last known end of the log, by `topic/partition` assigned here. */
  lag(): ReadonlyMap<string, number>;
  /** Stops cutting blocks, finishes those whose intent is committed, leaves the group. */
  close(): Promise<void>;
}

/** The state of one partition of a record consumer when it is assigned. */
export interface AssignedPartition {
  readonly topic: string;
  readonly partition: number;
  /** The group's committed offset, or the first offset of the log when it has committed none. */
  readonly committed: number;
  readonly logStart: number;
  /** True when an operator chose `committed`, and nothing was committed after that. */
  readonly isOperatorDecision: boolean;
  /** Aborted when the partition is no longer assigned here. */
  readonly signal: AbortSignal;
  /**
   * Whether the log still has a batch that was read: false means that the log was replaced, null that nothing can be
   * compared.
   * @throws RetryableFault
   */
  hasBatch(mark: LogMark): Promise<boolean | null>;
}

/** The offsets of one batch: from `start` to before `end`, including offsets without a record. */
export interface BatchPosition {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  /** The log's batch before `end`; null when it is unknown. */
  readonly mark: LogMark | null;
  /** The group's committed offset: records before it are not delivered again. */
  readonly committed: number;
  /** Aborted when the partition is no longer assigned here. The same signal for the whole assignment. */
  readonly signal: AbortSignal;
  /** Reports that unfinished work has ended: `unfinishedFrom` is called again. May be called at any time. */
  workEnded(): void;
}

/** What a service does with records that it processes in order, batch by batch. */
export interface BatchHandler {
  /**
   * Called with one batch at a time per partition, in the order of the log.
   * @throws RetryableFault to get the same batch again; any other fault pauses the partition
   */
  onBatch(records: readonly StreamRecord[], position: BatchPosition): Promise<void>;
  /**
   * Returns where to start, at or before `committed`. Default: `committed`.
   * @throws RetryableFault to be called again
   */
  onAssign?(assigned: AssignedPartition): Promise<number>;
  /** The partition's last batch here has ended. */
  onRevoke?(topic: string, partition: number): void;
  /**
   * The lowest offset whose work continues after its batch has ended; null, the default, when there is none. Batches
   * from this offset on are not committed. Called at the end of each batch, and after each `workEnded`.
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
