import { randomBytes, randomUUID } from 'node:crypto';
import type { ErasureRows, FoundRows } from '../rows.ts';
import type { MemoryRow } from './memory/rows.ts';

export const T = Date.UTC(2026, 5, 15);
export const BEFORE = T - 1;
export const AFTER = T + 1;
const NO_KEY = Buffer.alloc(16);

export const newKey = () => randomBytes(16);
export const newBatch = () => randomBytes(16);
export const newEnvironment = () => `test-${randomUUID()}`;

/** Fields to set; `name` identifies the row. */
type Fields = { name: string } & Record<string, unknown>;

export function createRowsOf(environment_id: string) {
  return {
    event: ({ name, ...fields }: Fields): MemoryRow => ({
      environment_id,
      event_name: 'level_start',
      trace_id: name,
      message_id: randomUUID(),
      identity_key: NO_KEY,
      anonymous_key: NO_KEY,
      user_key: NO_KEY,
      from_key: NO_KEY,
      to_key: NO_KEY,
      anonymous_id: '',
      event_time: BEFORE,
      received_at: BEFORE,
      ...fields,
    }),
    link: ({ name, ...fields }: Fields): MemoryRow => ({
      environment_id,
      link_offset: randomBytes(5).readUIntBE(0, 5),
      trace_id: name,
      a_key: newKey(),
      b_key: newKey(),
      person_key: NO_KEY,
      event_time: BEFORE,
      received_at: BEFORE,
      ...fields,
    }),
    override: ({ name, ...fields }: Fields): MemoryRow => ({
      environment_id,
      kind: name,
      person_key: newKey(),
      linked_at: BEFORE,
      version: 1,
      ...fields,
    }),
    consent: ({ name, ...fields }: Fields): MemoryRow => ({
      environment_id,
      trace_id: name,
      status: 'full',
      received_at: BEFORE,
      kafka_offset: randomBytes(5).readUIntBE(0, 5),
      ...fields,
    }),
  };
}

/** Sweeps until no row survives because merges may move rows. @returns the rows that the first sweep found */
export async function sweepAll(rows: ErasureRows, batch: Buffer): Promise<FoundRows[]> {
  const found = await rows.sweep(batch);
  while ((await rows.findSurvivors(batch)).length > 0) await rows.sweep(batch);
  return found;
}
