import { fromUuidText } from '@playline/contracts';
import type { SentColumn } from '@playline/stores';
import type {
  ErasureFence,
  ErasureProgress,
  ErasureReceipt,
  ErasureRequest,
  FoundLink,
  StoredFence,
} from '../records.ts';
import { toIdText } from './predicates.ts';

const plain = (name: string, type: string): SentColumn => ({ name, type });
const time = (name: string, type = 'Int64'): SentColumn => ({
  name,
  type,
  as: `fromUnixTimestamp64Milli(${name}, 'UTC')`,
});
const keys = (name: string): SentColumn => ({
  name,
  type: 'Array(String)',
  as: `arrayMap(key -> toFixedString(unhex(key), 16), ${name})`,
});

const LINKS: SentColumn = {
  name: 'links',
  type: 'Array(Tuple(String, String, Int64, UInt8, UInt64, Nullable(Int64)))',
  as:
    'arrayMap(link -> (toFixedString(unhex(link.1), 16), toFixedString(unhex(link.2), 16), ' +
    "fromUnixTimestamp64Milli(link.3, 'UTC'), link.4, link.5, fromUnixTimestamp64Milli(link.6, 'UTC')), links)",
};

const toHex = (key: Buffer) => key.toString('hex');
const fromHex = (text: string) => Buffer.from(text, 'hex');

export const REQUEST_COLUMNS: readonly SentColumn[] = [
  plain('erasure_id', 'UUID'),
  plain('environment_id', 'String'),
  keys('subject_keys'),
  keys('member_keys'),
  LINKS,
  time('cutoff_at'),
  time('requested_at'),
  plain('trace_id', 'String'),
];

/** Links in one piece of a row. */
const LINKS_A_PIECE = 1_000;

/** A request as pieces of JSON: one with half a million links has 50 MB. */
export function* toRequestRow(request: ErasureRequest): Generator<string> {
  const row = {
    erasure_id: toIdText(request.erasureId),
    environment_id: request.environmentId,
    subject_keys: request.subjectKeys.map(toHex),
    member_keys: request.memberKeys.map(toHex),
    cutoff_at: request.cutoffAt,
    requested_at: request.requestedAt,
    trace_id: request.traceId,
  };
  yield `${JSON.stringify(row).slice(0, -1)},"links":[`;
  const { links = [] } = request;
  for (let at = 0; at < links.length; at += LINKS_A_PIECE) {
    const piece = links.slice(at, at + LINKS_A_PIECE).map(toLinkRow);
    yield `${at === 0 ? '' : ','}${JSON.stringify(piece).slice(1, -1)}`;
  }
  yield ']}';
}

type LinkRow = readonly [
  a: string,
  b: string,
  receivedAtMs: number,
  generation: number,
  offset: number,
  unlinkedAtMs: number | null,
];
const toLinkRow = ({ a, b, receivedAtMs, last, unlinkedAtMs }: FoundLink): LinkRow => [
  ...([toHex(a), toHex(b), receivedAtMs] as const),
  ...([last.generation, last.offset, unlinkedAtMs ?? null] as const),
];

/** A link of a stored request. */
export interface FoundLinkRow {
  readonly erasure_id: string;
  readonly a: string;
  readonly b: string;
  readonly received_ms: number;
  readonly generation: number;
  readonly offset: number;
  readonly unlinked_ms: number | null;
}

/** @param share returns the key of a text, the same one each time */
export function fromFoundLinkRow(row: FoundLinkRow, share: (hex: string) => Buffer): FoundLink {
  const { received_ms: receivedAtMs, generation, offset, unlinked_ms: unlinkedAtMs } = row;
  return { a: share(row.a), b: share(row.b), receivedAtMs, last: { generation, offset }, unlinkedAtMs };
}

export interface RequestRow {
  readonly erasure_id: string;
  readonly environment_id: string;
  readonly subjects: readonly string[];
  readonly members: readonly string[];
  readonly cutoff_ms: number;
  readonly requested_ms: number;
  readonly trace_id: string;
}

export function fromRequestRow(row: RequestRow): ErasureRequest {
  return {
    erasureId: fromUuidText(row.erasure_id),
    environmentId: row.environment_id,
    subjectKeys: row.subjects.map(fromHex),
    memberKeys: row.members.map(fromHex),
    cutoffAt: row.cutoff_ms,
    requestedAt: row.requested_ms,
    traceId: row.trace_id,
  };
}

/**
 *
 * @throws RangeError for the zero key: such a fence would keep out everybody who lacks an id of that kind
 */
export function toFenceRow({ environmentId, key, cutoffMs, erasureId }: ErasureFence): object {
  if (key.length !== 16 || key.every((byte) => byte === 0)) throw new RangeError('nobody cannot be fenced');
  const identity = { environment_id: environmentId, identity_key: toHex(key) };
  return { ...identity, cutoff_at: cutoffMs, erasure_id: toIdText(erasureId) };
}

