import type { LogMark } from './partitions/log-mark.ts';

export type { LogMark } from './partitions/log-mark.ts';

/** A record to be published, as bytes that are not interpreted here. */
export interface OutgoingRecord {
  topic: string;
  /** Null spreads the records over all partitions; otherwise Kafka's murmur2 of the key picks one. */
  key: Buffer | null;
  /** The partition to publish to, whatever the key says; it must exist. Absent: the key decides. */
  partition?: number;
  value: Buffer;
  headers?: Record<string, string | Buffer>;
}

/** A record with or without a value; Kafka distinguishes no value from an empty one. */
export type PublishedRecord = Omit<OutgoingRecord, 'value'> & { value: Buffer | null };

/** The place of a record in the log. */
export interface RecordMetadata {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the log's own clock; null on a topic that keeps the producer's times. */
  readonly loggedAtMs: number | null;
}

export interface SendForOffsetOptions {
  /**
   * No attempt to store the record begins after this time. For callers that have reported a failure by then, so that
   * the record does not overtake what was requested later. An attempt that has begun is waited for. Absent: the
   * delivery time-out of the producer.
   */
  readonly attemptsMaxMs?: number;
}

/** Publishes records; acknowledged means stored by every in-sync replica, once, in order. */
export interface Producer {
  /** Bytes handed to `send` that are neither acknowledged nor failed yet. The caller must bound them. */
  readonly bytesHeld: number;
  /**
   * Publishes all records or reports a fault; `done` is called exactly once. Records that arrive while a request is in
   * flight form the next request. There is no promise for each record or call, because this is the hot path.
   */
  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void;
  /**
   * Publishes one record and returns its place, for callers whose next step depends on the order of the log. It travels
   * with the records of `send`, in the order of the calls. Not for the hot path, since each call has a promise.
   * @throws as `done` of `send`, and when the record is stored but the brokers no longer say where. Then the caller
   * publishes it again, which gives it a later place
   */
  sendForOffset(record: PublishedRecord, options?: SendForOffsetOptions): Promise<RecordMetadata>;
  /** True when the brokers acknowledged something recently, or answer a probe now. */
  ready(): Promise<boolean>;
  /** Waits for everything that was sent, within a bound, then disconnects. */
  close(): Promise<void>;
}

/** A record read from the log. */
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
  /** Goes to `<topic>.dead` as it was, with this reason. */
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
   * True when rows of the block may have reached the store before: sent by this owner or an earlier one, or before an
   * operator decided to read on in a log that was replaced. The store may then have some of the rows, or remember the
   * token and have none. So a writer of the block first reads which rows are stored (`storeOnce`). Absent when none
   * were sent.
   */
  readonly triedBefore?: boolean;
  /**
   * Time of the block's first record when the block was named. A recreated topic has the same offsets at other times.
   * With the time in the token, the store does not mistake new rows for stored ones.
   */
  readonly firstTimestampMs?: number;
  /**
   * When an operator decided that this log was replaced and is read on; absent for a log that never was. Part of tokens:
   * the first block behind the decision may have the start, end and first record of one that was written before.
   */
  readonly logDecidedAtMs?: number;
}

/**
 * Rows of one partition on their way to a store. `add` must be pure: the same records give the same rows, always,
 * because after a crash the block is built again and written under the same token.
 */
export interface BlockBuilder {
  readonly rows: number;
  readonly bytes: number;
  /** Takes one record. A throw is a dead letter with the fault as its reason, and must leave the builder as it was. */
  add(record: StreamRecord): Outcome;
  /**
   * Settles what the rows depend on besides the block's records; absent where they depend on nothing else. Called once
   * the block is cut and before it is named, in the order of the log, and before any row of it is written. The answer is
   * kept in the commits that name and complete the block.
   * @throws RetryableFault to be called again; any other fault stops the partition loudly
   */
  settle?(origin: BlockOrigin): Promise<BlockTrace>;
  /**
   * Writes the rows under tokens made of the block's name. Called again with the same block until it succeeds; not
   * called for a block without rows.
   * @throws RetryableFault to be called again; any other fault stops the partition loudly.
   */
  write(block: BlockName, signal: AbortSignal): Promise<void>;
  /** The block has been committed, or is not ours any more: buffers may be used again. Called once. */
  release(): void;
}

/** What earlier blocks left in commits. The texts belong to the sink, at most 1,000 characters each. */
export interface BlockOrigin {
  /**
   * `carries` of the block before; null for the first block of a log, and after a decision about a log that was
   * replaced.
   */
  readonly carried: string | null;
  /**
   * `basis` of the owner that named this block and did not complete it. Rows made from it may be stored, so the block
   * is built from it again. Null for a block that nobody has named.
   */
  readonly basis: string | null;
}

