/** Columns and row conversion for the erasure record tables. */
import { fromUuidText } from '@playline/contracts';
import type { SentColumn } from '@playline/stores';
import type { ErasureFence, ErasureProgress, ErasureReceipt, ErasureRequest, FoundLink } from '../records.ts';
import { assertKey, toIdText } from './predicates.ts';

const toHex = (key: Buffer) => key.toString('hex');
const fromHex = (text: string) => Buffer.from(text, 'hex');
const toTime = (name: string) => `fromUnixTimestamp64Milli(${name}, 'UTC')`;
const fromTime = (name: string) => `toUnixTimestamp64Milli(${name})`;

/** Conversion of a field between JavaScript, JSON rows and ClickHouse. */
interface FieldKind {
  readonly type: string;
  readonly insert?: (column: string) => string;
  readonly select?: (column: string) => string;
  readonly write?: (value: never) => unknown;
  readonly read?: (value: never) => unknown;
}

const KINDS = {
  id: { type: 'UUID', select: (column) => `toString(${column})`, write: toIdText, read: fromUuidText },
  text: { type: 'String' },
  count: { type: 'UInt32' },
  counts: { type: 'Map(String, UInt64)' },
  time: { type: 'Int64', insert: toTime, select: fromTime },
  nullableTime: { type: 'Nullable(Int64)', insert: toTime, select: fromTime },
  hash: {
    type: 'String',
    insert: (column) => `toFixedString(unhex(${column}), 32)`,
    select: (column) => `lower(hex(${column}))`,
    write: toHex,
    read: fromHex,
  },
  keys: {
    type: 'Array(String)',
    insert: (column) => `arrayMap(key -> toFixedString(unhex(key), 16), ${column})`,
    select: (column) => `arrayMap(key -> lower(hex(key)), ${column})`,
    write: (keys: readonly Buffer[]) => keys.map(toHex),
    read: (texts: readonly string[]) => texts.map(fromHex),
  },
} as const satisfies Readonly<Record<string, FieldKind>>;

/** Maps a record type to a table whose columns are the field names in snake case. */
function createTable<R extends object>(kinds: Readonly<Record<keyof R & string, keyof typeof KINDS>>) {
  const fields = Object.entries<keyof typeof KINDS>(kinds).map(([name, kind]) => {
    const column = name.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
    return { name, column, ...(KINDS[kind] as FieldKind) };
  });
  const convert = (source: object, by: 'write' | 'read') =>
    Object.fromEntries(
      fields.map(({ name, [by]: convertValue = (value: unknown) => value }) => {
        return [name, convertValue((source as Record<string, unknown>)[name] as never)];
      }),
    );
  return {
    columns: fields.map(
      ({ name, column, type, insert }): SentColumn => ({ name, column, type, ...(insert && { as: insert(name) }) }),
    ),
    /** SELECT list for rows that `fromRow` accepts. */
    fields: fields.map(({ name, column, select }) => `${select?.(column) ?? column} AS ${name}`).join(', '),
    toRow: (record: R): object => convert(record, 'write'),
    fromRow: (row: object) => convert(row, 'read') as R,
  };
}

export const receiptTable = createTable<ErasureReceipt>({
  erasureId: 'id',
  environmentId: 'text',
  closureHash: 'hash',
  closureCount: 'count',
  cutoffAt: 'time',
  acceptedAt: 'time',
  fencedAt: 'time',
  visiblyErasedAt: 'time',
  physicallyErasedAt: 'nullableTime',
  logExpiresAt: 'time',
  logExpiredAt: 'nullableTime',
  deleted: 'counts',
  verified: 'counts',
  logEnds: 'counts',
  traceId: 'text',
});

export const progressTable = createTable<ErasureProgress>({
  batchId: 'id',
  erasureId: 'id',
  environmentId: 'text',
  cutoffAt: 'time',
  closureKeys: 'keys',
  deleted: 'counts',
});

/** Excludes the links, which are streamed. */
export const requestTable = createTable<Omit<ErasureRequest, 'links'>>({
  erasureId: 'id',
  environmentId: 'text',
  subjectKeys: 'keys',
  memberKeys: 'keys',
  cutoffAt: 'time',
  requestedAt: 'time',
  traceId: 'text',
});

export const REQUEST_COLUMNS: readonly SentColumn[] = [
  ...requestTable.columns,
  {
    name: 'links',
    type: 'Array(Tuple(String, String, Int64, UInt8, UInt64, Nullable(Int64)))',
    as:
      'arrayMap(link -> (toFixedString(unhex(link.1), 16), toFixedString(unhex(link.2), 16), ' +
      "fromUnixTimestamp64Milli(link.3, 'UTC'), link.4, link.5, fromUnixTimestamp64Milli(link.6, 'UTC')), links)",
  },
];

const LINKS_PER_CHUNK = 1_000;

/** Encodes a request in chunks of JSON. A request with half a million links takes 50 MB. */
export function* toRequestRow(request: ErasureRequest): Generator<string> {
  yield `${JSON.stringify(requestTable.toRow(request)).slice(0, -1)},"links":[`;
  const { links = [] } = request;
  for (let at = 0; at < links.length; at += LINKS_PER_CHUNK) {
    const chunk = links.slice(at, at + LINKS_PER_CHUNK).map(toLinkRow);
    yield `${at === 0 ? '' : ','}${JSON.stringify(chunk).slice(1, -1)}`;
  }
  yield ']}';
}

function toLinkRow({ a, b, receivedAtMs, last, unlinkedAtMs = null }: FoundLink): readonly unknown[] {
  return [toHex(a), toHex(b), receivedAtMs, last.generation, last.offset, unlinkedAtMs];
}

export const FENCE_COLUMNS: readonly SentColumn[] = [
  { name: 'environment_id', type: 'String' },
  { name: 'identity_key', type: 'String', as: 'toFixedString(unhex(identity_key), 16)' },
  { name: 'cutoff_at', type: 'Int64', as: toTime('cutoff_at') },
  { name: 'erasure_id', type: 'UUID' },
];

/** @throws RangeError for the zero key */
export function toFenceRow({ environmentId, key, cutoffMs: cutoff_at, erasureId }: ErasureFence): object {
  assertKey(key);
  return { environment_id: environmentId, identity_key: toHex(key), cutoff_at, erasure_id: toIdText(erasureId) };
}
