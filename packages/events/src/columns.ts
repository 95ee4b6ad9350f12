import { messageRecordCodec } from '@playline/contracts';
import type { EventTable } from './store.ts';

/** Kind of a column in `events`, derived from the field's Avro type. */
export type FieldKind = 'string' | 'time' | 'uuid' | 'key' | 'boolean' | 'nullableDouble';

/** A field in the message record and its column. */
export interface EventField {
  readonly name: string;
  readonly kind: FieldKind;
  readonly column: string;
  /** Type for `input()`. Inserting RowBinary directly into LowCardinality takes four times the CPU time. */
  readonly inputType: string;
}

/** A schema whose records cannot be converted to rows of `events`. */
export class UnsupportedSchemaError extends Error {
  override readonly name = 'UnsupportedSchemaError';
}

/** An Avro type with resolved references to named types. */
export type AvroType = string | readonly AvroType[] | AvroObject;
interface AvroObject {
  readonly type: AvroType;
  readonly name?: string;
  readonly size?: number;
  readonly logicalType?: string;
  readonly items?: AvroType;
  readonly values?: AvroType;
  readonly fields?: readonly AvroField[];
}
export interface AvroField {
  readonly name: string;
  readonly type: AvroType;
  readonly default?: unknown;
}

const INPUT_TYPES: Record<FieldKind, string> = {
  string: 'String',
  time: "DateTime64(3, 'UTC')",
  uuid: 'UUID',
  key: 'FixedString(16)',
  boolean: 'Bool',
  nullableDouble: 'Nullable(Float64)',
};

/** Parses the fields of a record schema, in order. @throws UnsupportedSchemaError for any other schema type */
export function parseRecordSchema(schema: string): AvroField[] {
  const root = JSON.parse(schema) as AvroObject;
  if (root === null || root.type !== 'record' || root.fields === undefined)
    throw new UnsupportedSchemaError('not a record schema');
  const named = new Map<string, AvroType>();
  // A schema file uses only one namespace.
  const shortName = (name: string) => name.slice(name.lastIndexOf('.') + 1);
  const resolve = (type: AvroType): AvroType => {
    if (typeof type === 'string') return named.get(shortName(type)) ?? type;
    if (isUnion(type)) return type.map(resolve);
    const { items, values, fields } = type;
    const resolved: AvroObject = {
      ...type,
      ...(items === undefined ? {} : { items: resolve(items) }),
      ...(values === undefined ? {} : { values: resolve(values) }),
      ...(fields === undefined ? {} : { fields: fields.map((field) => ({ ...field, type: resolve(field.type) })) }),
    };
    if (type.name !== undefined) named.set(shortName(type.name), resolved);
    return resolved;
  };
  return root.fields.map((field) => ({ ...field, type: resolve(field.type) }));
}

export const isUnion = (type: AvroType): type is readonly AvroType[] => Array.isArray(type);

/** Returns the column kind for an Avro type, or null if the type is not supported. */
export function kindOf(type: AvroType): FieldKind | null {
  if (type === 'string' || type === 'boolean') return type;
  if (typeof type === 'string') return null;
  if (isUnion(type)) return type.length === 2 && type[0] === 'null' && type[1] === 'double' ? 'nullableDouble' : null;
  if (type.type === 'long' && type.logicalType === 'timestamp-millis') return 'time';
  if (type.type === 'fixed' && type.size === 16) return type.logicalType === 'uuid' ? 'uuid' : 'key';
  return type.type === 'string' ? 'string' : null;
}

const toColumn = (field: string) => field.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);

/** Column values for fields that are missing from a record's schema, in the notation of Avro defaults. */
const DEFAULTS: Record<FieldKind, unknown> = {
  string: '',
  time: 0,
  uuid: '\0'.repeat(16),
  key: '\0'.repeat(16),
  boolean: false,
  nullableDouble: null,
};

/**
 * Returns the columns of a message schema, in order.
 * @throws UnsupportedSchemaError if a field has no matching column kind, or its default differs from the column's
 */
export function toEventFields(schema: string): EventField[] {
  return parseRecordSchema(schema).map(({ name, type, default: absent }) => {
    const kind = kindOf(type);
    if (kind === null) throw new UnsupportedSchemaError(`${name}: its type has no column kind`);
    if (absent !== undefined && absent !== DEFAULTS[kind])
      throw new UnsupportedSchemaError(`${name}: its default must be ${JSON.stringify(DEFAULTS[kind])}`);
    return { name, kind, column: toColumn(name), inputType: INPUT_TYPES[kind] };
  });
}

export const EVENT_FIELDS: readonly EventField[] = toEventFields(messageRecordCodec.schema);

/** A column in a block insert, and its type for `input()`. */
export interface InsertColumn {
  readonly name: string;
  readonly type: string;
}

const POSITION: readonly InsertColumn[] = [
  { name: 'kafka_partition', type: 'UInt16' },
  { name: 'kafka_offset', type: 'UInt64' },
];

const SHORT_TYPES: Record<string, string> = { Key: 'FixedString(16)', Time: "DateTime64(3, 'UTC')" };

/** Parses a list of `name Type` columns, and expands the types `Key` and `Time`. */
const toColumns = (text: string): InsertColumn[] =>
  text.split(',').map((column) => {
    const [name = '', type = ''] = column.trim().split(' ');
    return { name, type: SHORT_TYPES[type] ?? type };
  });

/** The columns of a block insert, in order. ClickHouse converts their types to the table's types. */
export const EVENT_TABLE_COLUMNS: Record<EventTable, readonly InsertColumn[]> = {
  events: [...EVENT_FIELDS.map(({ column, inputType }) => ({ name: column, type: inputType })), ...POSITION],
  identity_links: [
    ...toColumns(`environment_id String, link_generation UInt8, link_partition UInt16, link_offset UInt64, step UInt8,
      message_id UUID, link String, a_key Key, a_kind String, b_key Key, b_kind String, outcome String, reason String,
      person_key Key, moved_count UInt16, event_time Time, received_at Time, trace_id String`),
    ...POSITION,
  ],
  identity_overrides: toColumns(
    'environment_id String, identity_key Key, person_key Key, kind String, linked_at Time, version UInt64',
  ),
  identity_unlinks: toColumns(
    'environment_id String, identity_key Key, link_generation UInt8, link_offset UInt64, side String, unlinked_at Time',
  ),
  consent_log: [
    ...toColumns(`environment_id String, identity_key Key, status String, source String, received_at Time,
      logged_at Time, trace_id String`),
    ...POSITION,
  ],
  message_rejections: [
    ...toColumns(`environment_id String, code String, field String, surface String, library String,
      library_version String, received_at Time, trace_id String`),
    ...POSITION,
  ],
  audit_log: toColumns(`project_id String, environment_id String, happened_at Time, entry_id String, kind String,
    object String, revision UInt64, action String, actor String, request_id String, address String, detail String`),
};
