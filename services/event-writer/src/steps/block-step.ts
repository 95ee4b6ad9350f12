import { schemaIdOf } from '@playline/contracts';
import type { BlockBuilder, Outcome, SchemaRegistry, StreamRecord } from '@playline/stream';
import type { BufferPool } from './buffer-pool.ts';
import type { CheckFences } from './check-fences.ts';
import type { WriteRows } from './write-rows.ts';

/** What becomes of the records of one topic. */
export interface BlockStep {
  openBlock(transformVersion: number): BlockBuilder;
  /** Asks for the schema of the topic's subject that this release knows, so that the first records need not wait. Never throws. */
  prefetch(subject: string): Promise<void>;
}

/** What the steps of all topics share. */
export interface BlockParts {
  schemas: SchemaRegistry;
  checkFences: CheckFences;
  writeRows: WriteRows;
  pool: BufferPool;
}

/** A record with a value in the Confluent frame. */
export type FramedRecord = StreamRecord & { readonly value: Buffer };

/** What is wrong with a record that carries no Confluent frame. */
export const UNFRAMED: Outcome = { kind: 'deadLetter', reason: 'not in the Confluent wire format' };

/** The schema id of a framed record; null for any other. */
export function framedSchemaIdOf(record: StreamRecord): number | null {
  return record.value === null ? null : schemaIdOf(record.value);
}