/** What a block adds to commits. */
export interface BlockTrace {
  /** What its rows depend on besides the records. It is passed in when the block is built again. */
  readonly basis: string;
  /** What the next block gets. */
  readonly carries: string;
}

/** A fault that waiting may end. The same work is tried again; the partition is paused meanwhile. */
export class RetryableFault extends Error {
  override readonly name: string = 'RetryableFault';
}

/**
 * The store had no room for so many rows at once. The same work is tried again, and fewer rows at a time may succeed.
 */
export class OversizeFault extends RetryableFault {
  override readonly name = 'OversizeFault';
}

/**
 * The registry answered that a schema is not registered under its subject: the release that writes it is not deployed
 * yet.
 */
export class UnregisteredSchemaFault extends Error {
  override readonly name = 'UnregisteredSchemaFault';
}

/** Ids and texts of registered schemas. Each is asked for once, so a registry that is down later does no harm. */
export interface SchemaRegistry {
  /**
   * The id under which exactly this text is registered: never that of a newer version, whose readers would misread what
   * was written by this one. Deployment registers the schemas of a release; a process only looks them up.
   * @throws UnregisteredSchemaFault when it is not registered under the subject; else what the registry or the network
   * says. Either is asked again next time
   */
  idOf(subject: string, schema: string): Promise<number>;
  /** The schema's text as it was registered; null when the registry has no such id, asked again next time. @throws as `idOf` */
  schemaOf(id: number): Promise<string | null>;
}

/** What a service hands to a block consumer. */
export interface BlockSink {
  /**
   * Version of the transform, part of the intent and of every token. Raise it when the same record would give other
   * rows.
   */
  readonly transformVersion: number;
  openBlock(topic: string, partition: number): BlockBuilder;
}

export interface BlockLimits {
  rowsMax: number;
  bytesMax: number;
  /** A block is cut at this age although it is not full. */
  ageMaxMs: number;
}

/** A running consumer. */
export interface Consumer {
  /**
   * True while it is a member of its group, no partition has stopped, and nothing keeps one from going on
   * (`hindrances`).
   */
  ready(): boolean;
  /**
   * Why partitions stand or make no progress, as sentences by `topic/partition`. Explains why the consumer is not
   * ready.
   */
  blockers(): ReadonlyMap<string, string>;
  /**
   * Records before the last known end of the log that are not done, by `topic/partition`, for the partitions assigned
   * here.
   */
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
  /** The first offset that the log still has. */
  readonly logStart: number;
  /** True when an operator decided that reading goes on at `committed`, and nothing was committed after that. */
  readonly isOperatorDecision: boolean;
  /** Aborted when the partition is no longer assigned here. */
  readonly signal: AbortSignal;
  /**
   * Tells whether the log still has a batch that was read of it: false says that the log was replaced, null that nothing
   * can be compared any more.
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
  /** The batch of the log before `end`; null when the log did not say. */
  readonly mark: LogMark | null;
  /** The group's committed offset: nothing before it comes again. */
  readonly committed: number;
  /**
   * Aborted when the partition is no longer assigned here: stop as soon as it is safe. One signal for each assignment.
   */
  readonly signal: AbortSignal;
  /**
   * Says that some of the work behind `unfinishedFrom` is done, so that more may be committed. `unfinishedFrom` is then
   * asked again at once, also while no batch comes. May be called at any time; does nothing once the partition is not
   * ours any more.
   */
  workEnded(): void;
}

/** What a service does with records that it takes in order, batch by batch. */
export interface BatchHandler {
  /**
   * Called with one batch at a time per partition, in the order of the log; the next comes when the promise resolves
   * and what may be committed is (`unfinishedFrom`).
   * @throws RetryableFault to get the same batch again after a wait; any other fault stops the partition loudly
   */
  onBatch(records: readonly StreamRecord[], position: BatchPosition): Promise<void>;
  /**
   * Says where to start, at or before `committed`: what the store says it has applied. Default: `committed`.
   * @throws RetryableFault to be asked again
   */
  onAssign?(assigned: AssignedPartition): Promise<number>;
  /** The partition's last batch here has ended. */
  onRevoke?(topic: string, partition: number): void;
  /**
   * The lowest offset whose work goes on although its batch has ended; null, the default, when there is none. Nothing
   * from this offset on is committed: the commit is the end of the last batch that lies wholly before it. Asked at the
   * end of each batch, and after each `workEnded`.
   */
  unfinishedFrom?(position: BatchPosition): number | null;
  /** Most records in one batch; default 1,000. */
  readonly batchRecordsMax?: number;
}

/**
 * Publishes records and resolves when all of them are acknowledged; at once for an empty list. Each call costs a
 * promise, so the hot path uses `send` with a callback instead.
 * @throws the producer's fault
 */
export function sendAll(producer: Pick<Producer, 'send'>, records: readonly OutgoingRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    if (records.length === 0) return resolve();
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
}
