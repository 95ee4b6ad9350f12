import type { ErasureStore, TableStore } from '@playline/erasure';

export interface RealColumn {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly inSortingKey: boolean;
}

const FILES = 'packages/erasure/src/stores';
/** Patterns for columns that may contain identities. */
const NAMED_LIKE_IDENTITY = /(^|_)(keys?|ids?)$/;
const TYPED_LIKE_IDENTITY = /FixedString\(16\)|UUID/;

const isLikeIdentity = ({ name, type }: RealColumn) => NAMED_LIKE_IDENTITY.test(name) || TYPED_LIKE_IDENTITY.test(type);

/** Describes unregistered tables and columns, and registered tables and columns that do not exist. */
export function findTableGaps(real: readonly RealColumn[], registered: readonly TableStore[]): string[] {
  const tables = [...new Set(real.map(({ table }) => table))];
  const unregistered = tables.filter((name) => !registered.some((store) => store.name === name));
  return [
    ...unregistered.map((name) => `table ${name} is not registered: add it to ${FILES}/tables.ts with its clearing`),
    ...registered.flatMap((store) =>
      gapsOf(
        store,
        real.filter(({ table }) => table === store.name),
      ),
    ),
  ];
}

function gapsOf(store: TableStore, columns: readonly RealColumn[]): string[] {
  const { name, clearing } = store;
  if (columns.length === 0)
    return [`table ${name} is registered but does not exist: remove it from ${FILES}/tables.ts`];
  const named = [...Object.keys(store.columns), ...(clearing.by === 'sweep' ? sweptIn(clearing) : [])];
  const prefixes = Object.keys(store.prefixes ?? {});
  const isOperatorColumn = ({ name }: RealColumn) => prefixes.some((prefix) => name.startsWith(prefix));
  const columnsToRegister = (clearing.by === 'sweep' ? columns.filter(isLikeIdentity) : columns).filter(
    (column) => !isOperatorColumn(column),
  );
  const missing = columnsToRegister.filter((column) => !named.includes(column.name));
  const nonexistent = named.filter((each) => !columns.some((column) => column.name === each));
  return [
    ...missing.map(
      (column) =>
        `column ${name}.${column.name} is not registered: add it to ${FILES}/tables.ts, ` +
        'to ownKeys or carriedKeys if it identifies a person, otherwise to the columns with its meaning',
    ),
    ...nonexistent.map(
      (each) => `column ${name}.${each} is registered but does not exist: remove it from ${FILES}/tables.ts`,
    ),
    ...(clearing.by === 'sweep' ? sweepGaps(store, columns) : []),
  ];
}

type SweepClearing = Extract<TableStore['clearing'], { by: 'sweep' }>;

const sweptIn = ({ ownKeys, carriedKeys, timeColumns }: SweepClearing) => [
  ...ownKeys,
  ...timeColumns,
  ...carriedKeys.flatMap(({ key, idColumns }) => [key, ...idColumns]),
];

/** Describes registry errors that would make ClickHouse reject a statement. */
function sweepGaps({ name, clearing }: TableStore, columns: readonly RealColumn[]): string[] {
  if (clearing.by !== 'sweep') return [];
  const blanked = clearing.carriedKeys.flatMap(({ key, idColumns }) => [key, ...idColumns]);
  const fixed = columns.filter((column) => column.inSortingKey && blanked.includes(column.name));
  const mistyped = columns.filter(
    (column) => clearing.timeColumns.includes(column.name) && !column.type.startsWith('DateTime64(3'),
  );
  return [
    ...(columns.some((column) => column.name === 'environment_id')
      ? []
      : [`table ${name} has no environment_id: add it because identities belong to environments`]),
    ...fixed.map(
      (column) => `column ${name}.${column.name} is in the sorting key and cannot be blanked: add it to ownKeys`,
    ),
    ...mistyped.map((column) => `column ${name}.${column.name} is ${column.type}: use DateTime64(3)`),
  ];
}

/** Describes unregistered names, and registered names that do not exist. */
export function findNameGaps(
  real: readonly string[],
  registered: readonly ErasureStore[],
  kind: { what: string; file: string },
): string[] {
  const names = registered.map(({ name }) => name);
  return [
    ...real
      .filter((name) => !names.includes(name))
      .map((name) => `${kind.what} ${name} is not registered: add it to ${FILES}/${kind.file} with its clearing`),
    ...names
      .filter((name) => !real.includes(name))
      .map((name) => `${kind.what} ${name} is registered but does not exist: remove it from ${FILES}/${kind.file}`),
  ];
}