export interface FenceRow {
  readonly environment_id: string;
  readonly key: string;
  readonly cutoff_ms: number;
  readonly erasure_id: string;
  readonly fenced_ms: number;
  readonly part: string;
}

export function fromFenceRow(row: FenceRow): StoredFence {
  const identity = { environmentId: row.environment_id, key: fromHex(row.key), cutoffMs: row.cutoff_ms };
  return { ...identity, erasureId: fromUuidText(row.erasure_id), fencedAtMs: row.fenced_ms, part: row.part };
}

const COUNTS = 'Map(String, UInt64)';

export const RECEIPT_COLUMNS: readonly SentColumn[] = [
  plain('erasure_id', 'UUID'),
  plain('environment_id', 'String'),
  { name: 'closure_hash', type: 'String', as: 'toFixedString(unhex(closure_hash), 32)' },
  plain('closure_count', 'UInt32'),
  time('cutoff_at'),
  time('accepted_at'),
  time('fenced_at'),
  time('visibly_erased_at'),
  time('physically_erased_at', 'Nullable(Int64)'),
  time('log_expires_at'),
  time('log_expired_at', 'Nullable(Int64)'),
  plain('deleted', COUNTS),
  plain('verified', COUNTS),
  plain('log_ends', COUNTS),
  plain('trace_id', 'String'),
];

export function toReceiptRow(receipt: ErasureReceipt): object {
  return {
    erasure_id: toIdText(receipt.erasureId),
    environment_id: receipt.environmentId,
    closure_hash: toHex(receipt.closureHash),
    closure_count: receipt.closureCount,
    cutoff_at: receipt.cutoffAt,
    accepted_at: receipt.acceptedAt,
    fenced_at: receipt.fencedAt,
    visibly_erased_at: receipt.visiblyErasedAt,
    physically_erased_at: receipt.physicallyErasedAt,
    log_expires_at: receipt.logExpiresAt,
    log_expired_at: receipt.logExpiredAt,
    deleted: receipt.deleted,
    verified: receipt.verified,
    log_ends: receipt.logEnds,
    trace_id: receipt.traceId,
  };
}

type Counts = Readonly<Record<string, number>>;

export const PROGRESS_COLUMNS: readonly SentColumn[] = [
  plain('batch_id', 'UUID'),
  plain('erasure_id', 'UUID'),
  plain('environment_id', 'String'),
  time('cutoff_at'),
  keys('closure_keys'),
  plain('deleted', COUNTS),
];

export function toProgressRow(progress: ErasureProgress): object {
  return {
    batch_id: toIdText(progress.batchId),
    erasure_id: toIdText(progress.erasureId),
    environment_id: progress.environmentId,
    cutoff_at: progress.cutoffAt,
    closure_keys: progress.closureKeys.map(toHex),
    deleted: progress.deleted,
  };
}

export interface ProgressRow {
  readonly batch_id: string;
  readonly erasure_id: string;
  readonly environment_id: string;
  readonly cutoff_ms: number;
  readonly closure: readonly string[];
  readonly deleted: Counts;
}

export function fromProgressRow(row: ProgressRow): ErasureProgress {
  return {
    batchId: fromUuidText(row.batch_id),
    erasureId: fromUuidText(row.erasure_id),
    environmentId: row.environment_id,
    cutoffAt: row.cutoff_ms,
    closureKeys: row.closure.map(fromHex),
    deleted: row.deleted,
  };
}

export interface ReceiptRow {
  readonly erasure_id: string;
  readonly environment_id: string;
  readonly closure_hash: string;
  readonly closure_count: number;
  readonly cutoff_ms: number;
  readonly accepted_ms: number;
  readonly fenced_ms: number;
  readonly visibly_erased_ms: number;
  readonly physically_erased_ms: number | null;
  readonly log_expires_ms: number;
  readonly log_expired_ms: number | null;
  readonly deleted: Counts;
  readonly verified: Counts;
  readonly log_ends: Counts;
  readonly trace_id: string;
}

export function fromReceiptRow(row: ReceiptRow): ErasureReceipt {
  return {
    erasureId: fromUuidText(row.erasure_id),
    environmentId: row.environment_id,
    closureHash: fromHex(row.closure_hash),
    closureCount: row.closure_count,
    cutoffAt: row.cutoff_ms,
    acceptedAt: row.accepted_ms,
    fencedAt: row.fenced_ms,
    visiblyErasedAt: row.visibly_erased_ms,
    physicallyErasedAt: row.physically_erased_ms,
    logExpiresAt: row.log_expires_ms,
    logExpiredAt: row.log_expired_ms,
    deleted: row.deleted,
    verified: row.verified,
    logEnds: row.log_ends,
    traceId: row.trace_id,
  };
}
