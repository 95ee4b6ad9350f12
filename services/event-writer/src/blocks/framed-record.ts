import { schemaIdOf } from '@playline/contracts';
import type { Outcome, StreamRecord } from '@playline/stream';

/** A record with a value in the Confluent frame. */
export type FramedRecord = StreamRecord & { readonly value: Buffer };

/** What is wrong with a record that carries no Confluent frame. */
export const UNFRAMED: Outcome = { kind: 'deadLetter', reason: 'not in the Confluent wire format' };

/** The schema id of a framed record; null for any other. */
export function framedSchemaIdOf(record: StreamRecord): number | null {
  return record.value === null ? null : schemaIdOf(record.value);
}
