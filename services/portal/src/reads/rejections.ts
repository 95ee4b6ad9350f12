/** Rejections are a sample: under load the gateway leaves errors out. */
import type { QueryOptions, QueryRows } from '@playline/stores';
import type { Span } from './messages.ts';
import { millis, number, queryView, text } from './query-view.ts';

/** An empty filter matches everything. The span is of when the gateway received the request. */
export interface RejectionSearch extends Span {
  readonly environmentId: string;
  readonly code?: string;
  readonly field?: string;
}

interface RejectedBy {
  readonly code: string;
  readonly field: string;
  readonly surface: string;
  readonly library: string;
  readonly libraryVersion: string;
}

/** Errors of one kind by one client. */
export interface RejectionCount extends RejectedBy {
  readonly errors: number;
  readonly lastMs: number;
  readonly lastTraceId: string;
}

/** Errors of one code in one interval, which begins at `stepMs`. */
export interface RejectionStep {
  readonly stepMs: number;
  readonly code: string;
  readonly errors: number;
}

/** One error of one request. */
export interface Rejection extends RejectedBy {
  readonly receivedMs: number;
}

const REJECTED_BY = {
  code: text('code'),
  field: text('field'),
  surface: text('surface'),
  library: text('library'),
  libraryVersion: text('library_version'),
};

const argsOf = ({ environmentId, sinceMs, untilMs, code = '', field = '' }: RejectionSearch) => ({
  environment: environmentId,
  since: sinceMs,
  until: untilMs,
  code,
  field,
});

/** Most frequent first. */
export function countRejections(query: QueryRows, search: RejectionSearch, options?: QueryOptions) {
  const viewQuery = {
    view: 'portal_rejections',
    args: argsOf(search),
    columns: {
      ...REJECTED_BY,
      errors: number('errors'),
      lastMs: millis('last_at'),
      lastTraceId: text('last_trace_id'),
    },
    tail: 'ORDER BY errors DESC, code, field, library, library_version, surface',
    rowsMax: 200,
  };
  return queryView<RejectionCount>(query, viewQuery, options);
}

/** Oldest first. `stepS`: length of an interval in seconds. */
export function readRejectionSteps(
  query: QueryRows,
  search: RejectionSearch & { readonly stepS: number },
  options?: QueryOptions,
) {
  const viewQuery = {
    view: 'portal_rejection_times',
    args: { ...argsOf(search), step: search.stepS },
    columns: { stepMs: number('1000 * toUnixTimestamp(step_at)'), code: text('code'), errors: number('errors') },
    tail: 'ORDER BY step_at, code',
    rowsMax: 10_000,
  };
  return queryView<RejectionStep>(query, viewQuery, options);
}

/** The errors of one request, by the trace id of its response. */
export function readRejectionsOfTrace(
  query: QueryRows,
  { environmentId, traceId }: { readonly environmentId: string; readonly traceId: string },
  options?: QueryOptions,
) {
  const viewQuery = {
    view: 'portal_rejections_of_trace',
    args: { environment: environmentId, trace: traceId },
    columns: { ...REJECTED_BY, receivedMs: millis('received_at') },
    tail: 'ORDER BY received_at, code, field',
    rowsMax: 500,
  };
  return queryView<Rejection>(query, viewQuery, options);
}
