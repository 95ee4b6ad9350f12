import { setTimeout as delay } from 'node:timers/promises';
import type { HttpAnswer, HttpClient, HttpRequest } from './http-client.ts';

/** The result for one batch after all attempts. */
export type Delivered =
  /** `doubtful`: an earlier attempt may have been stored although it was not acknowledged. */
  | { readonly kind: 'answered'; readonly answer: HttpAnswer; readonly tries: number; readonly doubtful: boolean }
  | { readonly kind: 'given up'; readonly reason: string; readonly tries: number };

export interface DeliveryOptions {
  readonly client: HttpClient;
  /** Longer than the service's publish deadline of some seconds, so that its 500 arrives. */
  readonly answerMaxMs?: number;
  /** Must survive a broker that stops for 20 s, or restarts twice. */
  readonly totalMaxMs?: number;
  /** First pause between attempts; doubles up to `pauseMaxMs`, with jitter. */
  readonly pauseFirstMs?: number;
  readonly pauseMaxMs?: number;
  /** Waits between attempts; tests count instead. */
  pause?(ms: number): Promise<unknown>;
  /** Called for each attempt that is repeated. */
  onRetry?(reason: string): void;
}

/**
 * Delivers by the rules for client libraries (contract, "Brokers"): the same bytes are repeated after a 5xx, a 429, a
 * time-out or a network fault; every other answer is final.
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

/** Jitter over the upper half, so that batches refused together are not repeated together. */
function jitter(ms: number): number {
  return ms / 2 + (Math.random() * ms) / 2;
}

/** `Retry-After` in whole seconds, as the contract defines it; null when absent or invalid. */
export function retryAfterMsOf(answer: HttpAnswer): number | null {
  const seconds = answer.headers['retry-after'];
  return seconds !== undefined && /^\d{1,4}$/.test(seconds) ? Number(seconds) * 1000 : null;
}
