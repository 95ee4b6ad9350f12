import { type ErasureState, stateOf } from '@playline/erasure';
import type { QueryOptions, QueryRows } from '@playline/stores';
import { msOf, queryView } from './query-view.ts';

/** An erasure and how far it has come; times in epoch milliseconds, null until then. */
export interface ErasureLine {
  readonly erasureId: string;
  readonly requestedMs: number;
  readonly cutoffMs: number;
  readonly traceId: string;
  /** As the command says it. */
  readonly state: ErasureState;
  /** Of the person; null while it is not known. */
  readonly identities: number | null;
  /** What was deleted in all stores; 0 for an identity that was never seen. Null while it is not known. */
  readonly deleted: number | null;
  readonly fencedMs: number | null;
  readonly visiblyErasedMs: number | null;
  readonly physicallyErasedMs: number | null;
  readonly logExpiresMs: number | null;
  readonly logExpiredMs: number | null;
}

const LINE_COLUMNS = [
  ...[
    'toString(erasure_id)',
    msOf('requested_at'),
    msOf('cutoff_at'),
    'trace_id',
    'has_receipt',
    'identities',
    'deleted',
  ],
  ...[msOf('fenced_at'), msOf('visibly_erased_at'), msOf('physically_erased_at'), msOf('log_expires_at')],
  msOf('log_expired_at'),
];

function toErasureLine(values: readonly unknown[]): ErasureLine {
  const [id, requested, cutoff, trace, hasReceipt, identities, deleted, ...times] = values;
  const isDone = Number(hasReceipt) === 1;
  const [fencedMs, visiblyErasedMs, physicallyErasedMs, logExpiresMs, logExpiredMs] = times.map((value) =>
    isDone && value !== null && Number(value) > 0 ? Number(value) : null,
  ) as (number | null)[];
  const state = stateOf(
    isDone ? { physicallyErasedAt: physicallyErasedMs ?? null, logExpiredAt: logExpiredMs ?? null } : null,
  );
  return {
    erasureId: String(id),
    requestedMs: Number(requested),
    cutoffMs: Number(cutoff),
    traceId: String(trace),
    state,
    identities: isDone ? Number(identities) : null,
    deleted: isDone ? Number(deleted) : null,
    fencedMs: fencedMs ?? null,
    visiblyErasedMs: visiblyErasedMs ?? null,
    physicallyErasedMs: physicallyErasedMs ?? null,
    logExpiresMs: logExpiresMs ?? null,
    logExpiredMs: logExpiredMs ?? null,
  };
}

/** The newest first, at most 500. */
export function readErasures(query: QueryRows, environmentId: string, options?: QueryOptions) {
  return queryView<ErasureLine>(
    query,
    {
      view: 'portal_erasures',
      args: { environment: environmentId },
      columns: LINE_COLUMNS,
      tail: 'ORDER BY requested_at DESC, erasure_id',
      rowsMax: 500,
      toRow: toErasureLine,
    },
    options,
  );
}

/** Erasures of an environment that have no receipt yet. */
export interface OpenErasures {
  readonly environmentId: string;
  readonly count: number;
  /** Epoch milliseconds of the request, and the erasure, of the one that waits for longest. */
  readonly oldestMs: number;
  readonly oldestId: string;
}

/** Of environments that have any, the one that waits for longest first. */
export function readOpenErasures(query: QueryRows, environmentIds: readonly string[], options?: QueryOptions) {
  // No list is no question: an empty one is none of any environment.
  if (environmentIds.length === 0) return Promise.resolve<OpenErasures[]>([]);
  return queryView<OpenErasures>(
    query,
    {
      view: 'portal_open_erasures',
      args: { environments: environmentIds },
      columns: ['environment_id', 'open_erasures', msOf('oldest_at'), 'toString(oldest_id)'],
      tail: 'WHERE open_erasures > 0 ORDER BY oldest_at, environment_id',
      rowsMax: 20_000,
      toRow: ([environmentId, count, oldest, id]) => ({
        environmentId: String(environmentId),
        count: Number(count),
        oldestMs: Number(oldest),
        oldestId: String(id),
      }),
    },
    options,
  );
}

const RECEIPT_TIMES = [
  ...['cutoff_at', 'accepted_at', 'fenced_at', 'visibly_erased_at', 'physically_erased_at'],
  ...['log_expires_at', 'log_expired_at'],
] as const;

/** A receipt as it is given away: JSON with times in ISO 8601 and counts by place. Null while there is none. */
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
      columns: [
        ...['toString(erasure_id)', 'environment_id', 'closure_digest', 'closure_count', 'trace_id'],
        ...['deleted', 'verified', 'log_ends', ...RECEIPT_TIMES.map(msOf)],
      ],
      rowsMax: 1,
      toRow: ([id, environment, digest, count, trace, deleted, verified, logEnds, ...times]) => ({
        erasureId: id,
        environmentId: environment,
        closureHash: digest,
        closureCount: Number(count),
        ...Object.fromEntries(RECEIPT_TIMES.map((name, at) => [toName(name), toIso(times[at])])),
        deleted,
        verified,
        logEnds,
        traceId: trace,
      }),
    },
    options,
  );
  return receipt ?? null;
}

const toName = (column: string) => column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
const toIso = (value: unknown) => (value == null ? null : new Date(Number(value)).toISOString());
