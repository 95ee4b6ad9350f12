import { type ErasureRequestRecord, erasureRequestCodec, TOPICS } from '@playline/contracts';
import type { People } from '@playline/people';
import { findWhole, readTail } from './log-tail.ts';
import type { RebuildSources } from './stores.ts';
import { readDoneErasures } from './tables.ts';

/**
 * Puts back the holds of all erasures whose request stands on the topic and that have no receipt yet, so that no link
 * newer than their cut-off draws a stranger in.
 * @returns number of holds
 */
export async function restoreHolds(sources: RebuildSources, { guards }: Pick<People, 'guards'>): Promise<number> {
  const done = await readDoneErasures(sources.query);
  const placed: ErasureRequestRecord[] = [];
  const requests = await findWhole(sources, [TOPICS.erasures, erasureRequestCodec]);
  for await (const { value } of readTail(sources, requests)) {
    if (done.has(value.erasureId.toString('hex'))) continue;
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = value;
    await guards.place({ environmentId, erasureId, keys: [...subjectKeys, ...memberKeys], cutoffMs, lapsesAtMs: null });
    placed.push(value);
  }
  // A receipt comes before its release: what got one meanwhile may have been released before it was placed here.
  const doneSince = await readDoneErasures(sources.query);
  const over = placed.filter(({ erasureId }) => doneSince.has(erasureId.toString('hex')));
  for (const { environmentId, erasureId } of over) await guards.release({ environmentId, erasureId });
  return placed.length - over.length;
}
