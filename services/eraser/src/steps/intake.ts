import {
  createRecordReader,
  type ErasureRequestRecord,
  erasureRequestCodec,
  type SchemaSource,
} from '@playline/contracts';
import { type ErasureRecords, findRequestFault } from '@playline/erasure';
import type { People } from '@playline/people';
import type { Logger } from '@playline/runtime';
import { type BatchHandler, type DeadLetter, type Producer, RetryableFault, sendDeadLetters } from '@playline/stream';

export interface IntakeParts {
  readonly people: Pick<People, 'guards'>;
  readonly records: Pick<ErasureRecords, 'addRequests' | 'readUnfinished'>;
  readonly schemaOf: SchemaSource;
  readonly producer: Producer;
  readonly logger: Logger;
  /** Called when requests have been stored. */
  readonly onRequests: () => void;
}

/**
 * Creates the step that takes requests from their topic. Each gets its hold (a gateway may have died before it
 * confirmed it), and is stored in `erasure_requests` before its offset is committed. Nothing is erased here, so no
 * request waits for another.
 */
export function createIntake(parts: IntakeParts): BatchHandler['onBatch'] {
  const read = createRecordReader({ schemaOf: parts.schemaOf, createReader: erasureRequestCodec.decoderOf });
  return async (records) => {
    const requests: ErasureRequestRecord[] = [];
    const letters: DeadLetter[] = [];
    for (const record of records) {
      const answer = await retryable('the schema of a request', async () => read(record.value));
      const reason = answer.kind === 'record' ? findRequestFault(answer.record) : answer.reason;
      if (answer.kind === 'record' && reason === null) requests.push(answer.record);
      else letters.push({ record, reason: reason ?? '' });
    }
    await retryable('the requests', () => takeAll(parts, requests));
    await retryable('the dead letters', () => sendDeadLetters(parts.producer, letters, 'intake'));
    if (letters.length > 0) parts.logger.warn({ count: letters.length }, 'requests went to the dead letters');
    if (requests.length > 0) parts.onRequests();
  };
}

/** Takes requests. One may come again long after it was done; its new hold is released at once. */
async function takeAll({ people: { guards }, records }: IntakeParts, requests: readonly ErasureRequestRecord[]) {
  if (requests.length === 0) return;
  for (const request of requests) {
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
    // An existing hold may cover more identities by now: the whole closure of the erasure.
    if (await guards.confirm({ environmentId, erasureId })) continue;
    await guards.place({ environmentId, erasureId, keys: [...subjectKeys, ...memberKeys], cutoffMs, lapsesAtMs: null });
  }
  await records.addRequests(requests);
  // Read after the hold was placed: if the receipt comes later, its release follows.
  const unfinished = new Set((await records.readUnfinished()).map(({ erasureId }) => erasureId.toString('hex')));
  for (const request of requests) if (!unfinished.has(request.erasureId.toString('hex'))) await guards.release(request);
}

/** Turns every fault of the stores into a retryable one, so that requests wait. */
async function retryable<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new RetryableFault(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
