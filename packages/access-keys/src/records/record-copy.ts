import { setTimeout as delay } from 'node:timers/promises';
import { answerWithin } from '@playline/stores';
import type { Change } from './record-log.ts';
import type { RecordView } from './record-view.ts';

/** Age from which an answer is confirmed again. With the time limit of a read, an ended key is refused within 750 ms. */
export const TRUST_MAX_MS = 500;
/** How long an answer is used while Redis does not answer: an outage must stop neither games nor partners. */
export const OUTAGE_TRUST_MAX_MS: number = 15 * 60 * 1000;

/** All records of one kind in the memory of this process, so that reading one costs nothing. */
export interface RecordCopy<R> {
  /** As of the last successful read; empty before the first one, which `ageMs` shows. */
  readonly records: readonly R[];
  /** How long ago the read that confirmed them began, in milliseconds; infinite before the first one. */
  readonly ageMs: number;
  /** False when the copy must be confirmed before it is used: it is too old, also for an outage. */
  readonly isTrusted: boolean;
  /**
   * Resolves once every change that was made before the call is known. Concurrent calls share one read of the view.
   * @throws IncompleteViewFault, or what the view throws, when it cannot answer
   */
  refresh(): Promise<void>;
  close(): void;
}

export interface RecordCopyOptions<R extends Change> {
  readonly view: Pick<RecordView<R>, 'kind' | 'readSince'>;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
  /** Interval of its own reads, in milliseconds; 0 for none. */
  readonly readEveryMs?: number;
  /** Called for every record that was added, replaced or removed. */
  readonly onChange?: (before: R | undefined, after: R | undefined) => void;
}

/** Together with the limit of a read, a change is known within 750 ms. Each read takes Redis some ten microseconds. */
const READ_EVERY_MS = 500;
/** After this the view counts as unreachable. What it sends later is used all the same. */
const READ_MAX_MS = 250;
/** Reading all records of a large deployment takes longer. */
const WHOLE_READ_MAX_MS = 60_000;

/** Opens a copy, which is empty until its first read. It is read whole once; after that only changes are read. */
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
  const readOn = async () => {
    while (!closed.signal.aborted) {
      await refresh().catch(() => {});
      await nextPoll(readEveryMs, closed.signal);
    }
  };
  if (readEveryMs > 0) void readOn();
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

/**
 * Least time between two reads: a store gets at most 200 a second. No caller that waits for a recent change waits longer
 * than this.
 */
const PACE_MS = 5;

/** Creates a function that joins its callers to the next run of `work` that has not started yet. One run at a time. */
function createJoined(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  let begunAt = Number.NEGATIVE_INFINITY;
  const begin = async () => {
    await running.catch(() => {});
    const waitMs = begunAt + PACE_MS - performance.now();
    if (waitMs > 0) await delay(waitMs);
    begunAt = performance.now();
    next = null;
    running = work();
    return running;
  };
  return () => {
    next ??= begin();
    return next;
  };
}

/** Timers fire up to a millisecond early. The moment that was waited for then counts as passed. */
const EARLY_MS = 2;

/** How long to wait for the next look, in milliseconds. */
export function msUntilNextPoll(everyMs: number, nowMs: number = performance.now()): number {
  const waitMs = everyMs - (nowMs % everyMs);
  return waitMs < EARLY_MS ? waitMs + everyMs : waitMs;
}

/** The loops that wait for the same moment. */
interface Round {
  readonly timer: NodeJS.Timeout;
  readonly waiting: Set<() => void>;
}

/** By interval. */
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

/**
 * Resolves at the next look, or when the signal is aborted. All loops of a process with the same interval look at the
 * same moments, by one timer: they wake the process, and the store, once and not once each.
 */
export async function nextPoll(everyMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const round = rounds.get(everyMs) ?? openRound(everyMs);
  const { promise, resolve } = Promise.withResolvers<void>();
  const leave = () => resolve();
  round.waiting.add(resolve);
  signal.addEventListener('abort', leave);
  await promise;
  signal.removeEventListener('abort', leave);
  round.waiting.delete(resolve);
  if (round.waiting.size > 0 || rounds.get(everyMs) !== round) return;
  // Nobody waits any more, so the timer must not keep the process running.
  clearTimeout(round.timer);
  rounds.delete(everyMs);
}
