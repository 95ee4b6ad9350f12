import { FRAME_BYTES, frameRecord, messageRecordCodec, schemaIdOf } from '@playline/contracts';
import {
  type AvroField,
  EVENT_FIELDS,
  type FieldKind,
  kindOf,
  parseRecordSchema,
  UnsupportedSchemaError,
} from '../columns.ts';
import { refuse } from './avro-cursor.ts';

/** How records of one schema become rows of `events`. Made once per schema id. */
export interface RowPlan {
  /** True when the fields of the record are the columns of the table, in order: then runs of bytes are copied. */
  readonly straight: boolean;
  readonly fields: readonly AvroField[];
  /** By column: the field that fills it, or -1 for the column's default. */
  readonly fieldOfColumn: readonly number[];
  readonly kinds: readonly FieldKind[];
  /** Converts a value to this release's schema first; null, as almost always, when its bytes can be copied. */
  readonly rewrite: ((value: Buffer) => Buffer) | null;
}

/** Fields without which a row is useless. Every other column has a neutral value. */
const REQUIRED = new Set(['environmentId', 'eventTime', 'receivedAt', 'messageId']);

/**
 * Compiles the schema of a record. Fields are matched by name: unknown ones are skipped, missing ones become neutral
 * values. A field of another type that Avro can convert is decoded into an object, which is slow.
 * @throws UnsupportedSchemaError when such records cannot become rows
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

/** @throws UnsupportedSchemaError when Avro cannot convert to this release's schema */
function createResolvingDecoder(schema: string) {
  try {
    return messageRecordCodec.decoderOf(schema);
  } catch (error) {
    throw new UnsupportedSchemaError(error instanceof Error ? error.message : String(error));
  }
}

/** Null when a field has another type than its column. @throws UnsupportedSchemaError when a required field is missing */
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
