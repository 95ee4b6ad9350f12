import { IDENTITY_KEY_BYTES, isEnvironmentId, STORED_TIME_END_MS } from '@playline/contracts';
import type { FactOrder } from './rows.ts';

/** An identity whose data are erased and refused up to the cut-off. */
export interface ErasureFence {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  readonly cutoffMs: number;
  /** 16 bytes: the erasure that fenced it. */
  readonly erasureId: Buffer;
}

export interface StoredFence extends ErasureFence {
  /** Epoch milliseconds by the store's clock. */
  readonly fencedAtMs: number;
  /** The part of the table that contains it. Parts never change, so one need not be read twice. */
  readonly part: string;
}

export interface FenceReading {
  readonly knownParts?: ReadonlySet<string>;
  readonly signal?: AbortSignal;
}

/** A link of two identities from the stored decisions. Times are epoch milliseconds, keys 16 bytes. */
export interface FoundLink {
  readonly a: Buffer;
  readonly b: Buffer;
  readonly receivedAtMs: number;
  /** Order of the last fact that linked them. An unlink after it may be decided later. */
  readonly last: FactOrder;
  /** The cut-off from which an unlink separates them; null or absent if none was known. */
  readonly unlinkedAtMs?: number | null;
}

/** An accepted erasure. Times are epoch milliseconds, keys and ids 16 bytes. */
export interface ErasureRequest {
  readonly erasureId: Buffer;
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  /** Other identities of the person: those the gateway knew, then those the eraser found. */
  readonly memberKeys: readonly Buffer[];
  /** Links that the eraser found and deletes; absent if not read. Each is stored with one request of its batch. */
  readonly links?: readonly FoundLink[];
  readonly cutoffAt: number;
  readonly requestedAt: number;
  readonly traceId: string;
}

/** Keys of all identities in a request, including the ends of its links. */
export function* namedKeys({ subjectKeys, memberKeys, links = [] }: ErasureRequest): Generator<Buffer> {
  yield* subjectKeys;
  yield* memberKeys;
  for (const { a, b } of links) {
    yield a;
    yield b;
  }
}

/** What was erased, when, and how it was verified. Times are epoch milliseconds. */
export interface ErasureReceipt {
  readonly erasureId: Buffer;
  readonly environmentId: string;
  /** 32 bytes: SHA-256 of the identity keys in byte order. */
  readonly closureHash: Buffer;
  readonly closureCount: number;
  readonly cutoffAt: number;
  readonly acceptedAt: number;
  readonly fencedAt: number;
  readonly visiblyErasedAt: number;
  /** Null until no file contains a row. */
  readonly physicallyErasedAt: number | null;
  readonly logExpiresAt: number;
  /** Null until every partition begins at or after its entry in `logEnds`. */
  readonly logExpiredAt: number | null;
  /** By store, such as `clickhouse.events` and `redis.i`. */
  readonly deleted: Readonly<Record<string, number>>;
  readonly verified: Readonly<Record<string, number>>;
  /** End of the log when the fences were set, by topic and partition such as `audience.messages.v1/3`. */
  readonly logEnds: Readonly<Record<string, number>>;
  readonly traceId: string;
}

/** Progress of one erasure of a batch. Erasures of one person in one batch share closure and cut-off. */
export interface ErasureProgress {
  /** 16 bytes. */
  readonly batchId: Buffer;
  readonly erasureId: Buffer;
  readonly environmentId: string;
  readonly cutoffAt: number;
  /** Every identity of the person. */
  readonly closureKeys: readonly Buffer[];
  /** As in the receipt, so far. */
  readonly deleted: Readonly<Record<string, number>>;
}

/** `erased`: no query finds a row. `physically erased`: no file contains one. `log expired`: neither does the log. */
export const ERASURE_STATES = ['waiting', 'erased', 'physically erased', 'log expired'] as const;
export type ErasureState = (typeof ERASURE_STATES)[number];

/** A request with its receipt, if it has one. */
export interface Erasure {
  readonly request: ErasureRequest;
  readonly receipt: ErasureReceipt | null;
}

export interface NamedIdentity {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
}

