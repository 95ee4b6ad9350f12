import { type ErasureState, stateOf } from '@playline/erasure';
import type { QueryOptions, QueryRows } from '@playline/stores';
import { millis, millisOrNull, msOf, number, orNull, queryView, type Row, text } from './query-view.ts';

const REQUEST_COLUMNS = {
  erasureId: text('toString(erasure_id)'),
  requestedMs: millis('requested_at'),
  cutoffMs: millis('cutoff_at'),
  traceId: text('trace_id'),
};
const RECEIPT_COLUMNS = {
  identities: number('identities'),
  // Number of deleted rows in all stores.
  deleted: number('deleted'),
  fencedMs: millisOrNull('fenced_at'),
  visiblyErasedMs: millisOrNull('visibly_erased_at'),
  physicallyErasedMs: millisOrNull('physically_erased_at'),
  logExpiresMs: millisOrNull('log_expires_at'),
  logExpiredMs: millisOrNull('log_expired_at'),
};
type ReceiptLine = Row<typeof RECEIPT_COLUMNS>;
type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

/** An erasure and its progress. Times are in epoch milliseconds; null if a step is not complete. */
export interface ErasureLine extends Row<typeof REQUEST_COLUMNS>, Nullable<ReceiptLine> {
  readonly state: ErasureState;
}

const NO_RECEIPT = Object.fromEntries(Object.keys(RECEIPT_COLUMNS).map((name) => [name, null])) as {
  readonly [K in keyof ReceiptLine]: null;
};

/** Returns the newest 500 erasures. */
export async function readErasures(
  query: QueryRows,
  environmentId: string,
  options?: QueryOptions,
): Promise<ErasureLine[]> {
  const rows = await queryView(
    query,
    {
      view: 'portal_erasures',
      args: { environment: environmentId },
      columns: { ...REQUEST_COLUMNS, ...RECEIPT_COLUMNS, hasReceipt: number('has_receipt') },
      tail: 'ORDER BY requested_at DESC, erasure_id',
      rowsMax: 500,
    },
    options,
  );
  return rows.map(({ hasReceipt, ...row }) => {
    if (hasReceipt !== 1) return { ...row, ...NO_RECEIPT, state: stateOf(null) };
    const { physicallyErasedMs: physicallyErasedAt, logExpiredMs: logExpiredAt } = row;
    return { ...row, state: stateOf({ physicallyErasedAt, logExpiredAt }) };
  });
}

const OPEN_COLUMNS = {
  environmentId: text('environment_id'),
  count: number('open_erasures'),
  oldestMs: millis('oldest_at'),
  oldestId: text('toString(oldest_id)'),
};
export type OpenErasures = Row<typeof OPEN_COLUMNS>;

/** Returns the environments that have open erasures, sorted by the time of their oldest open erasure. */
export async function readOpenErasures(
  query: QueryRows,
  environmentIds: readonly string[],
  options?: QueryOptions,
): Promise<OpenErasures[]> {
  if (environmentIds.length === 0) return [];
  return queryView<OpenErasures>(
    query,
    {
      view: 'portal_open_erasures',
      args: { environments: environmentIds },
      columns: OPEN_COLUMNS,
      tail: 'WHERE open_erasures > 0 ORDER BY oldest_at, environment_id',
      rowsMax: 20_000,
    },
    options,
  );
}

const PROGRESS_COLUMNS = {
  requestedMs: millis('requested_at'),
  // 0 until the eraser has found the person.
  identities: number('identities'),
  deleted: number('deleted'),
  fencedMs: millisOrNull('fenced_at'),
};
export type ErasureProgress = Row<typeof PROGRESS_COLUMNS>;

export interface ErasureInEnvironment {
  readonly environmentId: string;
  readonly erasureId: string;
}

/** Returns how far an erasure without a receipt is; null if the eraser has not stored the request yet. */
export async function readErasureProgress(
  query: QueryRows,
  { environmentId, erasureId }: ErasureInEnvironment,
  options?: QueryOptions,
): Promise<ErasureProgress | null> {
  const args = { environment: environmentId, erasure: erasureId };
  const viewQuery = { view: 'portal_erasure_progress', args, columns: PROGRESS_COLUMNS, rowsMax: 1 };
  const [progress] = await queryView<ErasureProgress>(query, viewQuery, options);
  return progress ?? null;
}

const raw = (sql: string) => ({ sql, read: (value: unknown) => value });
const isoTime = (column: string) => orNull({ sql: msOf(column), read: (ms) => new Date(Number(ms)).toISOString() });

/** Returns a receipt in the format in which it was published; null if there is no receipt yet. */
export async function readReceipt(
  query: QueryRows,
  { environmentId, erasureId }: ErasureInEnvironment,
  options?: QueryOptions,
): Promise<Readonly<Record<string, unknown>> | null> {
  const [receipt] = await queryView(
    query,
    {
      view: 'portal_erasure_receipt',
      args: { environment: environmentId, erasure: erasureId },
      columns: {
        erasureId: raw('toString(erasure_id)'),
        environmentId: raw('environment_id'),
        closureHash: raw('closure_digest'),
        closureCount: number('closure_count'),
        cutoffAt: isoTime('cutoff_at'),
        acceptedAt: isoTime('accepted_at'),
        fencedAt: isoTime('fenced_at'),
        visiblyErasedAt: isoTime('visibly_erased_at'),
        physicallyErasedAt: isoTime('physically_erased_at'),
        logExpiresAt: isoTime('log_expires_at'),
        logExpiredAt: isoTime('log_expired_at'),
        deleted: raw('deleted'),
        verified: raw('verified'),
        logEnds: raw('log_ends'),
        traceId: raw('trace_id'),
      },
      rowsMax: 1,
    },
    options,
  );
  return receipt ?? null;
}
