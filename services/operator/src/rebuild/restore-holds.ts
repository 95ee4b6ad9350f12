import { erasureRequestCodec, TOPICS } from '@playline/contracts';
import { type ErasureRequest, findRequestFault } from '@playline/erasure';
import type { ErasureHold, People } from '@playline/people';
import { findWhole, readTail } from './log-tail.ts';
import type { RebuildSources } from './stores.ts';

/**
 * Restores the holds of all erasures without a receipt, so that no link after their cut-off joins another person. The
 * topic has requests that are not stored yet, the tables those that the topic no longer has.
 * @returns number of holds
 */
export async function restoreHolds(sources: RebuildSources, { guards }: Pick<People, 'guards'>): Promise<number> {
  const holds = new Map<string, ErasureHold>();
  for await (const hold of readLoggedHolds(sources)) holds.set(toId(hold), hold);
  // For a request in both, the table may know more members. Read it after the topic, which fills it.
  for (const request of await sources.records.readUnfinished()) holds.set(toId(request), toHold(request));
  for (const hold of holds.values()) await guards.place(hold);
  // A receipt is written before its release: a hold placed here may be of an erasure that was released meanwhile.
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
