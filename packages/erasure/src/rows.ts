/** An identity whose rows are erased up to its cut-off. */
export interface ErasureTarget {
  readonly environmentId: string;
  /** 16 bytes; never the zero key, which is nobody. */
  readonly key: Buffer;
  /** Epoch milliseconds: the time of the request. */
  readonly cutoffMs: number;
}

/**
 * Rows of one table that name an erased identity in one of their columns. A row that names it in two is counted twice.
 */
export interface FoundRows {
  readonly table: string;
  readonly column: string;
  /** Whether the row is deleted with the identity, or is somebody else's and only forgets it. */
  readonly as: 'own' | 'carried';
  readonly environmentId: string;
  readonly key: Buffer;
  readonly rows: number;
}

/** Rows of one table that were counted several times, because several columns name identities of the batch. */
export interface SharedRows {
  readonly table: string;
  readonly environmentId: string;
  /** One key for each time that such a row was counted; a key occurs twice if two columns name it. */
  readonly keys: readonly Buffer[];
  readonly rows: number;
}

/** What the last sweep of a batch found, noted before anything was deleted. */
export interface NotedRows {
  readonly found: readonly FoundRows[];
  readonly shared: readonly SharedRows[];
}

/** Two identities that a decision linked, or found linked already. */
export interface StoredLink {
  readonly environmentId: string;
  readonly a: Buffer;
  readonly b: Buffer;
  /** Epoch milliseconds: when the gateway accepted it, the first time. */
  readonly receivedAtMs: number;
  /** Where the last fact was that said so. */
  readonly last: FactOrder;
}

/** The order of facts: all facts of an environment are in one partition at a time, so generation, then offset. */
export interface FactOrder {
  readonly generation: number;
  readonly offset: number;
}

/** One side of an unlink: links from before it with members of the other side are ended. */
export interface StoredUnlink {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly side: 'split' | 'stayed';
  /** Names the unlink among those of its environment. */
  readonly at: FactOrder;
  /** Epoch milliseconds: when it was requested. */
  readonly unlinkedAtMs: number;
}

/** Where the fact of a link stands in the link topic. */
export interface FactLocation {
  readonly environmentId: string;
  readonly generation: number;
  readonly partition: number;
  readonly offset: number;
}

/** A consent that stays. Times are epoch milliseconds. */
export interface KeptConsent {
  readonly environmentId: string;
  readonly identityKey: Buffer;
  readonly status: string;
  readonly receivedAt: number;
  readonly position: { readonly partition: number; readonly offset: number; readonly loggedAtMs: number };
}

/**
 * The rows of people in the column store. They are found, deleted and counted for all people of a batch at once, as the
 * registry of places says. Every call may be repeated, also by another process. A batch is named by 16 random bytes.
 * Whatever cannot be done or counted is a fault, and never counts as nothing found; so does a batch without targets.
 */
export interface ErasureRows {
  /**
   * Stores whom the batch is about. If an identity is stored again, the latest cut-off counts.
   * @throws StoreFault
   */
  putTargets(batchId: Buffer, targets: readonly ErasureTarget[]): Promise<void>;
  /**
   * Deletes what is theirs up to the cut-off and blanks what others' rows say of them. Rows that are inserted meanwhile
   * may stay, so whoever inserts must know the fences before; also rows that the store moves just then. Both are found
   * as survivors: sweep until there are none.
   * @param signal ends the wait for a change of a table, which goes on: the next sweep waits for it first. It is not heard
   * while data derived from events are deleted and derived again
   * @returns what was there before
   * @throws StoreFault, or the reason of the signal
   */
  sweep(batchId: Buffer, signal?: AbortSignal): Promise<FoundRows[]>;
  /**
   * Empty when the batch was not swept yet. Includes what an eraser found before it died.
   * @throws StoreFault
   */
  readNoted(batchId: Buffer): Promise<NotedRows>;
  /**
   * Rows that a query would still find.
   * @throws StoreFault
   */
  findSurvivors(batchId: Buffer): Promise<FoundRows[]>;
  /**
   * Consents of the batch's identities that stay after the sweep, because they were given later than the cut-off.
   * @throws StoreFault
   */
  findConsents(batchId: Buffer): Promise<KeptConsent[]>;
  /**
   * Links received up to the latest cut-off of the batch that touch one of its identities; each pair once. Streamed,
   * because one person may have half a million. Equal keys are one Buffer.
   * @throws StoreFault
   */
  findLinks(batchId: Buffer): AsyncIterable<StoredLink>;
  /** Unlinks asked for up to the latest cut-off of the batch in which one of its identities was. @throws StoreFault */
  findUnlinks(batchId: Buffer): Promise<StoredUnlink[]>;
  /**
   * Where links stand that touch an identity of the batch and are later than its cut-off; of a fact that was published
   * again the first place. @throws StoreFault
   */
  findLaterLinks(batchId: Buffer): Promise<FactLocation[]>;
  /**
   * Waits for the end of all inserts that run now: the store may still finish an insert of a writer that has died.
   * Takes as long as an insert may, one minute at most.
   * @throws StoreFault, or the reason of the signal
   */
  awaitInserts(signal?: AbortSignal): Promise<void>;
  /**
   * Rows in files that are in use, including deleted ones until `removeDeleted`.
   * @throws StoreFault
   */
  findOnDisk(batchId: Buffer): Promise<FoundRows[]>;
  /**
   * Rewrites files that contain deleted rows, of all batches. Reads and writes whole parts.
   * @param signal ends the wait, as for a sweep
   * @returns when it was finished, in epoch milliseconds of the store's clock
   * @throws StoreFault, or the reason of the signal
   */
  removeDeleted(signal?: AbortSignal): Promise<number>;
  /**
   * How many files that were replaced up to this moment of the store's clock are still on disk; they disappear within
   * minutes.
   * @throws StoreFault
   */
  countReplaced(untilMs: number): Promise<number>;
  /**
   * Batches that have targets, including those of an eraser that has died.
   * @throws StoreFault
   */
  readBatches(): Promise<Buffer[]>;
  /**
   * Deletes the list of whom the batch was about; no file in use keeps a row of it.
   * @throws StoreFault
   */
  dropTargets(batchId: Buffer): Promise<void>;
  close(): Promise<void>;
}
