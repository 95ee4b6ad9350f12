import { setTimeout as delay } from 'node:timers/promises';
import { createJoined, within } from './joined.ts';
import { untilNextLook } from './look-pace.ts';
import type { Change } from './record-log.ts';
import type { RecordView } from './record-view.ts';

/** All records of one kind in this process, so that asking for one costs nothing. */
export interface RecordCopy<R> {
  /** As last heard; none before the first time, which `ageMs` tells. */
  readonly records: readonly R[];
  /** How long ago the look began that has confirmed them; infinite before the first. */
  readonly ageMs: number;
  /** True when the last look has failed. */
  readonly isFailing: boolean;
  /**
   * Resolves once every change that was made before the call is known. However many ask at once, the view is asked once.
   * @throws IncompleteViewFault, or what the view throws, when it cannot say
   */
  refresh(): Promise<void>;
  close(): void;
}

export interface RecordCopyOptions<R extends Change> {
  readonly view: Pick<RecordView<R>, 'readSince'>;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
  /** How often it looks by itself; 0: never. */
  readonly lookEveryMs?: number;
  /** How long a look may take before the view counts as unreachable. */
  readonly lookMaxMs?: number;
}

/** With the bound of a look a change is known within three quarters of a second: one question of some ten microseconds each time. */
const LOOK_EVERY_MS = 500;
const LOOK_MAX_MS = 250;

/**
 * Opens a copy; empty until its first look. All records are read again when one has changed: for kinds of which there are
 * thousands at most, changed by people.
 */
export function openRecordCopy<R extends Change>(options: RecordCopyOptions<R>): RecordCopy<R> {
  const { view, now = () => performance.now(), lookEveryMs = LOOK_EVERY_MS, lookMaxMs = LOOK_MAX_MS } = options;
  let records: readonly R[] = [];
  let version: string | null = null;
  let confirmedAt = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  const refresh = createJoined(async () => {
    const startedAt = now();
    try {
      const page = await within(view.readSince(version), lookMaxMs);
      if (page.records !== null) records = page.records;
      version = page.version;
      confirmedAt = startedAt;
      isFailing = false;
    } catch (fault) {
      isFailing = true;
      throw fault;
    }
  });
  const closed = new AbortController();
  const watch = async () => {
    while (!closed.signal.aborted) {
      await refresh().catch(() => {});
      await delay(untilNextLook(lookEveryMs), undefined, { signal: closed.signal }).catch(() => {});
    }
  };
  if (lookEveryMs > 0) void watch();
  return {
    get records() {
      return records;
    },
    get ageMs() {
      return now() - confirmedAt;
    },
    get isFailing() {
      return isFailing;
    },
    refresh,
    close: () => closed.abort(),
  };
}
