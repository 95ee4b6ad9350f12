import type { QueryOptions, QueryRows } from '@playline/stores';
import type { Span } from './messages.ts';
import { msOf, queryView } from './query-view.ts';

/** Which rejections are counted: '' says nothing. The span is of when the gateway received them. */
export interface RejectionSearch extends Span {
  readonly environmentId: string;
  readonly code?: string;
  readonly field?: string;
}

/** Errors of one kind by one client. The table is a sample: under load the gateway leaves errors out. */
export interface RejectionCount {
  readonly code: string;
  readonly field: string;
  readonly surface: string;
  readonly library: string;
  readonly libraryVersion: string;
  readonly errors: number;
  /** Epoch milliseconds. */
  readonly lastMs: number;
  readonly lastTraceId: string;
}

/** Errors of one code in one step of time, which begins at `stepMs`. */
export interface RejectionStep {
  readonly stepMs: number;
  readonly code: string;
  readonly errors: number;
}

/** One error of one request. */
export interface Rejection {
  readonly code: string;
  readonly field: string;
  readonly surface: string;
  readonly library: string;
  readonly libraryVersion: string;
  readonly receivedMs: number;
}

/** What is counted of a question beside its environment. */
const argsOf = ({ environmentId, sinceMs, untilMs, code = '', field = '' }: RejectionSearch) => ({
  environment: environmentId,
  since: sinceMs,
  until: untilMs,
  code,
  field,
});

/** The most frequent first. */
export function countRejections(query: QueryRows, question: RejectionSearch, options?: QueryOptions) {
  return queryView<RejectionCount>(
    query,
    {
      view: 'portal_rejections',
      args: argsOf(question),
      columns: [
        ...['code', 'field', 'surface', 'library', 'library_version', 'errors', msOf('last_at'), 'last_trace_id'],
      ],
      tail: 'ORDER BY errors DESC, code, field, library, library_version, surface',
      rowsMax: 200,
      toRow: ([code, field, surface, library, libraryVersion, errors, last, trace]) => ({
        code: String(code),
        field: String(field),
        surface: String(surface),
        library: String(library),
        libraryVersion: String(libraryVersion),
        errors: Number(errors),
        lastMs: Number(last),
        lastTraceId: String(trace),
      }),
    },
    options,
  );
}

/** In the order of time. @param stepS seconds of a step */
export function readRejectionSteps(
  query: QueryRows,
  question: RejectionSearch & { readonly stepS: number },
  options?: QueryOptions,
) {
  return queryView<RejectionStep>(
    query,
    {
      view: 'portal_rejection_times',
      args: { ...argsOf(question), step: question.stepS },
      columns: ['toUnixTimestamp(step_at)', 'code', 'errors'],
      tail: 'ORDER BY step_at, code',
      rowsMax: 10_000,
      toRow: ([step, code, errors]) => ({ stepMs: Number(step) * 1000, code: String(code), errors: Number(errors) }),
    },
    options,
  );
}

/** The errors of one request, by the trace id of its answer. */
export function readRejectionsOfTrace(
  query: QueryRows,
  { environmentId, traceId }: { readonly environmentId: string; readonly traceId: string },
  options?: QueryOptions,
) {
  return queryView<Rejection>(
    query,
    {
      view: 'portal_rejections_of_trace',
      args: { environment: environmentId, trace: traceId },
      columns: ['code', 'field', 'surface', 'library', 'library_version', msOf('received_at')],
      tail: 'ORDER BY received_at, code, field',
      rowsMax: 500,
      toRow: ([code, field, surface, library, libraryVersion, received]) => ({
        code: String(code),
        field: String(field),
        surface: String(surface),
        library: String(library),
        libraryVersion: String(libraryVersion),
        receivedMs: Number(received),
      }),
    },
    options,
  );
}

/** What came in during one minute. */
export interface MinuteCount {
  readonly environmentId: string;
  /** Messages that were accepted, or requests in which something was rejected. */
  readonly outcome: 'accepted' | 'rejected';
  readonly minuteMs: number;
  readonly count: number;
  readonly lastMs: number;
}

/** In the order of time. Dead letters stand in the log alone, and are not counted here. */
export function readMinuteCounts(
  query: QueryRows,
  { environmentIds, sinceMs, untilMs }: Span & { readonly environmentIds: readonly string[] },
  options?: QueryOptions,
): Promise<MinuteCount[]> {
  // No list is no question: an empty one is none of any environment.
  if (environmentIds.length === 0) return Promise.resolve([]);
  return queryView<MinuteCount>(
    query,
    {
      view: 'portal_counts',
      args: { environments: environmentIds, since: sinceMs, until: untilMs },
      columns: ['environment_id', 'fate', 'toUnixTimestamp(minute_at)', 'messages', msOf('last_at')],
      tail: 'ORDER BY minute_at, environment_id, fate',
      rowsMax: 20_000,
      toRow: ([environmentId, fate, minute, count, last]) => ({
        environmentId: String(environmentId),
        outcome: fate === 'accepted' ? 'accepted' : 'rejected',
        minuteMs: Number(minute) * 1000,
        count: Number(count),
        lastMs: Number(last),
      }),
    },
    options,
  );
}
