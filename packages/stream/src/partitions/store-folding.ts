import { randomUUID } from 'node:crypto';
import { countRefusal, type NameNotes, REFUSALS_MAX } from './store-once.ts';

export interface StoreFoldingOptions {
  readonly count: number;
  /** Names the rows; used by the first attempt only. */
  readonly token: string;
  readonly triedBefore: boolean;
  readonly notes: NameNotes;
  /**
   *
   * @throws RetryableFault when it is unknown whether the rows are stored, OversizeFault when there were too many
   */
  insert(rows: readonly number[], token: string): Promise<void>;
}

/**
 * Stores rows of a table that shows a row and its copies as one at any moment. Call it again until it resolves. Nothing
 * needs to be read first: after a first attempt the rows are sent under tokens that nobody has used, so an
 * acknowledgement can only mean that they are stored. If they are refused for their size again and again, they are sent
 * in halves, then in quarters.
 * @throws RetryableFault to be called again
 */
export async function storeFolding(options: StoreFoldingOptions): Promise<void> {
  const { count, token, notes, insert } = options;
  const refusals = notes.refusals.get(token) ?? 0;
  const size = Math.max(1, Math.ceil(count / 2 ** Math.floor(refusals / REFUSALS_MAX)));
  for (let from = 0; from < count; from += size) {
    const piece = `${token}|${size}|${from}`;
    if (notes.closed.has(piece)) continue;
    const rows = Array.from({ length: Math.min(size, count - from) }, (_, index) => from + index);
    const isFirst = !options.triedBefore && size === count;
    await countRefusal(notes, token, () => insert(rows, isFirst ? token : `${piece}|${randomUUID()}`));
    notes.closed.add(piece);
  }
}
