import type { FactOrder } from './rows.ts';

/** An identity that keeps nothing that happened or was received up to its cut-off. */
export interface ErasureFence {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  /** Epoch milliseconds. */
  readonly cutoffMs: number;
  /** 16 bytes: the erasure that fenced it. */
  readonly erasureId: Buffer;
}

/** A fence that stands. */
export interface StoredFence extends ErasureFence {
  /** When it was written, by the store's clock (epoch milliseconds). */
  readonly fencedAtMs: number;
  /** The piece of the store that it stands in: one never changes, and whoever has read it need not read it again. */
  readonly part: string;
}

export interface FenceReading {
  /** Pieces that are known already. */
  readonly knownParts?: ReadonlySet<string>;
  /** Ends the reading with a fault. */
  readonly signal?: AbortSignal;
}

/** A link of two identities, as the decisions told it. Times are epoch milliseconds, keys 16 bytes. */
export interface FoundLink {
  readonly a: Buffer;
  readonly b: Buffer;
  readonly receivedAtMs: number;
  /** Where the fact stood that said so last: an unlink behind it may be decided later. */
  readonly last: FactOrder;
  /** From this cut-off on the two are parted; null: never, as far as was known. */
  readonly unlinkedAtMs: number | null;
}

/** An accepted erasure, as it stands on its topic. Times are epoch milliseconds, keys and ids 16 bytes. */
export interface ErasureRequest {
  readonly erasureId: Buffer;
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  /** Of the same person: whom the gateway knew of, then whom the eraser has found. */
  readonly memberKeys: readonly Buffer[];
  /** What the eraser has found and takes away, with its own times. Absent where there is nothing. */
  readonly links?: readonly FoundLink[];
  readonly cutoffAt: number;
  readonly requestedAt: number;
  readonly traceId: string;
}

/** Everybody whom a request names, also as an end of a link. */
export function namedKeys({ subjectKeys, memberKeys, links = [] }: ErasureRequest): Buffer[] {
  return [...subjectKeys, ...memberKeys, ...links.flatMap(({ a, b }) => [a, b])];
}

/** What was erased, when, and how it was checked. Times are epoch milliseconds. */
export interface ErasureReceipt {
  readonly erasureId: Buffer;
  readonly environmentId: string;
  /** 32 bytes: SHA-256 of the identity keys in the order of their bytes. */
  readonly closureHash: Buffer;
  readonly closureCount: number;
  readonly cutoffAt: number;
  readonly acceptedAt: number;
  readonly fencedAt: number;
  readonly visiblyErasedAt: number;
  /** Null until no row stands in a file any more. */
  readonly physicallyErasedAt: number | null;
  readonly logExpiresAt: number;
  /** Null until every partition begins behind `logEnds`. */
  readonly logExpiredAt: number | null;
  /** By store and place: `clickhouse.events`, `redis.i`. */
  readonly deleted: Readonly<Record<string, number>>;
  readonly verified: Readonly<Record<string, number>>;
  /** Topic and partition, as `audience.messages.v1/3` -> end of the log when the fences stood. */
  readonly logEnds: Readonly<Record<string, number>>;
  readonly traceId: string;
}

/** How far one erasure of a batch is. Erasures of one person in one batch have the same closure and cut-off. */
export interface ErasureProgress {
  /** 16 bytes. */
  readonly batchId: Buffer;
  readonly erasureId: Buffer;
  readonly environmentId: string;
  /** Epoch milliseconds. */
  readonly cutoffAt: number;
  /** Every identity of the person. */
  readonly closureKeys: readonly Buffer[];
  /** As in the receipt; what was found so far. */
  readonly deleted: Readonly<Record<string, number>>;
}

/**
 * How far an erasure has come. `erased`: no query finds a row; `physically erased`: no row stands in a file; `log expired`:
 * that, and the log holds nothing of it either.
 */
