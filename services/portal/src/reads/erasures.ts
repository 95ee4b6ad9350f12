import { type ErasureState, stateOf } from '@playline/erasure';
import type { QueryOptions, QueryRows } from '@playline/stores';
import { millis, millisOrNull, msOf, number, orNull, queryView, text } from './query-view.ts';

/** An erasure and its progress; times in epoch milliseconds, null until then. */
export interface ErasureLine {
  readonly erasureId: string;
  readonly requestedMs: number;
  readonly cutoffMs: number;
  readonly traceId: string;
  readonly state: ErasureState;
  /** Identities of the person; null without a receipt. */
  readonly identities: number | null;
  /** Rows deleted in all stores, 0 for an identity that was never seen; null without a receipt. */
  readonly deleted: number | null;
  readonly fencedMs: number | null;
  readonly visiblyErasedMs: number | null;
  readonly physicallyErasedMs: number | null;
  readonly logExpiresMs: number | null;
  readonly logExpiredMs: number | null;
}

const REQUEST_COLUMNS = {
  erasureId: text('toString(erasure_id)'),
  requestedMs: millis('requested_at'),
  cutoffMs: millis('cutoff_at'),
  traceId: text('trace_id'),
};

const RECEIPT_COLUMNS = {
  identities: number('identities'),
  deleted: number('deleted'),
  fencedMs: millisOrNull('fenced_at'),
  visiblyErasedMs: millisOrNull('visibly_erased_at'),
  physicallyErasedMs: millisOrNull('physically_erased_at'),
  logExpiresMs: millisOrNull('log_expires_at'),
  logExpiredMs: millisOrNull('log_expired_at'),
};

const NO_RECEIPT = {
  identities: null,
  deleted: null,
  fencedMs: null,
  visiblyErasedMs: null,
  physicallyErasedMs: null,
  logExpiresMs: null,
  logExpiredMs: null,
};

/** Newest first, at most 500. */
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

/** Erasures of an environment that have no receipt yet. */
export interface OpenErasures {
  readonly environmentId: string;
  readonly count: number;
  readonly oldestMs: number;
  readonly oldestId: string;
}

/** Environments that have open erasures, the oldest erasure first. */
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
      columns: {
        environmentId: text('environment_id'),
        count: number('open_erasures'),
        oldestMs: millis('oldest_at'),
        oldestId: text('toString(oldest_id)'),
      },
      tail: 'WHERE open_erasures > 0 ORDER BY oldest_at, environment_id',
      rowsMax: 20_000,
    },
    options,
  );
}

const asIs = (sql: string) => ({ sql, read: (value: unknown) => value });
const isoTime = (column: string) => orNull({ sql: msOf(column), read: (ms) => new Date(Number(ms)).toISOString() });

/** The receipt as it is published: JSON, times in ISO 8601, counts by store. Null while there is none. */
export async function readReceipt(
  query: QueryRows,
  { environmentId, erasureId }: { readonly environmentId: string; readonly erasureId: string },
  options?: QueryOptions,
): Promise<Readonly<Record<string, unknown>> | null> {
  const [receipt] = await queryView(
    query,
    {
      view: 'portal_erasure_receipt',
      args: { environment: environmentId, erasure: erasureId },
      columns: {
        erasureId: asIs('toString(erasure_id)'),
        environmentId: asIs('environment_id'),
        closureHash: asIs('closure_digest'),
        closureCount: number('closure_count'),
        cutoffAt: isoTime('cutoff_at'),
        acceptedAt: isoTime('accepted_at'),
        fencedAt: isoTime('fenced_at'),
        visiblyErasedAt: isoTime('visibly_erased_at'),
        physicallyErasedAt: isoTime('physically_erased_at'),
        logExpiresAt: isoTime('log_expires_at'),
        logExpiredAt: isoTime('log_expired_at'),
        deleted: asIs('deleted'),
        verified: asIs('verified'),
        logEnds: asIs('log_ends'),
        traceId: asIs('trace_id'),
      },
      rowsMax: 1,
    },
    options,
  );
  return receipt ?? null;
}
