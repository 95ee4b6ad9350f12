import { IDENTITY_KEY_BYTES, isEnvironmentId, STORED_TIME_END_MS } from '@playline/contracts';
import type { FactOrder } from './rows.ts';

/** An identity whose data up to the cut-off is deleted and refused. */
export interface ErasureFence {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  readonly cutoffMs: number;
  /** 16 bytes. The erasure that set the fence. */
  readonly erasureId: Buffer;
}

export interface StoredFence extends ErasureFence {
  /** Epoch milliseconds, by the store's clock. */
  readonly fencedAtMs: number;
  /** The ClickHouse part that contains the fence. Parts are immutable, so each part needs to be read only once. */
  readonly part: string;
}

export interface FenceReading {
  readonly knownParts?: ReadonlySet<string>;
  readonly signal?: AbortSignal;
}

/** A link between two identities, from the stored decisions. Times are epoch milliseconds, keys 16 bytes. */
export interface FoundLink {
  readonly a: Buffer;
  readonly b: Buffer;
  readonly receivedAtMs: number;
  /** Position of the last fact for this link. An unlink after this fact may still be undecided. */
  readonly last: FactOrder;
  /** Time from which an unlink separates the identities; null or absent if no unlink was known. */
  readonly unlinkedAtMs?: number | null;
}

/** An accepted erasure. Times are epoch milliseconds, keys and ids 16 bytes. */
export interface ErasureRequest {
  readonly erasureId: Buffer;
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  /** The person's other identities: those found by the gateway, followed by those found by the eraser. */
  readonly memberKeys: readonly Buffer[];
  /** Links that the eraser found and deletes; absent if not loaded. Each is stored in one request of the batch. */
  readonly links?: readonly FoundLink[];
  readonly cutoffAt: number;
  readonly requestedAt: number;
  readonly traceId: string;
}

/** Keys of all identities in a request, including both ends of each link. */
export function* namedKeys({ subjectKeys, memberKeys, links = [] }: ErasureRequest): Generator<Buffer> {
  yield* subjectKeys;
  yield* memberKeys;
  for (const { a, b } of links) {
    yield a;
    yield b;
  }
}

/** Proof of an erasure: what was deleted, when, and how the deletion was verified. Times are epoch milliseconds. */
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
  /** Null while any file contains one of the person's rows. */
  readonly physicallyErasedAt: number | null;
  readonly logExpiresAt: number;
  /** Null until every partition starts at or after its offset in `logEnds`. */
  readonly logExpiredAt: number | null;
  /** Counts by store, such as `clickhouse.events` and `redis.i`. */
  readonly deleted: Readonly<Record<string, number>>;
  readonly verified: Readonly<Record<string, number>>;
  /** Log end offsets when the fences were set, by topic and partition, such as `audience.messages.v1/3`. */
  readonly logEnds: Readonly<Record<string, number>>;
  readonly traceId: string;
}

/** Progress of one erasure in a batch. Erasures of the same person in a batch have the same closure and cut-off. */
export interface ErasureProgress {
  /** 16 bytes. */
  readonly batchId: Buffer;
  readonly erasureId: Buffer;
  readonly environmentId: string;
  readonly cutoffAt: number;
  /** All of the person's identities. */
  readonly closureKeys: readonly Buffer[];
  /** Counts so far, in the format of the receipt. */
  readonly deleted: Readonly<Record<string, number>>;
}

/**
 * `erased`: no query returns a row. `physically erased`: no file contains a row. `log expired`: no log record remains.
 */
export const ERASURE_STATES = ['waiting', 'erased', 'physically erased', 'log expired'] as const;
export type ErasureState = (typeof ERASURE_STATES)[number];

/** A request with its receipt, if any. */
export interface Erasure {
  readonly request: ErasureRequest;
  readonly receipt: ErasureReceipt | null;
}

export interface NamedIdentity {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
}

/** Filter and position of a page of erasures. */
export interface ErasurePage {
  readonly environmentId?: string;
  readonly state?: ErasureState;
  /** The last erasure of the previous page. */
  readonly after?: Pick<ErasureRequest, 'erasureId' | 'requestedAt'>;
  readonly erasuresMax: number;
}

/** Derives an erasure's state from its receipt. */
export function stateOf(receipt: Pick<ErasureReceipt, 'physicallyErasedAt' | 'logExpiredAt'> | null): ErasureState {
  if (receipt === null) return 'waiting';
  if (receipt.physicallyErasedAt === null) return 'erased';
  return receipt.logExpiredAt === null ? 'physically erased' : 'log expired';
}

/**
 * Stores requests, fences, progress and receipts. Writes are idempotent and resolve once the data is on disk. A
 * call that fails rejects with a StoreFault.
 */
export interface ErasureRecords {
  /** Adds requests. Stored requests remain unchanged because an eraser may have added members and links. */
  addRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /** Replaces requests. */
  putRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /** Replaces requests that have neither progress nor a receipt. */
  putFound(requests: readonly ErasureRequest[]): Promise<void>;
  /** Requests without a receipt, oldest first, without links. */
  readUnfinished(): Promise<ErasureRequest[]>;
  /**
   * Erasures, with links, that contain one of these identities and had no receipt at `sinceMs` (epoch milliseconds).
   * @param onLink called for each link; may throw to stop the read
   */
  readOpenSince(sinceMs: number, identities: readonly NamedIdentity[], onLink?: () => void): Promise<Erasure[]>;
  /** If an identity has several fences, the latest cut-off applies. */
  putFences(fences: readonly ErasureFence[]): Promise<void>;
  /** Reads a snapshot of all fences except those in known parts. */
  readFences(reading?: FenceReading): AsyncIterable<StoredFence>;
  /** If a receipt is stored several times, the most complete copy applies. */
  putReceipts(receipts: readonly ErasureReceipt[]): Promise<void>;
  readReceipt(erasureId: Buffer): Promise<ErasureReceipt | null>;
  /** Receipts without `physicallyErasedAt` or `logExpiredAt`, oldest first. */
  readOpenReceipts(): Promise<ErasureReceipt[]>;
  /** If an erasure's progress is stored several times, the latest copy applies. */
  putProgress(progress: readonly ErasureProgress[]): Promise<void>;
  /** Progress of all unfinished batches. */
  readProgress(): Promise<ErasureProgress[]>;
  /** Deletes a finished batch. */
  dropProgress(batchId: Buffer): Promise<void>;
  /** Ids (hexadecimal) of all erasures with a receipt. */
  readFinished(): Promise<ReadonlySet<string>>;
  /** All environments with a request. */
  readEnvironments(): Promise<string[]>;
  /** Stored requests with these ids, without links and in any order. */
  readRequests(erasureIds: readonly Buffer[]): Promise<ErasureRequest[]>;
  /** Newest first, then by descending id. Without links. */
  readErasures(page: ErasurePage): Promise<Erasure[]>;
  /** Whether the store responds and accepts the credentials. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

const ERASURE_ID_BYTES = 16;

/**
 * Validates a request. Invalid requests must not have a hold because no eraser would release it.
 * @returns the reason, which contains no values from the request; null if the request is valid
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
