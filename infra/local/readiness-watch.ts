// Checks periodically whether a process is ready.
import { setTimeout as delay } from 'node:timers/promises';
import { waitAtMost } from '@playline/stores';

export interface WatchedReadiness {
  /** @throws Error with the reason if the process is not ready */
  isReady(): Promise<boolean>;
  /** Returns false once the process has exited or is being stopped. */
  isCurrent(): boolean;
  onReady(): void;
  /** Called after every failed check. */
  onFault(reason: string): void;
  /** Called once when all checks have failed for a minute. */
  onSilence(reason: string): void;
}

const READY_POLL_MS = 50;
/** After this time without readiness, a process is checked less often. */
const FAST_POLL_MAX_MS = 30_000;
const SLOW_POLL_MS = 1_000;
/** Interval for ready processes. A Kafka check writes a record, and a service check sends requests to its stores. */
const STEADY_POLL_MS = 60_000;
/** Longer than the timeout of any probe. */
const RESPONSE_MAX_MS = 15_000;
/** Longer than any interruption of a healthy process, such as an election or rebalance. */
const SILENCE_MAX_MS = 60_000;

async function findReason(isReady: () => Promise<boolean>): Promise<string | null> {
  try {
    const result = await waitAtMost(RESPONSE_MAX_MS, isReady(), () => 'timeout' as const);
    if (result === 'timeout') return `it has not responded for ${RESPONSE_MAX_MS / 1000} s`;
    return result ? null : 'it is not ready yet';
  } catch (error) {
    return toReason(error);
  }
}

interface Cause {
  readonly code?: string;
  readonly message?: string;
  /** Milliseconds; only of a kafkajs request that timed out. */
  readonly pendingDuration?: number;
}

/** @returns how long kafkajs waited for a response; the message of kafkajs contains only internal names */
const readWaitMs = (error: Cause | undefined): number | undefined => error?.pendingDuration;

/** Combines the messages of an error and its cause. For `fetch`, only the cause names the failed connection. */
export function toReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message of AbortSignal.timeout does not name the operation.
  if (error.name === 'TimeoutError') return 'it does not respond';
  const { cause } = error as { cause?: Cause };
  const waitMs = readWaitMs(error) ?? readWaitMs(cause);
  if (typeof waitMs === 'number') return `it does not respond within ${Math.max(1, Math.round(waitMs / 1000))} s`;
  const reason = cause?.code ?? cause?.message;
  const message = error.message === '' ? ((error as { code?: string }).code ?? error.name) : error.message;
  return reason === undefined || message.includes(reason) ? message : `${message} (${reason})`;
}

/** Checks a process until it exits. Never stops the process, which may be slow, paused, or waiting for a store. */
export async function watchReadiness(
  watched: WatchedReadiness,
  { silenceMaxMs = SILENCE_MAX_MS, steadyPollMs = STEADY_POLL_MS } = {},
): Promise<void> {
  /** Start time of the first failed check. */
  let failingSince = performance.now();
  let isReady = false;
  let isReported = false;
  while (watched.isCurrent()) {
    const checkedAt = performance.now();
    const reason = await findReason(watched.isReady);
    if (!watched.isCurrent()) return;
    if (isReady && reason !== null) failingSince = checkedAt;
    const failingMs = performance.now() - failingSince;
    if (reason === null) {
      if (!isReady) watched.onReady();
      [isReady, isReported] = [true, false];
    } else {
      isReady = false;
      watched.onFault(reason);
      if (failingMs > silenceMaxMs && !isReported) {
        isReported = true;
        watched.onSilence(reason);
      }
    }
    const unreadyPollMs = failingMs > FAST_POLL_MAX_MS ? SLOW_POLL_MS : READY_POLL_MS;
    await delay(isReady ? steadyPollMs : unreadyPollMs, undefined, { ref: false });
  }
}
