/** Reads rejections. They are sampled: under load, the gateways do not record every error. */
import type { TimeRange } from './messages.ts';
import { millis, number, type QueryView, type Row, text } from './query-view.ts';

/**
 * Empty filters match everything. The time range applies to the time at which a gateway received the request. `stepS` is
 * the length in seconds of the steps of a trend.
 */
export interface RejectionSearch extends TimeRange {
  readonly environmentId: string;
  readonly stepS: number;
  readonly code?: string;
  readonly field?: string;
}

const CLIENT_COLUMNS = {
  code: text('code'),
  field: text('field'),
  library: text('library'),
  libraryVersion: text('library_version'),
};
const texts = (sql: string) => ({ sql, read: (value: unknown) => value as readonly string[] });
/** Errors by number of the step, counted from the start of the range. Steps without errors are missing. */
const trend = (sql: string) => ({
  sql,
  read: (value: unknown) => {
    const [steps, errors] = value as [number[], (number | string)[]];
    return new Map(steps.map((step, index) => [Number(step), Number(errors[index])]));
  },
});
const CAUSE_COLUMNS = {
  ...CLIENT_COLUMNS,
  errors: number('errors'),
  requests: number('requests'),
  surfaces: texts('surfaces'),
  firstMs: millis('first_at'),
  lastMs: millis('last_at'),
  traceIds: texts('trace_ids'),
  trend: trend('trend'),
};
/** Computed before the limit on rows, so equal in every row. */
const TOTAL_COLUMNS = {
  totalCauses: number('count() OVER ()'),
  totalErrors: number('sum(errors) OVER ()'),
  totalTrend: trend('sumMap(trend.1, trend.2) OVER ()'),
};
const TRACE_COLUMNS = { ...CLIENT_COLUMNS, surface: text('surface'), receivedMs: millis('received_at') };

/** Errors with the same code, field and client. */
export type RejectionCause = Row<typeof CAUSE_COLUMNS>;
/** A single error. */
export type Rejection = Row<typeof TRACE_COLUMNS>;

export interface RejectionCauses extends Row<typeof TOTAL_COLUMNS> {
  /** The most frequent 200, most frequent first. */
  readonly causes: readonly RejectionCause[];
}

export async function readRejectionCauses(queryView: QueryView, search: RejectionSearch): Promise<RejectionCauses> {
  const { environmentId, sinceMs, untilMs, stepS, code = '', field = '' } = search;
  const rows = await queryView({
    view: 'portal_rejections',
    args: { environment: environmentId, since: sinceMs, until: untilMs, step: stepS, code, field },
    columns: { ...CAUSE_COLUMNS, ...TOTAL_COLUMNS },
    tail: 'ORDER BY errors DESC, code, field, library, library_version',
    rowsMax: 200,
  });
  const { totalCauses = 0, totalErrors = 0, totalTrend = new Map() } = rows[0] ?? {};
  return { causes: rows, totalCauses, totalErrors, totalTrend };
}

/** Returns the errors of a request, found by its trace id. */
export function readRejectionsOfTrace(
  queryView: QueryView,
  { environmentId, traceId }: { readonly environmentId: string; readonly traceId: string },
): Promise<Rejection[]> {
  return queryView({
    view: 'portal_rejections_of_trace',
    args: { environment: environmentId, trace: traceId },
    columns: TRACE_COLUMNS,
    tail: 'ORDER BY received_at, code, field',
    rowsMax: 500,
  });
}
