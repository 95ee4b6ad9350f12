/** The two types of imported lines: activities and tokens. */
import {
  type ActivityConstants,
  type ActivityRow,
  type ChainStore,
  createParseActivity,
  createParseToken,
  findChanged,
  type ImportContext,
  type LoggedVersion,
  type Parsed,
  type TokenRow,
  toActivityRow,
  toTokenRow,
} from '@playline/chain';
import {
  type ActivityRecord,
  activityCodec,
  type RecordCodec,
  TOPICS,
  type TokenRecord,
  type Topic,
  tokenCodec,
} from '@playline/contracts';

export type ImportedRow = LoggedVersion & { readonly traceId: string };

/** `R` is the record type of the topic, and `Row` is the row type of the table. */
export interface ImportSubject<R, Row extends ImportedRow> {
  readonly topic: Topic;
  readonly codec: RecordCodec<R>;
  createParse(context: ImportContext): (line: unknown) => Parsed<R>;
  /** @throws RangeError when the writer would reject the record */
  toRow(record: R): Row;
  nameOf(row: Row): string;
  keyOf(row: Row): Buffer;
  /** Fields that updates must not change, or null. */
  fixedFieldsOf(row: Row): ActivityConstants | null;
  /** Reads the last versions in the tables, by name. @throws StoreFault */
  readStored(store: Pick<ChainStore, 'readActivities' | 'readToken'>, rows: readonly Row[]): Promise<Map<string, Row>>;
}

const NOT_LOGGED: LoggedVersion = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };

/** Activities are identified by their id alone: the writer treats the same id on another chain as an update. */
export const ACTIVITIES: ImportSubject<ActivityRecord, ActivityRow> = {
  topic: TOPICS.activities,
  codec: activityCodec,
  createParse: createParseActivity,
  toRow: (record) => toActivityRow(record, NOT_LOGGED),
  nameOf: ({ id }) => id,
  keyOf: ({ chain }) => Buffer.from(chain),
  fixedFieldsOf: ({ chain, type, contractAddress, indexedAt }) => ({ chain, type, contractAddress, indexedAt }),
  async readStored(store, rows) {
    const found = await store.readActivities([...new Set(rows.map(({ id }) => id))]);
    return new Map(found.map((row) => [row.id, row]));
  },
};

export const TOKENS: ImportSubject<TokenRecord, TokenRow> = {
  topic: TOPICS.tokens,
  codec: tokenCodec,
  createParse: createParseToken,
  toRow: (record) => toTokenRow(record, NOT_LOGGED),
  nameOf: ({ chain, contractAddress }) => `${chain} ${contractAddress}`,
  keyOf: ({ chain, contractAddress }) => Buffer.from(`${chain} ${contractAddress}`),
  fixedFieldsOf: () => null,
  async readStored(store, rows) {
    const named = new Map(rows.map((row) => [TOKENS.nameOf(row), row]));
    const found = await Promise.all(
      [...named].map(async ([name, { chain, contractAddress }]) => {
        const row = await store.readToken(chain, contractAddress);
        return row === null ? [] : [[name, row] as const];
      }),
    );
    return new Map(found.flat());
  },
};

const JSON_NAMES: Readonly<Record<string, string>> = { contractAddress: 'contract_address', indexedAt: 'indexed_at' };

/** Returns the JSON names of fixed fields that an update would change. */
export function findForbidden(current: ActivityConstants | null, update: ActivityConstants | null): string[] {
  if (current === null || update === null) return [];
  return findChanged(current, update).map((name) => JSON_NAMES[name] ?? name);
}
