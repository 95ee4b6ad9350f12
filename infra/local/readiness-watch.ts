import { setTimeout as delay } from 'node:timers/promises';

/** How a watched process was found. */
export interface WatchedReadiness {
  /** @throws Error whose message says why it is not ready */
  isReady(): Promise<boolean>;
  /** False as soon as this process is over, or is to end. */
  isCurrent(): boolean;
  onReady(): void;
  /** With every look at which it was not ready. */
  onFault(reason: string): void;
  /** Called once for each time that it has not been ready for a minute. */
  onSilence(reason: string): void;
}

const READY_POLL_MS = 50;
/** A process that has not been ready for this long is looked at less often. */
const EAGER_MAX_MS = 30_000;
const PATIENT_POLL_MS = 1_000;
/**
 * How often one that is ready is looked at: a question to Kafka costs it a connection and a record, and a service asks all
 * of its stores.
 */
const CALM_POLL_MS = 20_000;
/** Longer than any probe gives itself: one that never answers must not keep a silence from being told. */
const ANSWER_MAX_MS = 15_000;
/** Longer than any pause of a healthy process: elections, rebalances, a store that is started again. */
const SILENCE_MAX_MS = 60_000;

async function faultOf(isReady: () => Promise<boolean>): Promise<string | null> {
  const bound = delay(ANSWER_MAX_MS, 'silent' as const, { ref: false });
  try {
    const answer = await Promise.race([isReady(), bound]);
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

/** How long kafkajs waited for an answer; its own words name requests and versions. */
function unansweredMs(fault: Below | undefined): number | undefined {
  return fault?.name === 'KafkaJSRequestTimeoutError'
    ? (fault as { pendingDuration?: number }).pendingDuration
    : undefined;
}

/** The words of a fault, its cause's included: `fetch` says only there which connection failed. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Of AbortSignal.timeout, whose words name no one.
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
 * Looks at a process for as long as it is the current one, whether it is ready and whether it stays so.
 * It is never ended here: it may be slow, or be stopped by somebody on purpose, and what waits for a store is mended by
 * the store. One that cannot go on says so itself, by ending.
 */
export async function watchReadiness(
  watched: WatchedReadiness,
  { silenceMaxMs = SILENCE_MAX_MS, calmPollMs = CALM_POLL_MS } = {},
): Promise<void> {
  let silentSince = performance.now();
  let isReady = false;
  let isTold = false;
  while (watched.isCurrent()) {
    const fault = await faultOf(watched.isReady);
    if (!watched.isCurrent()) return;
    const silentMs = performance.now() - silentSince;
    if (fault === null) {
      if (!isReady) watched.onReady();
      [isReady, isTold] = [true, false];
      silentSince = performance.now();
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
