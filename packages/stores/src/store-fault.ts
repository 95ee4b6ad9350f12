/**
 * How to resolve a fault: retry (`transient`), retry with fewer rows (`oversize`), or change the tables or the program.
 */
export type FaultKind = 'transient' | 'oversize' | 'permanent';

export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly kind: FaultKind;
  /** The error name from ClickHouse or the network. There are few different names, so it can be a metric label. */
  readonly code: string;

  constructor(message: string, options: { kind: FaultKind; code: string }) {
    super(message);
    this.kind = options.kind;
    this.code = options.code;
  }
}

/** Includes missing tables, even during a migration, because a writer without its tables must not be ready. */
const PERMANENT_CODES: ReadonlyMap<number, string> = new Map([
  // The schema differs: column, table, database, number of columns, or type.
  [8, 'THERE_IS_NO_COLUMN'],
  [10, 'NOT_FOUND_COLUMN_IN_BLOCK'],
  [15, 'DUPLICATE_COLUMN'],
  [16, 'NO_SUCH_COLUMN_IN_TABLE'],
  [20, 'NUMBER_OF_COLUMNS_DOESNT_MATCH'],
  [43, 'ILLEGAL_TYPE_OF_ARGUMENT'],
  [44, 'ILLEGAL_COLUMN'],
  [47, 'UNKNOWN_IDENTIFIER'],
  [50, 'UNKNOWN_TYPE'],
  [53, 'TYPE_MISMATCH'],
  [60, 'UNKNOWN_TABLE'],
  [70, 'CANNOT_CONVERT_TYPE'],
  [81, 'UNKNOWN_DATABASE'],
  [349, 'CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN'],
  // This ClickHouse version does not support the statement.
  [46, 'UNKNOWN_FUNCTION'],
  [62, 'SYNTAX_ERROR'],
  [73, 'UNKNOWN_FORMAT'],
  [115, 'UNKNOWN_SETTING'],
  // The bytes cannot be parsed, or the value does not fit into the column.
  [6, 'CANNOT_PARSE_TEXT'],
  [26, 'CANNOT_PARSE_QUOTED_STRING'],
  [27, 'CANNOT_PARSE_INPUT_ASSERTION_FAILED'],
  [32, 'ATTEMPT_TO_READ_AFTER_EOF'],
  [33, 'CANNOT_READ_ALL_DATA'],
  [69, 'ARGUMENT_OUT_OF_BOUND'],
  [117, 'INCORRECT_DATA'],
  [131, 'TOO_LARGE_STRING_SIZE'],
  [321, 'VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE'],
  [469, 'VIOLATED_CONSTRAINT'],
]);

/** A smaller block needs less memory. */
const MEMORY_LIMIT_EXCEEDED = 241;

/** In a cluster, the codes of truncated data also mean that another node closed the connection. */
const isOfConnection = (message: string) => message.includes('while receiving packet from');

function kindOf(code: number, message: string): FaultKind {
  if (PERMANENT_CODES.has(code) && !isOfConnection(message)) return 'permanent';
  return code === MEMORY_LIMIT_EXCEEDED ? 'oversize' : 'transient';
}

/** Returns only the first line, because the server quotes data that it could not parse, and rows contain identities. */
export const toErrorSummary = (text: string): string => text.split('\n', 1)[0]!.slice(0, 200);

/**
 * Converts an error from the ClickHouse client or from `fetch`, which wraps network errors. Network errors (`ECONNREFUSED`)
 * and client errors are `transient`.
 */
export function toStoreFault(thrown: unknown): StoreFault {
  const error = thrown instanceof TypeError && thrown.cause instanceof Error ? thrown.cause : thrown;
  const field = (name: 'code' | 'type') =>
    // A timeout of `fetch` has a number that is not from ClickHouse.
    error instanceof Error && !(error instanceof DOMException) && name in error
      ? String((error as Error & Record<typeof name, unknown>)[name] ?? '')
      : '';
  const isNumber = /^\d+$/.test(field('code'));
  const number = isNumber ? Number(field('code')) : 0;
  const code = isNumber ? field('type') || PERMANENT_CODES.get(number) || `code ${number}` : field('code') || 'network';
  const message = error instanceof Error ? error.message : String(error);
  const label = isNumber ? `${number} ${code}` : code;
  return new StoreFault(`ClickHouse ${label}: ${toErrorSummary(message)}`, { kind: kindOf(number, message), code });
}
