import { FRAME_BYTES, frameRecord, messageRecordCodec, schemaIdOf } from '@playline/contracts';
import { refuse } from './avro-cursor.ts';
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
  /** Makes a value into one of this release's schema first; null where its bytes can be copied, which is almost always. */
  readonly rewrite: ((value: Buffer) => Buffer) | null;
}

/** A row without one of these says nothing about anybody; every other column has a neutral value. */
const REQUIRED = new Set(['environmentId', 'eventTime', 'receivedAt', 'messageId']);

/**
 * Compiles the schema a record was written with. Fields are matched by name: one that the table does not know is passed
 * over, one that an older schema does not have becomes the column's neutral value ('' , zero bytes, false, null). A field
 * of another type that Avro can read as ours goes through an object, which costs several times as much.
 * @throws UnsupportedSchemaError when no row can be made of such records
 */
export function createRowPlan(schema: string): RowPlan {
  const plan = createCopyPlan(parseRecordSchema(schema));
  if (plan !== null) return plan;
  const decode = createResolvingDecoder(schema);
  const rewrite = (value: Buffer) => {
    try {
      return frameRecord(schemaIdOf(value) ?? 0, messageRecordCodec.encode(decode(value.subarray(FRAME_BYTES))));
    } catch {
      return refuse();
    }
  };
  return { ...createCopyPlan(parseRecordSchema(messageRecordCodec.schema))!, rewrite };
}

/** @throws UnsupportedSchemaError when Avro cannot read it as ours either */
function createResolvingDecoder(schema: string) {
  try {
    return messageRecordCodec.decoderOf(schema);
  } catch (error) {
    throw new UnsupportedSchemaError(error instanceof Error ? error.message : String(error));
  }
}

/** Null when a field has another type than its column. @throws UnsupportedSchemaError when one that must be there is not */
function createCopyPlan(fields: readonly AvroField[]): RowPlan | null {
  let isCopy = true;
  const fieldOfColumn = EVENT_FIELDS.map(({ name, kind }) => {
    const index = fields.findIndex((field) => field.name === name);
    if (index === -1 && REQUIRED.has(name)) throw new UnsupportedSchemaError(`${name}: missing`);
    isCopy &&= index === -1 || kindOf(fields[index]!.type) === kind;
    return index;
  });
  if (!isCopy) return null;
  const straight = fields.length === fieldOfColumn.length && fieldOfColumn.every((field, column) => field === column);
  return { straight, fields, fieldOfColumn, kinds: EVENT_FIELDS.map(({ kind }) => kind), rewrite: null };
}
