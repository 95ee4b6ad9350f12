import { erasureRequestCodec, TOPICS } from '@playline/contracts';
import { type ErasureRequest, findRequestFault } from '@playline/erasure';
import type { ErasureHold, People } from '@playline/people';
import { findWhole, readTail } from './log-tail.ts';
import type { RebuildSources } from './stores.ts';

/**
 * Puts back the holds of all erasures that have no receipt yet, so that no link newer than their cut-off draws a stranger
 * in. The topic has requests that nobody has stored yet, the tables those that the topic has forgotten.
 * @returns number of holds
 */
export async function restoreHolds(sources: RebuildSources, { guards }: Pick<People, 'guards'>): Promise<number> {
  const holds = new Map<string, ErasureHold>();
  for await (const hold of readLoggedHolds(sources)) holds.set(toId(hold), hold);
  // Of one that stands in both the table may know more members; and behind the topic, whence it gets its requests.
  for (const request of await sources.records.readUnfinished()) holds.set(toId(request), toHold(request));
  for (const hold of holds.values()) await guards.place(hold);
  // A receipt comes before its release: what got one meanwhile may have been released before it was placed here.
  const done = await sources.records.readFinished();
  const over = [...holds.values()].filter((hold) => done.has(toId(hold)));
  for (const hold of over) await guards.release(hold);
  return holds.size - over.length;
}

const toId = ({ erasureId }: Pick<ErasureHold, 'erasureId'>) => erasureId.toString('hex');

function toHold(request: ErasureRequest): ErasureHold {
  const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
  return { environmentId, erasureId, keys: [...subjectKeys, ...memberKeys], cutoffMs, lapsesAtMs: null };
}

async function* readLoggedHolds(sources: RebuildSources): AsyncGenerator<ErasureHold> {
  const done = await sources.records.readFinished();
  const requests = await findWhole(sources, [TOPICS.erasures, erasureRequestCodec]);
  for await (const { record, value } of readTail(sources, requests)) {
    const fault = findRequestFault(value);
    if (fault !== null) {
      const { topic, partition, offset } = record;
      sources.onProgress(`${topic}/${partition}/${offset} is no request (${fault}), and is left out`);
    } else if (!done.has(toId(value))) yield toHold(value);
  }
}
