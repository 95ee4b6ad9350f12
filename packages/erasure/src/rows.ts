/** Finds, deletes and counts people's rows in ClickHouse. */

/** An identity whose rows up to the cut-off are erased. */
export interface ErasureTarget {
  readonly environmentId: string;
  /** 16 bytes, not the zero key. */
  readonly key: Buffer;
  readonly cutoffMs: number;
}

/** Number of rows that contain an erased identity in a column. A row is counted once for each such column. */
export interface FoundRows {
  readonly table: string;
  readonly column: string;
  /** `own`: the rows are deleted. `carried`: the rows belong to another person, and only the column is blanked. */
  readonly as: 'own' | 'carried';
  readonly environmentId: string;
  readonly key: Buffer;
  readonly rows: number;
}

/** Rows that were counted several times because several columns contain identities in the batch. */
export interface SharedRows {
  readonly table: string;
  readonly environmentId: string;
  /** One key for each time the row was counted. */
  readonly keys: readonly Buffer[];
  readonly rows: number;
}

/** Rows of one node that the batch's last sweep found there, stored before the deletes. */
export interface SweepResult {
  readonly found: readonly FoundRows[];
  readonly shared: readonly SharedRows[];
}

/** Two identities that a decision linked or that were already linked. */
export interface StoredLink {
  readonly environmentId: string;
  readonly a: Buffer;
  readonly b: Buffer;
  /** Epoch milliseconds. The earliest receipt by a gateway. */
  readonly receivedAtMs: number;
  /** Position of the last fact for this link. */
  readonly last: FactOrder;
}

/** Position of a fact among an environment's facts, which are in one partition per generation. */
export interface FactOrder {
  readonly generation: number;
  readonly offset: number;
}

/** One side of an unlink. Earlier links to the other side no longer apply. */
export interface StoredUnlink {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly side: 'split' | 'stayed';
  /** Identifies the unlink in its environment. */
  readonly at: FactOrder;
  /** Epoch milliseconds of the request. */
  readonly unlinkedAtMs: number;
}

/** Offset of a link's fact in the link topic. */
export interface FactLocation {
  readonly environmentId: string;
  readonly generation: number;
  readonly partition: number;
  readonly offset: number;
}

/** A consent that is newer than the cut-off. Times are epoch milliseconds. */
export interface KeptConsent {
  readonly environmentId: string;
  readonly identityKey: Buffer;
  readonly status: string;
  readonly receivedAt: number;
  readonly position: { readonly partition: number; readonly offset: number; readonly loggedAtMs: number };
}

/**
 * Operates on all people in a batch, whose id is 16 random bytes. Any process may retry a call. Every call rejects with
 * a StoreFault if it cannot complete or the batch has no targets, and never returns an empty result instead.
 */
export interface ErasureRows {
  /** Stores the batch's identities. If an identity occurs several times, the latest cut-off applies. */
  putTargets(batchId: Buffer, targets: readonly ErasureTarget[]): Promise<void>;
  /**
   * Deletes own rows up to the cut-off and blanks carried keys. Rows that are inserted or moved concurrently may
   * remain. Repeat the sweep until `findSurvivors` finds none.
   * @param signal stops waiting for a mutation, which continues; ignored while derived rows are replaced
   * @returns the rows found before the deletes
   */
  sweep(batchId: Buffer, signal?: AbortSignal): Promise<FoundRows[]>;
  /** Rows found by the last sweep on each node, even if its eraser crashed. Empty before the first sweep. */
  readFound(batchId: Buffer): Promise<SweepResult[]>;
  /** Finds rows that queries still return. */
  findSurvivors(batchId: Buffer): Promise<FoundRows[]>;
  /** Finds consents later than the cut-off. */
  findConsents(batchId: Buffer): Promise<KeptConsent[]>;
  /**
   * Streams the batch's links received up to the latest cut-off, each pair once. One person may have half a million
   * links. Equal keys share one Buffer.
   */
  findLinks(batchId: Buffer): AsyncIterable<StoredLink>;
  /** Finds the batch's unlinks up to the latest cut-off. */
  findUnlinks(batchId: Buffer): Promise<StoredUnlink[]>;
  /** Finds the first offsets of the batch's links that are later than the cut-off. */
  findLaterLinks(batchId: Buffer): Promise<FactLocation[]>;
  /** Waits up to 90 seconds for all running inserts, which may belong to a crashed writer. */
  awaitInserts(signal?: AbortSignal): Promise<void>;
  /** Finds rows in active files, including deleted rows until `removeDeleted` removes them. */
  findOnDisk(batchId: Buffer): Promise<FoundRows[]>;
  /**
   * Rewrites all files that contain deleted rows, for all batches.
   * @returns the time of completion by the store's clock, in epoch milliseconds
   */
  removeDeleted(signal?: AbortSignal): Promise<number>;
  /** Number of files that were replaced at or before this time (store's clock) and are still on disk. */
  countReplaced(untilMs: number): Promise<number>;
  /** Batches that have targets, including those of crashed erasers. */
  readBatches(): Promise<Buffer[]>;
  /** Deletes a batch's targets. */
  dropTargets(batchId: Buffer): Promise<void>;
  /** Returns whether the store can be used. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}
