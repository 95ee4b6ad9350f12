/** A record on its way to the log. Bytes only: what they mean is the caller's business. */
export interface OutgoingRecord {
  topic: string;
  /** Null spreads the records over all partitions; otherwise Kafka's murmur2 of the key picks one. */
  key: Buffer | null;
  value: Buffer;
  headers?: Record<string, string | Buffer>;
}

/** Publishes records; acknowledged means stored by every in-sync replica, once, in order. */
export interface Producer {
  /** Bytes handed to `send` and neither acknowledged nor failed yet. The caller bounds them. */
  readonly bytesHeld: number;
  /**
   * Publishes all records or reports a fault; `done` is called exactly once. Whatever arrives while a request to the
   * brokers is in flight forms the next request. No promise per record or per call: this is the hot path.
   */
  send(records: readonly OutgoingRecord[], done: (fault: Error | null) => void): void;
  /** True when the brokers have acknowledged something lately or answer a probe now. */
  ready(): Promise<boolean>;
  /** Waits for everything sent, within a bound, then disconnects. */
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

/** What became of one record: a value, never an exception. */
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
   * Writes the rows under tokens made of the block's name. Called again with the same block until it succeeds.
   * @throws RetryableFault to be called again; any other fault stops the partition loudly.
   */
  write(block: BlockName, signal: AbortSignal): Promise<void>;
  /** The block has been committed, or is not ours any more: buffers may be used again. */
  release(): void;
}

/** A fault that passes: the same work is tried again, with the partition paused meanwhile. */
export class RetryableFault extends Error {
  override readonly name = 'RetryableFault';
}

/** What a service hands to a block consumer. */
export interface BlockSink {
  /** Version of the transform: part of the intent and of every token; raised when the same record gives other rows. */
  readonly transformVersion: number;
  openBlock(topic: string, partition: number): BlockBuilder;
}

export interface BlockLimits {
  rowsMax: number;
  bytesMax: number;
  /** Age at which a block is cut although it is not full. */
  ageMaxMs: number;
}

/** A running consumer. */
export interface Consumer {
  /** True while it is a member of its group and no partition has stopped. */
  ready(): boolean;
  /** Stops cutting blocks, finishes those whose intent is committed, leaves the group. */
  close(): Promise<void>;
}
