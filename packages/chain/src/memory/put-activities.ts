import { randomUUID } from 'node:crypto';
import type { ActivityRow } from '../rows.ts';
import type { ActivityStore } from '../store.ts';
import { findSupersessions } from '../supersessions.ts';

/** Stores versions as the writer does, as one block with new tokens. For tests with any store. */
export async function putActivities(
  { insert, lastBefore }: Pick<ActivityStore, 'insert' | 'lastBefore'>,
  rows: readonly ActivityRow[],
): Promise<void> {
  const under = () => ({ token: randomUUID(), signal: new AbortController().signal });
  const supersessions = await findSupersessions(rows, lastBefore);
  await insert({ table: 'activities', rows, ...under() });
  await insert({ table: 'activity_ids', rows, ...under() });
  await insert({ table: 'activity_feeds', rows: [...rows, ...supersessions], ...under() });
}
