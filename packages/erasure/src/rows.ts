/** An identity whose rows are erased up to its cut-off. */
export interface ErasureTarget {
  readonly environmentId: string;
  /** 16 bytes; never the zero key, which is nobody. */
  readonly key: Buffer;
  /** Epoch milliseconds: T of the erasure. */
  readonly cutoffMs: number;
}

/** Rows of one table that name an erased identity in one of its columns. A row that names it in two is told twice. */
export interface FoundRows {
  readonly table: string;
  readonly column: string;
  /** Whether the row is deleted with the identity, or is somebody else's and only forgets it. */
  readonly as: 'own' | 'carried';
  readonly environmentId: string;
  readonly key: Buffer;
  readonly rows: number;
}

/** Rows of one table that fall by several of their columns, or of the batch's identities, and so were told several times. */
export interface SharedRows {
  readonly table: string;
  readonly environmentId: string;
  /** One a time that each of these rows was told; a key stands twice where two columns name it. */
  readonly keys: readonly Buffer[];
  readonly rows: number;
}

/** What the last sweep of a batch found, as it was noted before anything was deleted. */
export interface NotedRows {
  readonly found: readonly FoundRows[];
  readonly shared: readonly SharedRows[];
}

/** Two identities that a decision linked, or found linked. */
export interface StoredLink {
  readonly environmentId: string;
  readonly a: Buffer;
  readonly b: Buffer;
  /** Epoch milliseconds: when the gateway accepted it, the first time. */
  readonly receivedAtMs: number;
  /** Where the fact stood that said so last. */
  readonly last: FactOrder;
}

/** Facts of an environment stand in one partition at a time: generation, then offset. */
export interface FactOrder {
  readonly generation: number;
  readonly offset: number;
}

/** One side of an unlink: what was linked before it with anybody of the other side is linked no more. */
export interface StoredUnlink {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly side: 'split' | 'stayed';
  /** Names the unlink among those of its environment. */
  readonly at: FactOrder;
  /** Epoch milliseconds: when it was asked for. */
  readonly unlinkedAtMs: number;
}

/** Where the fact of a link stands in the link topic. */
export interface LinkPlace {
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
  readonly place: { readonly partition: number; readonly offset: number; readonly loggedAtMs: number };
}

/**
 * The rows of people in the column store: found, deleted and counted for all people of one batch at a time, by the
 * registry of places. Every call may be repeated, also by another process; batches are named by 16 random bytes.
 * What cannot be done or counted is a fault, never nothing and never zero; so is a batch that has no targets (any more).
 */
export interface ErasureRows {
  /** Notes whom the batch is about. Of one identity that is noted again the latest cut-off holds. @throws RowsFault */
  putTargets(batchId: Buffer, targets: readonly ErasureTarget[]): Promise<void>;
  /**
   * Deletes what is theirs up to the cut-off and blanks what others' rows say of them. Rows that are inserted meanwhile
   * may stay, so whoever inserts must know the fences before; also rows that the store moves just then. Both are found
   * as survivors: sweep until there are none.
   * @param signal ends the wait for a change of a table, which goes on: the next sweep waits for it first
   * @returns what was there before
   * @throws RowsFault, or the reason of the signal
   */
  sweep(batchId: Buffer, signal?: AbortSignal): Promise<FoundRows[]>;
  /** Nothing where the batch was not swept yet; also what an eraser found that died. @throws RowsFault */
  readNoted(batchId: Buffer): Promise<NotedRows>;
  /** What a query would still find. @throws RowsFault */
  findSurvivors(batchId: Buffer): Promise<FoundRows[]>;
  /** Consents of the batch's identities that stand behind the sweep: given later than the cut-off. @throws RowsFault */
  findConsents(batchId: Buffer): Promise<KeptConsent[]>;
  /** Links received up to the latest cut-off of the batch that touch one of its identities. @throws RowsFault */
  findLinks(batchId: Buffer): Promise<StoredLink[]>;
  /** Unlinks asked for up to the latest cut-off of the batch in which one of its identities was. @throws RowsFault */
  findUnlinks(batchId: Buffer): Promise<StoredUnlink[]>;
  /**
   * Where links stand that touch an identity of the batch and are later than its cut-off; of a fact that was published
   * again the first place. @throws RowsFault
   */
  findLaterLinks(batchId: Buffer): Promise<LinkPlace[]>;
  /**
   * Waits until no insert runs any more that runs now: of a writer that has died the store may finish one. Takes as long
   * as an insert may, a minute at most.
   * @throws RowsFault, or the reason of the signal
   */
  awaitInserts(signal?: AbortSignal): Promise<void>;
  /** What stands in files that are in use, deleted rows included, until `removeDeleted`. @throws RowsFault */
  findOnDisk(batchId: Buffer): Promise<FoundRows[]>;
  /**
   * Writes files with deleted rows anew without them, of all batches. Reads and writes whole parts.
   * @param signal ends the wait, as that of a sweep
   * @returns when it was done, in epoch milliseconds of the store's clock
   * @throws RowsFault, or the reason of the signal
   */
  removeDeleted(signal?: AbortSignal): Promise<number>;
  /** How many files that were replaced up to this moment of the store's clock are still there; they go in minutes. @throws RowsFault */
  countReplaced(untilMs: number): Promise<number>;
  /** Batches that have targets: also what an eraser that died left behind. @throws RowsFault */
  readBatches(): Promise<Buffer[]>;
  /** Forgets whom the batch was about; no row of it stays in a file that is in use. @throws RowsFault */
  dropTargets(batchId: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** A fault of the store behind rows and records. */
export class RowsFault extends Error {
  override readonly name = 'RowsFault';
  /** False where somebody has to change the tables or this program first. */
  readonly isRetryable: boolean;
  /** The store's own name of what went wrong, or the network's: few, so fit for a label. */
  readonly code: string;

  constructor(message: string, options: { isRetryable: boolean; code: string }) {
    super(message);
    this.isRetryable = options.isRetryable;
    this.code = options.code;
  }
}
