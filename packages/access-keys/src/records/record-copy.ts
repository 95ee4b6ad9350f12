import { setTimeout as delay } from 'node:timers/promises';
import { answerWithin } from '@playline/stores';
import type { Change } from './record-log.ts';
import type { RecordView } from './record-view.ts';

/** Older copies are refreshed before use. With `READ_MAX_MS`, this rejects an ended key within 750 ms. */
export const TRUST_MAX_MS = 500;
/** Maximum age of a copy while Redis is unavailable. */
export const OUTAGE_TRUST_MAX_MS: number = 15 * 60 * 1000;

export interface RecordCopy<R> {
  /** Records from the last successful read; empty before the first read. */
  readonly records: readonly R[];
  /** Time since the last successful read started; infinite before the first read. */
  readonly ageMs: number;
  /** False if the copy must be refreshed before use. */
  readonly isTrusted: boolean;
  /**
   * Resolves once the copy includes every earlier change. Concurrent calls share one read.
   * @throws IncompleteViewFault, or the view's error
   */
  refresh(): Promise<void>;
  close(): void;
}

export interface RecordCopyOptions<R extends Change> {
  readonly view: Pick<RecordView<R>, 'kind' | 'readSince'>;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
  /** Interval between background reads; 0 disables background reads. */
  readonly readEveryMs?: number;
  /** Called for every added, replaced or removed record. */
  readonly onChange?: (before: R | undefined, after: R | undefined) => void;
}

/** A read costs Redis only tens of microseconds. */
const READ_INTERVAL_MS = 500;
/** After this time the view counts as unreachable. A late result is still applied. */
const READ_MAX_MS = 250;
/** Long enough to read all records in a large deployment. */
const FULL_READ_MAX_MS = 60_000;

/** Opens an empty copy. The first read fetches all records; later reads fetch only changes. */
export function openRecordCopy<R extends Change>(options: RecordCopyOptions<R>): RecordCopy<R> {
  const { view, now = () => performance.now(), readEveryMs = READ_INTERVAL_MS, onChange = () => {} } = options;
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
  const read = coalesceRuns(async () => {
    const startedAt = now();
    const page = await answerWithin(FULL_READ_MAX_MS, view.readSince(version));
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

/** Minimum interval between the starts of two reads. */
const RUN_INTERVAL_MS = 5;

/** Runs `work` sequentially. All callers that arrive before a run starts share that run. */
function coalesceRuns(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  let startedAt = Number.NEGATIVE_INFINITY;
  const start = async () => {
    await running.catch(() => {});
    const waitMs = startedAt + RUN_INTERVAL_MS - performance.now();
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

/** Timers may fire up to a millisecond early, so a poll time this close counts as passed. */
const EARLY_MS = 2;

export function msUntilNextPoll(intervalMs: number, nowMs: number = performance.now()): number {
  const waitMs = intervalMs - (nowMs % intervalMs);
  return waitMs < EARLY_MS ? waitMs + intervalMs : waitMs;
}

/** Loops that wait for the same poll time. */
interface Round {
  readonly timer: NodeJS.Timeout;
  readonly waiting: Set<() => void>;
}

const rounds = new Map<number, Round>();

function startRound(intervalMs: number): Round {
  const waiting = new Set<() => void>();
  const timer = setTimeout(() => {
    rounds.delete(intervalMs);
    for (const resolve of waiting) resolve();
  }, msUntilNextPoll(intervalMs));
  const round = { timer, waiting };
  rounds.set(intervalMs, round);
  return round;
}

/** Waits for the next poll time. Loops with the same interval share a timer, so that they wake together. */
export async function nextPoll(intervalMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const round = rounds.get(intervalMs) ?? startRound(intervalMs);
  const { promise, resolve } = Promise.withResolvers<void>();
  const abort = () => resolve();
  round.waiting.add(resolve);
  signal.addEventListener('abort', abort);
  await promise;
  signal.removeEventListener('abort', abort);
  round.waiting.delete(resolve);
  if (round.waiting.size > 0 || rounds.get(intervalMs) !== round) return;
  // An unused timer must not keep the process alive.
  clearTimeout(round.timer);
  rounds.delete(intervalMs);
}
