/** The rows of people in ClickHouse, as an erasure finds, deletes and counts them. */

/** An identity whose rows are erased up to its cut-off. */
export interface ErasureTarget {
  readonly environmentId: string;
  /** 16 bytes, not the zero key. */
  readonly key: Buffer;
  readonly cutoffMs: number;
}

/** Rows of a table that name an erased identity in one column. A row that names it in two counts twice. */
export interface FoundRows {
  readonly table: string;
  readonly column: string;
  /** `own` rows are deleted; `carried` ones belong to another person, and the column is blanked. */
  readonly as: 'own' | 'carried';
  readonly environmentId: string;
  readonly key: Buffer;
  readonly rows: number;
}

/** Rows that were counted several times, because several columns name identities of the batch. */
export interface SharedRows {
  readonly table: string;
  readonly environmentId: string;
  /** One key for each count of such a row. */
  readonly keys: readonly Buffer[];
  readonly rows: number;
}

/** What the last sweep of a batch found, stored before the deletes. */
export interface NotedRows {
  readonly found: readonly FoundRows[];
  readonly shared: readonly SharedRows[];
}

/** Two identities that a decision linked, or found linked. */
export interface StoredLink {
  readonly environmentId: string;
  readonly a: Buffer;
  readonly b: Buffer;
  /** Epoch milliseconds of the first acceptance by the gateway. */
  readonly receivedAtMs: number;
  /** Order of the last fact that linked them. */
  readonly last: FactOrder;
}

/** The order of an environment's facts, which are in one partition at a time. */
export interface FactOrder {
  readonly generation: number;
  readonly offset: number;
}

/** One side of an unlink, which ends earlier links with members of the other side. */
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

/** A consent that is not erased. Times are epoch milliseconds. */
export interface KeptConsent {
  readonly environmentId: string;
  readonly identityKey: Buffer;
  readonly status: string;
  readonly receivedAt: number;
  readonly position: { readonly partition: number; readonly offset: number; readonly loggedAtMs: number };
}

/**
 * The rows of people, for all people of a batch (16 random bytes) together. Calls may be repeated by any process.
 * Every call rejects with a StoreFault if it cannot complete or the batch has no targets: that is never "nothing found".
 */
export interface ErasureRows {
  /** Stores the identities of the batch. The latest cut-off of an identity applies. */
  putTargets(batchId: Buffer, targets: readonly ErasureTarget[]): Promise<void>;
  /**
   * Deletes own rows up to the cut-off and blanks carried keys. Rows inserted or moved at the same time may remain and
   * are found as survivors: repeat until there are none.
   * @param signal ends the wait for a mutation, which continues; ignored while derived rows are replaced
   * @returns the rows found before
   */
  sweep(batchId: Buffer, signal?: AbortSignal): Promise<FoundRows[]>;
  /** Empty before the first sweep. Includes what a dead eraser found. */
  readNoted(batchId: Buffer): Promise<NotedRows>;
  /** Rows that a query still finds. */
  findSurvivors(batchId: Buffer): Promise<FoundRows[]>;
  /** Consents later than the cut-off. */
  findConsents(batchId: Buffer): Promise<KeptConsent[]>;
  /**
   * Links received up to the latest cut-off that touch the batch, each pair once. Streamed, because one person may have
   * half a million. Equal keys share one Buffer.
   */
  findLinks(batchId: Buffer): AsyncIterable<StoredLink>;
  /** Unlinks up to the latest cut-off that touch the batch. */
  findUnlinks(batchId: Buffer): Promise<StoredUnlink[]>;
  /** First offsets of links later than the cut-off that touch the batch. */
  findLaterLinks(batchId: Buffer): Promise<FactLocation[]>;
  /** Waits, up to a minute, for all running inserts, which may belong to a writer that has died. */
  awaitInserts(signal?: AbortSignal): Promise<void>;
  /** Rows in active files, deleted ones included until `removeDeleted`. */
  findOnDisk(batchId: Buffer): Promise<FoundRows[]>;
  /**
   * Rewrites files with deleted rows of all batches.
   * @returns epoch milliseconds of completion by the store's clock
   */
  removeDeleted(signal?: AbortSignal): Promise<number>;
  /** Number of files that were replaced up to this time of the store's clock and are still on disk. */
  countReplaced(untilMs: number): Promise<number>;
  /** Batches with targets, including those of dead erasers. */
  readBatches(): Promise<Buffer[]>;
  /** Deletes the targets of a batch with their files. */
  dropTargets(batchId: Buffer): Promise<void>;
  close(): Promise<void>;
}
