import {
  createRecordReader,
  type ErasureRequestRecord,
  erasureRequestCodec,
  type SchemaSource,
} from '@playline/contracts';
import type { ErasureRecords } from '@playline/erasure';
import type { People } from '@playline/people';
import type { Logger } from '@playline/runtime';
import { type BatchHandler, type DeadLetter, type Producer, RetryableFault, sendDeadLetters } from '@playline/stream';

export interface IntakeParts {
  readonly people: Pick<People, 'guards'>;
  readonly records: Pick<ErasureRecords, 'addRequests' | 'readUnfinished'>;
  readonly schemaOf: SchemaSource;
  readonly producer: Producer;
  readonly logger: Logger;
  /** Told when requests stand in the store. */
  readonly onRequests: () => void;
}

const ENVIRONMENT_ID = /^[a-z0-9_-]{1,64}$/;
const KEY_BYTES = 16;
/** Redis keeps times in six bytes. */
const TIME_END_MS = 2 ** 48;

/**
 * Creates the step that takes requests from their topic: each gets its hold, which a gateway may not have lived to
 * confirm, and stands in `erasure_requests` before its offset is committed. Nothing is erased here, so requests never
 * wait behind one another.
 */
export function createIntake(parts: IntakeParts): BatchHandler['onBatch'] {
  const read = createRecordReader({ schemaOf: parts.schemaOf, createReader: erasureRequestCodec.decoderOf });
  return async (records) => {
    const requests: ErasureRequestRecord[] = [];
    const letters: DeadLetter[] = [];
    for (const record of records) {
      const answer = await retryable('the schema of a request', async () => read(record.value));
      const reason = answer.kind === 'record' ? findFault(answer.record) : answer.reason;
      if (answer.kind === 'record' && reason === null) requests.push(answer.record);
      else letters.push({ record, reason: reason ?? '' });
    }
    await retryable('the requests', () => takeAll(parts, requests));
    await retryable('the dead letters', () => sendDeadLetters(parts.producer, letters, 'intake'));
    if (letters.length > 0) parts.logger.warn({ count: letters.length }, 'requests went to the dead letters');
    if (requests.length > 0) parts.onRequests();
  };
}

/** A request may come again when it is done, and an hour later: what it gets then is let go at once. */
async function takeAll({ people: { guards }, records }: IntakeParts, requests: readonly ErasureRequestRecord[]) {
  if (requests.length === 0) return;
  for (const request of requests) {
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
    // One that stands may hold more by now: everybody whom the erasure has found.
    if (await guards.confirm({ environmentId, erasureId })) continue;
    await guards.place({ environmentId, erasureId, keys: [...subjectKeys, ...memberKeys], cutoffMs, lapsesAtMs: null });
  }
  await records.addRequests(requests);
  // Asked behind the hold: a receipt that comes later is followed by a release.
  const unfinished = new Set((await records.readUnfinished()).map(({ erasureId }) => erasureId.toString('hex')));
  for (const request of requests) if (!unfinished.has(request.erasureId.toString('hex'))) await guards.release(request);
}

/** Avro knows bytes and numbers; what may be a key or a time is checked here. @returns why it is no request, or null */
function findFault({ environmentId, erasureId, subjectKeys, memberKeys, cutoffAt, requestedAt }: ErasureRequestRecord) {
  const isKey = (key: Buffer) => key.length === KEY_BYTES && key.some((byte) => byte !== 0);
  const isTime = (timeMs: number) => Number.isSafeInteger(timeMs) && timeMs >= 0 && timeMs < TIME_END_MS;
  if (!ENVIRONMENT_ID.test(environmentId)) return 'not an environment id';
  if (erasureId.length !== KEY_BYTES) return 'not an erasure id';
  if (subjectKeys.length === 0 || ![...subjectKeys, ...memberKeys].every(isKey)) return 'not identity keys';
  return isTime(cutoffAt) && isTime(requestedAt) ? null : 'time out of range';
}

/** Whatever ails the stores, requests wait for them. */
async function retryable<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new RetryableFault(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
