import {
  type AvroField,
  EVENT_FIELDS,
  type FieldKind,
  kindOf,
  parseRecordSchema,
  UnsupportedSchemaError,
} from './fields.ts';

/** How records of one schema become rows of `events`; made once a schema id. */
export interface RowPlan {
  /** True when the record's fields are the table's columns in order: then whole runs of bytes are copied. */
  readonly straight: boolean;
  /** Fields of the record, in order. */
  readonly fields: readonly AvroField[];
  /** By column: the field that fills it, or -1 for the column's default. */
  readonly fieldOfColumn: readonly number[];
  /** By column: what it holds. */
  readonly kinds: readonly FieldKind[];
}

/** A row without one of these says nothing about anybody; every other column has a neutral value. */
const REQUIRED = new Set(['environmentId', 'eventTime', 'receivedAt', 'messageId']);

/**
 * Compiles the schema a record was written with. Fields are matched by name: one that the table does not know is passed
 * over, one that an older schema does not have becomes the column's neutral value ('' , zero bytes, false, null).
 * @throws UnsupportedSchemaError when no row can be made of such records
 */
export function createRowPlan(schema: string): RowPlan {
  const fields = parseRecordSchema(schema);
  const fieldOfColumn = EVENT_FIELDS.map(({ name, kind }) => {
    const index = fields.findIndex((field) => field.name === name);
    if (index === -1 && REQUIRED.has(name)) throw new UnsupportedSchemaError(`${name}: missing`);
    if (index !== -1 && kindOf(fields[index]!.type) !== kind)
      throw new UnsupportedSchemaError(`${name}: its type cannot be read as ${kind}`);
    return index;
  });
  const straight = fields.length === fieldOfColumn.length && fieldOfColumn.every((field, column) => field === column);
  return { straight, fields, fieldOfColumn, kinds: EVENT_FIELDS.map(({ kind }) => kind) };
}
