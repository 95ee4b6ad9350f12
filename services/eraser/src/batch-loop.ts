import type { ErasureReceipt, ErasureRequest } from '@playline/erasure';
import { pause, pauseOrThrow } from '@playline/errors';
import type { Logger } from '@playline/runtime';
import { type Leading, openLeading } from './leading.ts';
import { type Batch, type BatchParts, beginBatch, finishBatch, toBatches } from './steps/erase-batch.ts';
import { toId } from './steps/settle.ts';

export interface BatchLoopParts extends BatchParts {
  readonly logger: Logger;
  /** How long requests are gathered, counted from the first one. */
  readonly windowMs: number;
  /** Most requests of one batch. */
  readonly batchRequestsMax: number;
  /** Called after each look for requests. */
  readonly onLook: () => void;
  readonly startBatch: () => (receipts: readonly ErasureReceipt[]) => void;
  readonly onFault: (fault: unknown) => void;
  /** Called when running work stops because another process leads. */
  readonly onHandover: () => void;
}

/** Erases one batch after the other in the leading process, starting with the batches that another process left. */
export interface BatchLoop extends Leading {
  /** Tells the loop that the store may have new requests. */
  wake(): void;
}

/** How often the loop looks for requests without being woken, because another process may have stored some. */
const LOOK_MS = 10_000;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 30_000;

/** Opens the loop; it does nothing before it leads. */
export function openBatchLoop(parts: BatchLoopParts): BatchLoop {
  const alarm = createAlarm();
  const leading = openLeading((signal, run) => run(() => runBatches(parts, alarm, signal)));
  return { ...leading, wake: () => alarm.ring() };
}

async function runBatches(parts: BatchLoopParts, alarm: Alarm, signal: AbortSignal): Promise<void> {
  const leftOut: LeftOut = new Map();
  for (let retryMs = RETRY_MIN_MS; !signal.aborted; ) {
    try {
      const hasWorked = await runNext(parts, leftOut, signal);
      retryMs = RETRY_MIN_MS;
      if (!hasWorked) await alarm.wait(LOOK_MS, signal);
    } catch (error) {
      if (signal.aborted) return parts.onHandover();
      parts.onFault(error);
      parts.logger.warn({ error, retryMs }, 'erasures wait: a step failed and is done again');
      await pause(retryMs, signal);
      retryMs = Math.min(2 * retryMs, RETRY_MAX_MS);
    }
  }
}

/**
 * Finishes the batches that were begun, and begins a batch of the requests that are in none. A batch that cannot be
 * finished does not delay other people, only further requests about its own.
 * @returns whether there was anything to do
 * @throws the first fault, after everything else was done
 */
async function runNext(parts: BatchLoopParts, leftOut: LeftOut, signal: AbortSignal): Promise<boolean> {
  const { records } = parts;
  const progress = await records.readProgress();
  const unfinished = await records.readUnfinished();
  parts.onLook();
  if (progress.length === 0 && unfinished.length === 0) return false;
  const faults: unknown[] = [];
  for (const batch of toBatches(progress, unfinished))
    await finish(parts, batch, signal).catch((fault: unknown) => faults.push(fault));
  signal.throwIfAborted();
  const hasBegun = await beginNext(parts, leftOut, signal);
  if (faults.length > 0) throw faults[0];
  return hasBegun || progress.length > 0;
}

/** Ids (hexadecimal) of requests that wait for other erasures, and when they are tried again. */
type LeftOut = Map<string, number>;

async function beginNext(parts: BatchLoopParts, leftOut: LeftOut, signal: AbortSignal): Promise<boolean> {
  const findNext = async () => {
    const isDue = (request: ErasureRequest) => (leftOut.get(toId(request)) ?? 0) <= performance.now();
    return (await findFree(parts.records)).filter(isDue).slice(0, parts.batchRequestsMax);
  };
  if ((await findNext()).length === 0) return false;
  await pauseOrThrow(parts.windowMs, signal);
  const requests = await findNext();
  if (requests.length === 0) return true;
  const batch = await beginBatch(parts, requests, signal);
  for (const request of requests) leftOut.set(toId(request), performance.now() + LOOK_MS);
  for (const name of batch?.names ?? []) leftOut.delete(toId(name));
  if (batch !== null) await finish(parts, batch, signal);
  return batch !== null;
}

/** Requests that are in no batch, and name no person of a batch. @throws StoreFault */
export async function findFree(records: BatchParts['records']): Promise<ErasureRequest[]> {
  const noted = await records.readProgress();
  const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
  const held = new Set(
    noted.flatMap(({ environmentId, closureKeys }) => closureKeys.map((key) => nameOf(environmentId, key))),
  );
  const begun = new Set(noted.map(toId));
  return (await records.readUnfinished()).filter(
    ({ erasureId, environmentId, subjectKeys, memberKeys }) =>
      !begun.has(toId({ erasureId })) &&
      ![...subjectKeys, ...memberKeys].some((key) => held.has(nameOf(environmentId, key))),
  );
}

async function finish(parts: BatchLoopParts, batch: Batch, signal: AbortSignal): Promise<void> {
  const end = parts.startBatch();
  const receipts = await finishBatch(parts, batch, signal);
  end(receipts);
  if (receipts.length > 0) parts.logger.info({ requests: receipts.length }, 'erased, with a receipt for each request');
}

interface Alarm {
  ring(): void;
  /** Resolves when the alarm rings or has rung since the last wait, after `ms`, or when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

function createAlarm(): Alarm {
  let rung = new AbortController();
  return {
    ring: () => rung.abort(),
    async wait(ms, signal) {
      await pause(ms, AbortSignal.any([signal, rung.signal]));
      rung = new AbortController();
    },
  };
}
