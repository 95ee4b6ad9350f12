import type { ErasureRequest } from './records.ts';

const ENVIRONMENT_ID = /^[a-z0-9_-]{1,64}$/;
const KEY_BYTES = 16;
/** Stores of people keep times in six bytes. */
const TIME_END_MS = 2 ** 48;

/**
 * Says why something in the shape of a request is none: a record of the topic has bytes and numbers, and what may be a key
 * or a time is told here. Nobody erases for it, so nobody may hold for it either: the hold would never be released.
 * @returns the reason in a few words, without a value; null for a request
 */
export function findRequestFault(request: Omit<ErasureRequest, 'traceId'>): string | null {
  const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt, requestedAt } = request;
  if (!ENVIRONMENT_ID.test(environmentId)) return 'not an environment id';
  if (erasureId.length !== KEY_BYTES) return 'not an erasure id';
  if (subjectKeys.length === 0 || ![...subjectKeys, ...memberKeys].every(isKey)) return 'not identity keys';
  return isTime(cutoffAt) && isTime(requestedAt) ? null : 'time out of range';
}

const isKey = (key: Buffer) => key.length === KEY_BYTES && key.some((byte) => byte !== 0);
const isTime = (timeMs: number) => Number.isSafeInteger(timeMs) && timeMs >= 0 && timeMs < TIME_END_MS;
