import type { BlockBuilder, SchemaRegistry } from '@playline/stream';
import type { CheckFences } from '../steps/check-fences.ts';
import type { WriteRows } from '../steps/write-rows.ts';
import type { BufferPool } from './buffer-pool.ts';

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
