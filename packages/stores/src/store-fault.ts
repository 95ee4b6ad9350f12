/**
 * What helps after a fault: trying again, for ever; trying again, and fewer rows at a time; or nothing that the store
 * does by itself, since it does not know the table or the column, or cannot read the rows.
 */
export type FaultKind = 'passing' | 'oversize' | 'final';

/** A fault of the store. What helps is decided where the fault is born. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly kind: FaultKind;
  /** The store's own name of what went wrong, or the network's: few, so fit for a label. */
  readonly code: string;

  constructor(message: string, options: { kind: FaultKind; code: string }) {
    super(message);
    this.kind = options.kind;
    this.code = options.code;
  }
}

/**
 * Faults that no wait ends: the tables or this program must be changed. Everything else passes, whatever its
 * number, and numbers of later releases too: memory, disk, parts, replicas, passwords, grants, a server that stops.
 * A wrong entry here costs minutes (a stopped partition is tried again by itself), a missing one costs lines in a log.
 *
 * Unknown tables and databases are here although a migration may be on its way: the engine does not answer before its
 * tables are loaded, and a writer that starts before its tables exist must say that it is not ready.
 */
const FINAL_CODES: ReadonlyMap<number, string> = new Map([
  // The schema is another: column, table, database, number of columns, type.
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
  // The statement is none that this release of the engine knows.
  [46, 'UNKNOWN_FUNCTION'],
  [62, 'SYNTAX_ERROR'],
  [73, 'UNKNOWN_FORMAT'],
  [115, 'UNKNOWN_SETTING'],
  // The bytes cannot be read, or have a value that no column may hold.
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

/** A limit of memory, of a query or of the whole server: fewer rows need less of it. */
const MEMORY_LIMIT_EXCEEDED = 241;

function kindOf(code: number): FaultKind {
  if (FINAL_CODES.has(code)) return 'final';
  return code === MEMORY_LIMIT_EXCEEDED ? 'oversize' : 'passing';
}

/** The server quotes what it could not read, and rows hold identities: the first line's words only. */
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
