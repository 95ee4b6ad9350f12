import { setTimeout as delay } from 'node:timers/promises';
import { waitAtMost } from '@playline/stores';

/** Callbacks about a watched process. */
export interface WatchedReadiness {
  /** @throws Error whose message says why it is not ready */
  isReady(): Promise<boolean>;
  /** False as soon as this process has ended or is to end. */
  isCurrent(): boolean;
  onReady(): void;
  /** Called after every check that found it not ready. */
  onFault(reason: string): void;
  /** Called once each time no check has found it ready for a minute. */
  onSilence(reason: string): void;
}

const READY_POLL_MS = 50;
/** A process that has not been ready for this long is checked less often. */
const EAGER_MAX_MS = 30_000;
const PATIENT_POLL_MS = 1_000;
/**
 * Interval of checks of a ready process. A check costs Kafka a connection and a record, and makes a service ask all of
 * its stores.
 */
const CALM_POLL_MS = 60_000;
/** Longer than the time-out of any probe, because a probe that never ends must not prevent the report of a silence. */
const ANSWER_MAX_MS = 15_000;
/** Longer than any pause of a healthy process: elections, rebalances, restarts of a store. */
const SILENCE_MAX_MS = 60_000;

async function faultOf(isReady: () => Promise<boolean>): Promise<string | null> {
  try {
    const answer = await waitAtMost(ANSWER_MAX_MS, isReady(), () => 'silent' as const);
    if (answer === 'silent') return `it has not answered for ${ANSWER_MAX_MS / 1000} s`;
    return answer ? null : 'it does not do its work yet';
  } catch (error) {
    return sentenceOf(error);
  }
}

interface Below {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
}

/** How long kafkajs waited for an answer. Its own message names requests and versions. */
function unansweredMs(fault: Below | undefined): number | undefined {
  return fault?.name === 'KafkaJSRequestTimeoutError'
    ? (fault as { pendingDuration?: number }).pendingDuration
    : undefined;
}

/** The message of an error and of its cause. For `fetch`, only the cause says which connection failed. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message of AbortSignal.timeout does not say what timed out.
  if (error.name === 'TimeoutError') return 'it does not answer';
  const { cause } = error as { cause?: Below };
  const silentMs = unansweredMs(error) ?? unansweredMs(cause);
  if (typeof silentMs === 'number') return `it does not answer within ${Math.max(1, Math.round(silentMs / 1000))} s`;
  const below = cause?.code ?? cause?.message;
  const words = error.message === '' ? ((error as { code?: string }).code ?? error.name) : error.message;
  return below === undefined || words.includes(below) ? words : `${words} (${below})`;
}

function pauseMs(silentMs: number): number {
  return silentMs > EAGER_MAX_MS ? PATIENT_POLL_MS : READY_POLL_MS;
}

/**
 * Checks whether a process is and stays ready, for as long as it is the current one. It never ends the process: it may
 * be slow or paused on purpose, and a process that waits for a store recovers with the store. A process that cannot go
 * on ends by itself.
 */
export async function watchReadiness(
  watched: WatchedReadiness,
  { silenceMaxMs = SILENCE_MAX_MS, calmPollMs = CALM_POLL_MS } = {},
): Promise<void> {
  /** When the first check began that found it not ready: nothing is known of the time before. */
  let silentSince = performance.now();
  let isReady = false;
  let isTold = false;
  while (watched.isCurrent()) {
    const askedAt = performance.now();
    const fault = await faultOf(watched.isReady);
    if (!watched.isCurrent()) return;
    if (isReady && fault !== null) silentSince = askedAt;
    const silentMs = performance.now() - silentSince;
    if (fault === null) {
      if (!isReady) watched.onReady();
      [isReady, isTold] = [true, false];
    } else {
      isReady = false;
      watched.onFault(fault);
      if (silentMs > silenceMaxMs && !isTold) {
        isTold = true;
        watched.onSilence(fault);
      }
    }
    await delay(isReady ? calmPollMs : pauseMs(silentMs), undefined, { ref: false });
  }
}