/** A page of the list of erasures. */
export interface ErasurePage {
  readonly environmentId?: string;
  readonly state?: ErasureState;
  /** The last erasure of the previous page. */
  readonly after?: Pick<ErasureRequest, 'erasureId' | 'requestedAt'>;
  readonly erasuresMax: number;
}

/** State of the erasure with this receipt. */
export function stateOf(receipt: Pick<ErasureReceipt, 'physicallyErasedAt' | 'logExpiredAt'> | null): ErasureState {
  if (receipt === null) return 'waiting';
  if (receipt.physicallyErasedAt === null) return 'erased';
  return receipt.logExpiredAt === null ? 'physically erased' : 'log expired';
}

/**
 * Stores requests, fences, progress and receipts. Data are on disk when a put resolves, and may be put again.
 * Every call rejects with a StoreFault.
 */
export interface ErasureRecords {
  /** Adds requests; a stored one is unchanged, with what an eraser has found. */
  addRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /** Replaces requests. */
  putRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /** Replaces requests that are in no batch and have no receipt: the eraser of such a batch knows more. */
  putFound(requests: readonly ErasureRequest[]): Promise<void>;
  /** Requests without a receipt, oldest first, without links. */
  readUnfinished(): Promise<ErasureRequest[]>;
  /**
   * Erasures that name one of these identities and had no receipt at `sinceMs` (epoch milliseconds), with links.
   * @param onLink called for each link; what it throws ends the reading
   */
  readOpenSince(sinceMs: number, identities: readonly NamedIdentity[], onLink?: () => void): Promise<Erasure[]>;
  /** The latest cut-off of an identity applies. */
  putFences(fences: readonly ErasureFence[]): Promise<void>;
  /** Every fence outside the known parts, as a snapshot. */
  readFences(reading?: FenceReading): AsyncIterable<StoredFence>;
  /** The copy with the most information applies. */
  putReceipts(receipts: readonly ErasureReceipt[]): Promise<void>;
  readReceipt(erasureId: Buffer): Promise<ErasureReceipt | null>;
  /** Receipts that lack `physicallyErasedAt` or `logExpiredAt`, oldest first. */
  readOpenReceipts(): Promise<ErasureReceipt[]>;
  /** The last copy of an erasure applies. */
  putProgress(progress: readonly ErasureProgress[]): Promise<void>;
  /** Progress of all unfinished batches. */
  readProgress(): Promise<ErasureProgress[]>;
  /** Deletes a finished batch with its files. */
  dropProgress(batchId: Buffer): Promise<void>;
  /** Ids (hexadecimal) of all erasures with a receipt. */
  readFinished(): Promise<ReadonlySet<string>>;
  /** Every environment with a request. */
  readEnvironments(): Promise<string[]>;
  /** The stored ones of these requests, without links, in any order. */
  readRequests(erasureIds: readonly Buffer[]): Promise<ErasureRequest[]>;
  /** Newest requests first, then by id descending, without links. */
  readErasures(page: ErasurePage): Promise<Erasure[]>;
  /** Whether the store answers and accepts the login. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

const ERASURE_ID_BYTES = 16;

/**
 * Validates the bytes and numbers of a request. An invalid one gets no hold, because no eraser would release it.
 * @returns the reason, without any value; null for a valid request
 */
export function findRequestFault(request: Omit<ErasureRequest, 'traceId'>): string | null {
  const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt, requestedAt } = request;
  if (!isEnvironmentId(environmentId)) return 'not an environment id';
  if (erasureId.length !== ERASURE_ID_BYTES) return 'not an erasure id';
  if (subjectKeys.length === 0 || ![...subjectKeys, ...memberKeys].every(isKey)) return 'not identity keys';
  return isTime(cutoffAt) && isTime(requestedAt) ? null : 'time out of range';
}

const isKey = (key: Buffer) => key.length === IDENTITY_KEY_BYTES && key.some((byte) => byte !== 0);
const isTime = (timeMs: number) => Number.isSafeInteger(timeMs) && timeMs >= 0 && timeMs < STORED_TIME_END_MS;
