import { RowsFault } from '../rows.ts';

/** Faults that waiting does not end: the tables are different, or this engine does not know the statement. */
const FINAL_CODES: ReadonlySet<number> = new Set([
  16, // NO_SUCH_COLUMN_IN_TABLE
  43, // ILLEGAL_TYPE_OF_ARGUMENT
  46, // UNKNOWN_FUNCTION
  47, // UNKNOWN_IDENTIFIER
  53, // TYPE_MISMATCH
  60, // UNKNOWN_TABLE
  62, // SYNTAX_ERROR
  81, // UNKNOWN_DATABASE
  115, // UNKNOWN_SETTING
]);

/** Enough to see what happened. Further on the server may quote values. */
const WORDS_MAX = 200;

export const toWords = (text: string) => text.split('\n', 1)[0]!.slice(0, WORDS_MAX);

/** Node's codes of the network and the client's own errors have no number: waiting helps against them. */
export function toRowsFault(error: unknown): RowsFault {
  if (error instanceof RowsFault) return error;
  const field = (name: string) =>
    error instanceof Error && name in error ? String((error as unknown as Record<string, unknown>)[name] ?? '') : '';
  const isNumber = /^\d+$/.test(field('code'));
  const code = isNumber ? field('type') || `code ${field('code')}` : field('code') || 'network';
  const words = toWords(error instanceof Error ? error.message : String(error));
  const isRetryable = !(isNumber && FINAL_CODES.has(Number(field('code'))));
  return new RowsFault(`ClickHouse ${isNumber ? `${field('code')} ` : ''}${code}: ${words}`, { isRetryable, code });
}
