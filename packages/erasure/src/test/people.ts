import { randomBytes, randomUUID } from 'node:crypto';
import type { ErasureRows, FoundRows } from '../rows.ts';
import type { MemoryRow } from './memory/rows.ts';

/** T of an erasure. */
export const T = Date.UTC(2026, 5, 15);
export const BEFORE = T - 1;
export const AFTER = T + 1;
const NOBODY = Buffer.alloc(16);

export const newKey = () => randomBytes(16);
export const newBatch = () => randomBytes(16);
export const newEnvironment = () => `test-${randomUUID()}`;

/** What a test says of a row; `name` is how it finds the row again. */
type Said = { name: string } & Record<string, unknown>;

/** Rows of one environment, with what no test is about filled in. */
export function createRowsOf(environment_id: string) {
  return {
    event: ({ name, ...said }: Said): MemoryRow => ({
      environment_id,
      event_name: 'level_start',
      trace_id: name,
      message_id: randomUUID(),
      identity_key: NOBODY,
      anonymous_key: NOBODY,
      user_key: NOBODY,
      from_key: NOBODY,
      to_key: NOBODY,
      anonymous_id: '',
      event_time: BEFORE,
      received_at: BEFORE,
      ...said,
    }),
    link: ({ name, ...said }: Said): MemoryRow => ({
      environment_id,
      link_offset: randomBytes(5).readUIntBE(0, 5),
      trace_id: name,
      a_key: newKey(),
      b_key: newKey(),
      person_key: NOBODY,
      event_time: BEFORE,
      received_at: BEFORE,
      ...said,
    }),
    override: ({ name, ...said }: Said): MemoryRow => ({
      environment_id,
      kind: name,
      person_key: newKey(),
      linked_at: BEFORE,
      version: 1,
      ...said,
    }),
    consent: ({ name, ...said }: Said): MemoryRow => ({
      environment_id,
      trace_id: name,
      status: 'full',
      received_at: BEFORE,
      kafka_offset: randomBytes(5).readUIntBE(0, 5),
      ...said,
    }),
  };
}

/** Sweeps until nobody is found: the engine may merge parts under a sweep. @returns what the first sweep found */
export async function sweepAll(rows: ErasureRows, batch: Buffer): Promise<FoundRows[]> {
  const found = await rows.sweep(batch);
  while ((await rows.findSurvivors(batch)).length > 0) await rows.sweep(batch);
  return found;
}
