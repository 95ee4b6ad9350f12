import { setTimeout as delay } from 'node:timers/promises';
import type { HttpAnswer, HttpClient, HttpRequest } from './http-client.ts';

/** What became of one batch after every try that the contract allows. */
export type Delivered =
  /** `doubtful`: an earlier try may have been stored although it was not acknowledged. */
  | { readonly kind: 'answered'; readonly answer: HttpAnswer; readonly tries: number; readonly doubtful: boolean }
  | { readonly kind: 'given up'; readonly reason: string; readonly tries: number };

export interface DeliveryOptions {
  readonly client: HttpClient;
  /** Longer than the service's publish deadline of some seconds, so that its 500 is heard. */
  readonly answerMaxMs?: number;
  /** A broker that stops for 20 s, or restarts twice, must be survived. */
  readonly totalMaxMs?: number;
  /** First pause between tries; doubles up to `pauseMaxMs`, with jitter. */
  readonly pauseFirstMs?: number;
  readonly pauseMaxMs?: number;
  /** Waits between tries; a test counts instead. */
  pause?(ms: number): Promise<unknown>;
  /** Told of each try that did not end the delivery. */
  onRetry?(reason: string): void;
}

/**
 * Delivers by the contract of the client libraries (contract, "Brokers"): the same bytes again after a
 * 5xx, a 429, a time-out or a network fault; every other answer is final.
 */
export function createDelivery(
  options: DeliveryOptions,
): (request: Omit<HttpRequest, 'cutAfterMs'>) => Promise<Delivered> {
  const {
    client,
    answerMaxMs = 10_000,
    totalMaxMs = 240_000,
    pauseFirstMs = 100,
    pauseMaxMs = 3_000,
    pause = delay,
  } = options;
  return async (request) => {
    const endAt = performance.now() + totalMaxMs;
    let doubtful = false;
    for (let tries = 1; ; tries++) {
      let reason: string;
      let pauseMs = jitter(Math.min(pauseMaxMs, pauseFirstMs * 2 ** (tries - 1)));
      try {
        const answer = await client.send({ ...request, cutAfterMs: answerMaxMs });
        if (answer.status < 500 && answer.status !== 429) return { kind: 'answered', answer, tries, doubtful };
        reason = `status ${answer.status}`;
        if (answer.status === 429) pauseMs = retryAfterMsOf(answer) ?? pauseMs;
        else doubtful = true;
      } catch (error) {
        doubtful = true;
        reason = error instanceof Error ? error.message : String(error);
      }
      options.onRetry?.(reason);
      if (performance.now() + pauseMs > endAt) return { kind: 'given up', reason, tries };
      await pause(pauseMs);
    }
  };
}

/** Spread over the upper half, so that batches refused together do not come back together. */
function jitter(ms: number): number {
  return ms / 2 + (Math.random() * ms) / 2;
}

/** `Retry-After` in whole seconds, as the contract has it; null when absent or unreadable. */
export function retryAfterMsOf(answer: HttpAnswer): number | null {
  const seconds = answer.headers['retry-after'];
  return seconds !== undefined && /^\d{1,4}$/.test(seconds) ? Number(seconds) * 1000 : null;
}
