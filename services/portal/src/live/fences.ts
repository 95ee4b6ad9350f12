import type { FenceSet } from '@playline/erasure';
import type { LiveEntry } from './entry.ts';

/**
 * Takes away what an entry says of erased people, by the rule of the event writer: all of it where it is about one of them,
 * else the anonymous id that it merely carries.
 * @returns whether it was taken away now
 */
export function withdrawErased(entry: LiveEntry, fences: Pick<FenceSet, 'isFenced'>): boolean {
  const { message, environmentId } = entry;
  if (message === null) return false;
  const times = { eventTimeMs: message.eventTime, receivedAtMs: entry.receivedAt };
  const isErased = (key: string) => fences.isFenced({ environmentId, key: Buffer.from(key, 'hex'), ...times });
  if (message.ownKeys.some(isErased)) {
    entry.message = null;
    entry.fate = 'fenced';
    entry.reason = '';
    return true;
  }
  if (message.anonymousKey !== '' && isErased(message.anonymousKey)) {
    const { anonymousId: _, ...ids } = message.ids;
    entry.message = { ...message, ids, anonymousKey: '' };
  }
  return false;
}
