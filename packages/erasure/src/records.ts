import { IDENTITY_KEY_BYTES, isEnvironmentId, KEPT_TIME_END_MS } from '@playline/contracts';
import type { FactOrder } from './rows.ts';

/** An identity about which nothing is stored that happened or was received up to the cut-off. */
export interface ErasureFence {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly key: Buffer;
  /** Epoch milliseconds. */
  readonly cutoffMs: number;
  /** 16 bytes: the erasure that fenced it. */
  readonly erasureId: Buffer;
}

/** A fence in the store. */
export interface StoredFence extends ErasureFence {
  /** When it was written, by the store's clock (epoch milliseconds). */
  readonly fencedAtMs: number;
  /** The part of the store that contains it. A part never changes, so it need not be read twice. */
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
  /** Where the last fact was that said so. An unlink after it may be decided later. */
  readonly last: FactOrder;
  /** From this cut-off on the two are separated; null or absent if never, as far as was known. */
  readonly unlinkedAtMs?: number | null;
}

/** An accepted erasure, as its topic has it. Times are epoch milliseconds, keys and ids 16 bytes. */
export interface ErasureRequest {
  readonly erasureId: Buffer;
  readonly environmentId: string;
  readonly subjectKeys: readonly Buffer[];
  /** Other identities of the same person: those that the gateway knew, then those that the eraser found. */
  readonly memberKeys: readonly Buffer[];
  /**
   * Links that the eraser found and removes, with their own times. Absent when there are none, and when they are not
   * read. Of requests that were done together, each link is stored with one.
   */
  readonly links?: readonly FoundLink[];
  readonly cutoffAt: number;
  readonly requestedAt: number;
  readonly traceId: string;
}

/** Everybody whom a request names, also as one end of a link. */
export function* namedKeys({ subjectKeys, memberKeys, links = [] }: ErasureRequest): Generator<Buffer> {
  yield* subjectKeys;
  yield* memberKeys;
  for (const { a, b } of links) {
    yield a;
    yield b;
  }
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
  /** Null until no file contains a row. */
  readonly physicallyErasedAt: number | null;
  readonly logExpiresAt: number;
  /** Null until every partition begins at or after its entry in `logEnds`. */
  readonly logExpiredAt: number | null;
  /** By store and place: `clickhouse.events`, `redis.i`. */
  readonly deleted: Readonly<Record<string, number>>;
  readonly verified: Readonly<Record<string, number>>;
  /** For each topic and partition, such as `audience.messages.v1/3`, the end of the log when the fences were set. */
  readonly logEnds: Readonly<Record<string, number>>;
  readonly traceId: string;
}

/** How far one erasure of a batch has come. Erasures of one person in one batch share closure and cut-off. */
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
 * How far an erasure has come. `erased`: no query finds a row. `physically erased`: no file contains a row. `log
 * expired`: and the log has nothing of it either.
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
  /** Only erasures after this one in the list. */
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
 * Stores everything about erasures: requests, fences, progress and receipts. What was put is on disk when the call
 * resolves. Putting the same again changes nothing.
 */
export interface ErasureRecords {
  /**
   * Adds requests that are not stored yet. A stored one stays as it is, with what an eraser has found.
   * @throws StoreFault
   */
  addRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /**
   * Replaces requests.
   * @throws StoreFault
   */
  putRequests(requests: readonly ErasureRequest[]): Promise<void>;
  /**
   * Also replaces requests, except those in a batch or with a receipt: the eraser that works on those knows more.
   * @throws StoreFault
   */
  putFound(requests: readonly ErasureRequest[]): Promise<void>;
  /** Requests without a receipt, without links, the oldest first. @throws StoreFault */
  readUnfinished(): Promise<ErasureRequest[]>;
  /**
   * Erasures that name one of these identities and had no receipt yet at this moment (epoch milliseconds), in any order
   * and with their links.
   * @param onLink called for each link that is read; what it throws ends the reading
   * @throws StoreFault
   */
  readOpenSince(sinceMs: number, identities: readonly NamedIdentity[], onLink?: () => void): Promise<Erasure[]>;
  /**
   * Of several cut-offs of one identity the latest counts.
   * @throws StoreFault
   */
  putFences(fences: readonly ErasureFence[]): Promise<void>;
  /**
   * Every fence that is not in a known part, as of one moment, however long reading takes.
   * @throws StoreFault
   */
  readFences(reading?: FenceReading): AsyncIterable<StoredFence>;
  /**
   * Of several copies the one with the most information counts.
   * @throws StoreFault
   */
  putReceipts(receipts: readonly ErasureReceipt[]): Promise<void>;
  /** Null when there is none (yet). @throws StoreFault */
  readReceipt(erasureId: Buffer): Promise<ErasureReceipt | null>;
  /** Receipts whose rows were still in files, or whose log had not expired, the oldest first. @throws StoreFault */
  readOpenReceipts(): Promise<ErasureReceipt[]>;
  /**
   * Of several copies of one erasure the one that was put last counts.
   * @throws StoreFault
   */
  putProgress(progress: readonly ErasureProgress[]): Promise<void>;
  /**
   * Progress of every batch that is not finished.
   * @throws StoreFault
   */
  readProgress(): Promise<ErasureProgress[]>;
  /**
   * Deletes a finished batch; no file in use keeps a row of it.
   * @throws StoreFault
   */
  dropProgress(batchId: Buffer): Promise<void>;

  /** Ids (hexadecimal) of all erasures that have a receipt. @throws StoreFault */
  readFinished(): Promise<ReadonlySet<string>>;
  /** Every environment in which somebody asked to be erased. @throws StoreFault */
  readEnvironments(): Promise<string[]>;
  /**
   * Those of these requests that were ever stored, without links, in any order.
   * @throws StoreFault
   */
  readRequests(erasureIds: readonly Buffer[]): Promise<ErasureRequest[]>;
  /**
   * The newest requests first, without links; those of the same moment by id, descending.
   * @throws StoreFault
   */
  readErasures(page: ErasurePage): Promise<Erasure[]>;

  /** True when the store answers and accepts the login. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

const ERASURE_ID_BYTES = 16;

/**
 * Explains why a record with the shape of a request is not a valid one: its bytes and numbers may be no keys and times.
 * No eraser works on such a request, so no hold may be placed for it either: nobody would release it.
 * @returns the reason in a few words, without a value; null for a valid request
 */
export function findRequestFault(request: Omit<ErasureRequest, 'traceId'>): string | null {
  const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt, requestedAt } = request;
  if (!isEnvironmentId(environmentId)) return 'not an environment id';
  if (erasureId.length !== ERASURE_ID_BYTES) return 'not an erasure id';
  if (subjectKeys.length === 0 || ![...subjectKeys, ...memberKeys].every(isKey)) return 'not identity keys';
  return isTime(cutoffAt) && isTime(requestedAt) ? null : 'time out of range';
}

const isKey = (key: Buffer) => key.length === IDENTITY_KEY_BYTES && key.some((byte) => byte !== 0);
const isTime = (timeMs: number) => Number.isSafeInteger(timeMs) && timeMs >= 0 && timeMs < KEPT_TIME_END_MS;
