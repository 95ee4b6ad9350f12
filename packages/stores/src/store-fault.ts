/** What helps after a fault: a retry (`passing`), a retry with fewer rows, or only a change of tables or program. */
export type FaultKind = 'passing' | 'oversize' | 'final';

export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly kind: FaultKind;
  /** The name of the fault in ClickHouse or the network: few, so fit for a label. */
  readonly code: string;

  constructor(message: string, options: { kind: FaultKind; code: string }) {
    super(message);
    this.kind = options.kind;
    this.code = options.code;
  }
}

/** Unknown tables too, although a migration may run: a writer that starts before its tables exist must not be ready. */
const FINAL_CODES: ReadonlyMap<number, string> = new Map([
  // The schema differs: column, table, database, number of columns, type.
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
  // This release of ClickHouse does not know the statement.
  [46, 'UNKNOWN_FUNCTION'],
  [62, 'SYNTAX_ERROR'],
  [73, 'UNKNOWN_FORMAT'],
  [115, 'UNKNOWN_SETTING'],
  // The bytes cannot be read, or no column may hold the value.
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

/** Fewer rows need less memory. */
const MEMORY_LIMIT_EXCEEDED = 241;

function kindOf(code: number): FaultKind {
  if (FINAL_CODES.has(code)) return 'final';
  return code === MEMORY_LIMIT_EXCEEDED ? 'oversize' : 'passing';
}

/** The first line: the server quotes what it could not read, and rows hold identities. */
export const toErrorSummary = (text: string): string => text.split('\n', 1)[0]!.slice(0, 200);

/** What a call of ClickHouse's client threw, as a fault. Node's codes of the network (`ECONNREFUSED`) and the client's own errors have no number: they pass. */
export function toStoreFault(error: unknown): StoreFault {
  const field = (name: 'code' | 'type') =>
    error instanceof Error && name in error ? String((error as Error & Record<typeof name, unknown>)[name] ?? '') : '';
  const isNumber = /^\d+$/.test(field('code'));
  const number = isNumber ? Number(field('code')) : 0;
  const code = isNumber ? field('type') || FINAL_CODES.get(number) || `code ${number}` : field('code') || 'network';
  const text = error instanceof Error ? error.message : String(error);
  const shown = isNumber ? `${number} ${code}` : code;
  return new StoreFault(`ClickHouse ${shown}: ${toErrorSummary(text)}`, { kind: kindOf(number), code });
}
