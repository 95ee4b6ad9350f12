/** Reads rejections. They are sampled: under load, the gateways do not record every error. */
import type { QueryOptions, QueryRows } from '@playline/stores';
import type { TimeRange } from './messages.ts';
import { millis, number, queryView, type Row, text } from './query-view.ts';

/** Empty filters match everything. The time range applies to the time at which a gateway received the request. */
export interface RejectionSearch extends TimeRange {
  readonly environmentId: string;
  readonly code?: string;
  readonly field?: string;
}

const CLIENT_COLUMNS = {
  code: text('code'),
  field: text('field'),
  surface: text('surface'),
  library: text('library'),
  libraryVersion: text('library_version'),
};
const COUNT_COLUMNS = {
  ...CLIENT_COLUMNS,
  errors: number('errors'),
  lastMs: millis('last_at'),
  lastTraceId: text('last_trace_id'),
};
const STEP_COLUMNS = {
  stepMs: number('1000 * toUnixTimestamp(step_at)'),
  code: text('code'),
  errors: number('errors'),
};
const TRACE_COLUMNS = { ...CLIENT_COLUMNS, receivedMs: millis('received_at') };

/** The number of errors for a code, field and client. */
export type RejectionCount = Row<typeof COUNT_COLUMNS>;
/** The number of errors for a code in the interval that starts at `stepMs`. */
export type RejectionStep = Row<typeof STEP_COLUMNS>;
/** A single error. */
export type Rejection = Row<typeof TRACE_COLUMNS>;

const argsOf = ({ environmentId, sinceMs, untilMs, code = '', field = '' }: RejectionSearch) => ({
  environment: environmentId,
  since: sinceMs,
  until: untilMs,
  code,
  field,
});

/** Returns error counts, most frequent first. */
export function countRejections(query: QueryRows, search: RejectionSearch, options?: QueryOptions) {
  const viewQuery = {
    view: 'portal_rejections',
    args: argsOf(search),
    columns: COUNT_COLUMNS,
    tail: 'ORDER BY errors DESC, code, field, library, library_version, surface',
    rowsMax: 200,
  };
  return queryView<RejectionCount>(query, viewQuery, options);
}

/** Returns error counts per interval, oldest first. `stepS` is the interval length in seconds. */
export function readRejectionSteps(
  query: QueryRows,
  search: RejectionSearch & { readonly stepS: number },
  options?: QueryOptions,
) {
  const viewQuery = {
    view: 'portal_rejection_times',
    args: { ...argsOf(search), step: search.stepS },
    columns: STEP_COLUMNS,
    tail: 'ORDER BY step_at, code',
    rowsMax: 10_000,
  };
  return queryView<RejectionStep>(query, viewQuery, options);
}

/** Returns the errors of a request, found by its trace id. */
export function readRejectionsOfTrace(
  query: QueryRows,
  { environmentId, traceId }: { readonly environmentId: string; readonly traceId: string },
  options?: QueryOptions,
) {
  const viewQuery = {
    view: 'portal_rejections_of_trace',
    args: { environment: environmentId, trace: traceId },
    columns: TRACE_COLUMNS,
    tail: 'ORDER BY received_at, code, field',
    rowsMax: 500,
  };
  return queryView<Rejection>(query, viewQuery, options);
}
