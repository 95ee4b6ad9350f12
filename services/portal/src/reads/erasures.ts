import { type ErasureState, stateOf } from '@playline/erasure';
import { quoteText } from '@playline/stores';
import { millis, millisOrNull, number, orNull, type QueryView, type Row, text } from './query-view.ts';

/** A number that is not known until the eraser has found the person. */
const found = (column: string) => orNull(number(`if(has_receipt OR ${column} > 0, ${column}, NULL)`));

const COLUMNS = {
  erasureId: text('toString(erasure_id)'),
  requestedMs: millis('requested_at'),
  cutoffMs: millis('cutoff_at'),
  traceId: text('trace_id'),
  identities: found('identities'),
  // Number of deleted rows in all stores.
  deleted: found('deleted'),
  fencedMs: millisOrNull('fenced_at'),
  visiblyErasedMs: millisOrNull('visibly_erased_at'),
  physicallyErasedMs: millisOrNull('physically_erased_at'),
  logExpiresMs: millisOrNull('log_expires_at'),
  logExpiredMs: millisOrNull('log_expired_at'),
};

/** An erasure and its progress. Times are in epoch milliseconds; null if a step is not complete. */
export interface ErasureLine extends Row<typeof COLUMNS> {
  readonly state: ErasureState;
}

async function readLines(queryView: QueryView, environment: string, tail: string) {
  const columns = { ...COLUMNS, hasReceipt: number('has_receipt') };
  const rows = await queryView({ view: 'portal_erasures', args: { environment }, columns, tail, rowsMax: 500 });
  return rows.map(({ hasReceipt, ...row }): ErasureLine => {
    const { physicallyErasedMs: physicallyErasedAt, logExpiredMs: logExpiredAt } = row;
    return { ...row, state: stateOf(hasReceipt === 1 ? { physicallyErasedAt, logExpiredAt } : null) };
  });
}

/** Returns the newest 500 erasures. */
export const readErasures = (queryView: QueryView, environmentId: string) =>
  readLines(queryView, environmentId, 'ORDER BY requested_at DESC, erasure_id');

type ErasureSearch = Readonly<Record<'environmentId' | 'erasureId', string>>;

/** Returns null until the eraser has stored the request. */
export async function readErasure(
  queryView: QueryView,
  { environmentId, erasureId }: ErasureSearch,
): Promise<ErasureLine | null> {
  const tail = `WHERE erasure_id = toUUIDOrZero(${quoteText(erasureId)})`;
  return (await readLines(queryView, environmentId, tail))[0] ?? null;
}

const OPEN_COLUMNS = {
  environmentId: text('environment_id'),
  count: number('open_erasures'),
  oldestMs: millis('oldest_at'),
  oldestId: text('toString(oldest_id)'),
};
export type OpenErasures = Row<typeof OPEN_COLUMNS>;

/** Returns the environments that have open erasures, sorted by the time of their oldest open erasure. */
export async function readOpenErasures(queryView: QueryView, environmentIds: readonly string[]) {
  if (environmentIds.length === 0) return [];
  return queryView({
    view: 'portal_open_erasures',
    args: { environments: environmentIds },
    columns: OPEN_COLUMNS,
    tail: 'WHERE open_erasures > 0 ORDER BY oldest_at, environment_id',
    rowsMax: 20_000,
  });
}

/** Returns a receipt in the format in which it was published; null if there is no receipt yet. */
export async function readReceipt(
  queryView: QueryView,
  { environmentId: environment, erasureId: erasure }: ErasureSearch,
): Promise<Readonly<Record<string, unknown>> | null> {
  const [args, columns] = [{ environment, erasure }, { receipt: text('receipt') }];
  const [found] = await queryView({ view: 'portal_erasure_receipt', args, columns, rowsMax: 1 });
  return found === undefined ? null : JSON.parse(found.receipt);
}
