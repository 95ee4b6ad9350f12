import { createRecordReader, type RecordReader, type SchemaSource } from '@playline/contracts';
import type { LoggedFact } from './flows.ts';
import type { ReadFact } from './verify-flow.ts';

/**
 * Creates the reader of records, each with the schema it was written with. An unreadable record is not explained, and
 * so it is reported.
 * @param schemaOf its fault ends the command
 */
export function createReadFact(schemaOf: SchemaSource): ReadFact {
  const readers = new Map<string, RecordReader<LoggedFact>>();
  return async (flow, { value }) => {
    const readValue = readers.get(flow.topic) ?? createRecordReader({ schemaOf, createReader: flow.createDecoder });
    readers.set(flow.topic, readValue);
    const read = await readValue(value);
    return read.kind === 'record' ? read.record : null;
  };
}
