import { IDENTITY_KEY_BYTES, isEnvironmentId, KEPT_TIME_END_MS } from '@playline/contracts';
import type { ErasureRequest } from './records.ts';

const ERASURE_ID_BYTES = 16;

/**
 * Explains why a record with the shape of a request is not a valid one: its bytes and numbers may be no keys and times.
 * No eraser works on such a request, so no hold may be placed for it either: nobody would release it.
 * @returns the reason in a few words, without a value; null for a valid request
 */
export function findRequestFault(request: Omit<ErasureRequest, 'traceId'>): string | null {
  const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt, requestedAt } = request;
  if (!isEnvironmentId(environmentId)) return 'not an environment id';
  if (erasureId.length !== ERASURE_ID_BYTES) return 'not an erasure id';
  if (subjectKeys.length === 0 || ![...subjectKeys, ...memberKeys].every(isKey)) return 'not identity keys';
  return isTime(cutoffAt) && isTime(requestedAt) ? null : 'time out of range';
}

const isKey = (key: Buffer) => key.length === IDENTITY_KEY_BYTES && key.some((byte) => byte !== 0);
const isTime = (timeMs: number) => Number.isSafeInteger(timeMs) && timeMs >= 0 && timeMs < KEPT_TIME_END_MS;
