// Watches whether a process serves.
import { setTimeout as delay } from 'node:timers/promises';
import { waitAtMost } from '@playline/stores';

export interface WatchedReadiness {
  /** @throws Error with the reason when it is not ready */
  isReady(): Promise<boolean>;
  /** False once the process has ended or is being stopped. */
  isCurrent(): boolean;
  onReady(): void;
  /** Called after every check that fails. */
  onFault(reason: string): void;
  /** Called once when all checks of a minute have failed. */
  onSilence(reason: string): void;
}

const READY_POLL_MS = 50;
/** A process that is not ready after this time is checked less often. */
const EAGER_MAX_MS = 30_000;
const PATIENT_POLL_MS = 1_000;
/** Of a ready process. A check costs Kafka a connection and a record, and a service a request to each of its stores. */
const CALM_POLL_MS = 60_000;
/** Longer than the time-out of any probe. */
const ANSWER_MAX_MS = 15_000;
/** Longer than any pause of a healthy process, such as elections and rebalances. */
const SILENCE_MAX_MS = 60_000;

async function faultOf(isReady: () => Promise<boolean>): Promise<string | null> {
  try {
    const answer = await waitAtMost(ANSWER_MAX_MS, isReady(), () => 'silent' as const);
    if (answer === 'silent') return `it has not answered for ${ANSWER_MAX_MS / 1000} s`;
    return answer ? null : 'it is not working yet';
  } catch (error) {
    return sentenceOf(error);
  }
}

interface Cause {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
}

/** How long kafkajs waited for a response. Its own message names requests and versions. */
function unansweredMs(fault: Cause | undefined): number | undefined {
  return fault?.name === 'KafkaJSRequestTimeoutError'
    ? (fault as { pendingDuration?: number }).pendingDuration
    : undefined;
}

/** The message of an error and its cause: for `fetch` only the cause names the connection that failed. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message of AbortSignal.timeout does not name what timed out.
  if (error.name === 'TimeoutError') return 'it does not answer';
  const { cause } = error as { cause?: Cause };
  const silentMs = unansweredMs(error) ?? unansweredMs(cause);
  if (typeof silentMs === 'number') return `it does not answer within ${Math.max(1, Math.round(silentMs / 1000))} s`;
  const reason = cause?.code ?? cause?.message;
  const message = error.message === '' ? ((error as { code?: string }).code ?? error.name) : error.message;
  return reason === undefined || message.includes(reason) ? message : `${message} (${reason})`;
}

/** Checks a process while it is current, and never ends it: it may be slow, paused, or waiting for a store. */
export async function watchReadiness(
  watched: WatchedReadiness,
  { silenceMaxMs = SILENCE_MAX_MS, calmPollMs = CALM_POLL_MS } = {},
): Promise<void> {
  /** Start of the first failed check. */
  let silentSince = performance.now();
  let isReady = false;
  let isReported = false;
  while (watched.isCurrent()) {
    const checkedAt = performance.now();
    const fault = await faultOf(watched.isReady);
    if (!watched.isCurrent()) return;
    if (isReady && fault !== null) silentSince = checkedAt;
    const silentMs = performance.now() - silentSince;
    if (fault === null) {
      if (!isReady) watched.onReady();
      [isReady, isReported] = [true, false];
    } else {
      isReady = false;
      watched.onFault(fault);
      if (silentMs > silenceMaxMs && !isReported) {
        isReported = true;
        watched.onSilence(fault);
      }
    }
    const eagerMs = silentMs > EAGER_MAX_MS ? PATIENT_POLL_MS : READY_POLL_MS;
    await delay(isReady ? calmPollMs : eagerMs, undefined, { ref: false });
  }
}
