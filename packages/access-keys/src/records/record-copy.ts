import { setTimeout as delay } from 'node:timers/promises';
import { answerWithin } from '@playline/stores';
import type { Change } from './record-log.ts';
import type { RecordView } from './record-view.ts';

/** Older copies are refreshed before use. With the time limit of a read, an ended key is refused within 750 ms. */
export const TRUST_MAX_MS = 500;
/** How old a copy may be while Redis does not answer. */
export const OUTAGE_TRUST_MAX_MS: number = 15 * 60 * 1000;

export interface RecordCopy<R> {
  /** Of the last successful read; empty before the first. */
  readonly records: readonly R[];
  /** Since the start of the last successful read; infinite before the first. */
  readonly ageMs: number;
  /** False when the copy must be refreshed before use. */
  readonly isTrusted: boolean;
  /**
   * Resolves once every earlier change is known. Concurrent calls share a read.
   * @throws IncompleteViewFault, or the view's error
   */
  refresh(): Promise<void>;
  close(): void;
}

export interface RecordCopyOptions<R extends Change> {
  readonly view: Pick<RecordView<R>, 'kind' | 'readSince'>;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
  /** Interval of background reads; 0 for none. */
  readonly readEveryMs?: number;
  /** Called for every added, replaced or removed record. */
  readonly onChange?: (before: R | undefined, after: R | undefined) => void;
}

/** Each read takes Redis some ten microseconds. */
const READ_EVERY_MS = 500;
/** After this time the view counts as unreachable; a later result is still used. */
const READ_MAX_MS = 250;
/** For all records of a large deployment. */
const WHOLE_READ_MAX_MS = 60_000;

/** Empty until its first read, which reads all records; later reads only changes. */
export function openRecordCopy<R extends Change>(options: RecordCopyOptions<R>): RecordCopy<R> {
  const { view, now = () => performance.now(), readEveryMs = READ_EVERY_MS, onChange = () => {} } = options;
  const byId = new Map<string, R>();
  let list: readonly R[] | null = [];
  let version: string | null = null;
  let confirmedAt = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  const put = (id: string, after: R | undefined) => {
    const before = byId.get(id);
    if (after === undefined) byId.delete(id);
    else byId.set(id, after);
    list = null;
    onChange(before, after);
  };
  const read = createJoined(async () => {
    const startedAt = now();
    const page = await answerWithin(WHOLE_READ_MAX_MS, view.readSince(version));
    if (page.isWhole) for (const id of [...byId.keys()]) put(id, undefined);
    for (const record of page.records) put(view.kind.idOf(record), record);
    version = page.version;
    confirmedAt = startedAt;
    isFailing = false;
  });
  const refresh = async () => {
    try {
      await answerWithin(READ_MAX_MS, read());
    } catch (fault) {
      isFailing = true;
      throw fault;
    }
  };
  const closed = new AbortController();
  const poll = async () => {
    while (!closed.signal.aborted) {
      await refresh().catch(() => {});
      await nextPoll(readEveryMs, closed.signal);
    }
  };
  if (readEveryMs > 0) void poll();
  return {
    get records() {
      list ??= [...byId.values()];
      return list;
    },
    get ageMs() {
      return now() - confirmedAt;
    },
    get isTrusted() {
      return now() - confirmedAt <= (isFailing ? OUTAGE_TRUST_MAX_MS : TRUST_MAX_MS);
    },
    refresh,
    close: () => closed.abort(),
  };
}

const PACE_MS = 5;

/** Joins callers to the next run of `work` that has not started. One run at a time. */
function createJoined(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  let startedAt = Number.NEGATIVE_INFINITY;
  const start = async () => {
    await running.catch(() => {});
    const waitMs = startedAt + PACE_MS - performance.now();
    if (waitMs > 0) await delay(waitMs);
    startedAt = performance.now();
    next = null;
    running = work();
    return running;
  };
  return () => {
    next ??= start();
    return next;
  };
}

/** Timers fire up to a millisecond early, so a moment that is this near counts as passed. */
const EARLY_MS = 2;

export function msUntilNextPoll(everyMs: number, nowMs: number = performance.now()): number {
  const waitMs = everyMs - (nowMs % everyMs);
  return waitMs < EARLY_MS ? waitMs + everyMs : waitMs;
}

/** Loops that wait for the same moment. */
interface Round {
  readonly timer: NodeJS.Timeout;
  readonly waiting: Set<() => void>;
}

const rounds = new Map<number, Round>();

function openRound(everyMs: number): Round {
  const waiting = new Set<() => void>();
  const timer = setTimeout(() => {
    rounds.delete(everyMs);
    for (const resolve of waiting) resolve();
  }, msUntilNextPoll(everyMs));
  const round = { timer, waiting };
  rounds.set(everyMs, round);
  return round;
}

/** Loops with the same interval share one timer, so that they wake the process and the store together. */
export async function nextPoll(everyMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const round = rounds.get(everyMs) ?? openRound(everyMs);
  const { promise, resolve } = Promise.withResolvers<void>();
  const abort = () => resolve();
  round.waiting.add(resolve);
  signal.addEventListener('abort', abort);
  await promise;
  signal.removeEventListener('abort', abort);
  round.waiting.delete(resolve);
  if (round.waiting.size > 0 || rounds.get(everyMs) !== round) return;
  // An unused timer must not keep the process running.
  clearTimeout(round.timer);
  rounds.delete(everyMs);
}
