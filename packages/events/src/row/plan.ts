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

/** Describes how records of one schema are converted to rows of `events`. Created once per schema id. */
export interface RowPlan {
  /** True if the record fields match the table columns in order, so that runs of bytes can be copied. */
  readonly isInColumnOrder: boolean;
  readonly fields: readonly AvroField[];
  /** Index of the record field for each column, or -1 for the default value. */
  readonly fieldOfColumn: readonly number[];
  readonly kinds: readonly FieldKind[];
  /** Converts a value to this release's schema; null in the usual case, when bytes can be copied. */
  readonly rewrite: ((value: Buffer) => Buffer) | null;
}

/** Required fields. All other columns have a default value. */
const REQUIRED = new Set(['environmentId', 'eventTime', 'receivedAt', 'messageId']);

/**
 * Creates the plan for a record schema. Fields are matched by name: unknown fields are skipped, and missing fields have
 * default values. A field whose type Avro must convert is decoded into an object, which is slow.
 * @throws UnsupportedSchemaError if the records cannot be converted to rows
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

/** @throws UnsupportedSchemaError if Avro cannot convert the schema to this release's schema */
function createResolvingDecoder(schema: string) {
  try {
    return messageRecordCodec.decoderOf(schema);
  } catch (error) {
    throw new UnsupportedSchemaError(error instanceof Error ? error.message : String(error));
  }
}

/** @returns null if a field type differs from its column @throws UnsupportedSchemaError for a missing required field */
function createCopyPlan(fields: readonly AvroField[]): RowPlan | null {
  let isCopy = true;
  const fieldOfColumn = EVENT_FIELDS.map(({ name, kind }) => {
    const index = fields.findIndex((field) => field.name === name);
    if (index === -1 && REQUIRED.has(name)) throw new UnsupportedSchemaError(`${name}: required field is missing`);
    isCopy &&= index === -1 || kindOf(fields[index]!.type) === kind;
    return index;
  });
  if (!isCopy) return null;
  const isInColumnOrder =
    fields.length === fieldOfColumn.length && fieldOfColumn.every((field, column) => field === column);
  return { isInColumnOrder, fields, fieldOfColumn, kinds: EVENT_FIELDS.map(({ kind }) => kind), rewrite: null };
}