export const ERASURE_STATES = ['waiting', 'erased', 'physically erased', 'log expired'] as const;
export type ErasureState = (typeof ERASURE_STATES)[number];

/** A request, and its receipt once there is one. */
export interface Erasure {
  readonly request: ErasureRequest;
  readonly receipt: ErasureReceipt | null;
}

export interface NamedIdentity {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
}

/** Which erasures are told. */
export interface ErasurePage {
  readonly environmentId?: string;
  readonly state?: ErasureState;
  /** Only what comes behind this one in the list. */
  readonly after?: Pick<ErasureRequest, 'erasureId' | 'requestedAt'>;
  readonly erasuresMax: number;
}

/** The state that a receipt, or its absence, tells. */
export function stateOf(receipt: Pick<ErasureReceipt, 'physicallyErasedAt' | 'logExpiredAt'> | null): ErasureState {
  if (receipt === null) return 'waiting';
  if (receipt.physicallyErasedAt === null) return 'erased';
  return receipt.logExpiredAt === null ? 'physically erased' : 'log expired';
}

/**
 * What is kept of erasures: requests, fences, progress and receipts. What was put is on the disk when the call
 * resolves; the same again changes nothing.
 */
export interface ErasureRecords {
  /** Keeps requests that are not kept yet; one that is stays as it is, with whom an eraser has found. @throws RowsFault */
  addRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /** Keeps requests in the place of what was kept of them. @throws RowsFault */
  putRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /** The same; nothing changes of one that stands in a batch or has its receipt: whoever has begun it knows more. @throws RowsFault */
  putFound(requests: readonly ErasureRequest[]): Promise<void>;
  /** Requests without a receipt, the oldest first. @throws RowsFault */
  readUnfinished(): Promise<ErasureRequest[]>;
  /**
   * Erasures that name one of these identities and had no receipt yet at this moment (epoch milliseconds), in any order.
   * @throws RowsFault
   */
  readOpenSince(sinceMs: number, identities: readonly NamedIdentity[]): Promise<Erasure[]>;
  /** Of several cut-offs of one identity the latest holds. @throws RowsFault */
  putFences(fences: readonly ErasureFence[]): Promise<void>;
  /** Every fence that stands in no known piece; those of one moment, however long it takes to tell them. @throws RowsFault */
  readFences(reading?: FenceReading): AsyncIterable<StoredFence>;
  /** Of several copies the one that knows most holds. @throws RowsFault */
  putReceipts(receipts: readonly ErasureReceipt[]): Promise<void>;
  /** Null when there is none (yet). @throws RowsFault */
  readReceipt(erasureId: Buffer): Promise<ErasureReceipt | null>;
  /** Receipts whose rows were still in files, or whose log had not expired, the oldest first. @throws RowsFault */
  readOpenReceipts(): Promise<ErasureReceipt[]>;
  /** Of several copies of one erasure the one that was put last holds. @throws RowsFault */
  putProgress(progress: readonly ErasureProgress[]): Promise<void>;
  /** Of every batch that is not done. @throws RowsFault */
  readProgress(): Promise<ErasureProgress[]>;
  /** Forgets a batch that is done; no row of it stays in a file that is in use. @throws RowsFault */
  dropProgress(batchId: Buffer): Promise<void>;

  /** Ids (hexadecimal) of all erasures that have a receipt. @throws RowsFault */
  readFinished(): Promise<ReadonlySet<string>>;
  /** Every environment in which somebody asked to be erased. @throws RowsFault */
  readEnvironments(): Promise<string[]>;
  /** Those of these requests that were ever put, in any order. @throws RowsFault */
  readRequests(erasureIds: readonly Buffer[]): Promise<ErasureRequest[]>;
  /** The newest requests first; of one moment by their ids, downwards. @throws RowsFault */
  readErasures(page: ErasurePage): Promise<Erasure[]>;

  /** True when the store answers, and lets us in. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}
