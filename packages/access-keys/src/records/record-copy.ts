import { answerWithin } from '@playline/errors';
import { createJoined } from './joined.ts';
import { nextLook } from './look-pace.ts';
import type { Change } from './record-log.ts';
import type { RecordView } from './record-view.ts';

/** All records of one kind in the memory of this process, so that reading one costs nothing. */
export interface RecordCopy<R> {
  /** As of the last successful look; empty before the first one, which `ageMs` shows. */
  readonly records: readonly R[];
  /** How long ago the look that confirmed them began, in milliseconds; infinite before the first one. */
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
  /** Interval of its own checks, in milliseconds; 0 for none. */
  readonly lookEveryMs?: number;
}

/**
 * Together with the bound of a look, a change is known within three quarters of a second. Each look takes Redis some ten
 * microseconds.
 */
const LOOK_EVERY_MS = 500;
/** After this the view counts as unreachable. */
const LOOK_MAX_MS = 250;

/**
 * Opens a copy, which is empty until its first look. If one record has changed, all are read again. So use it for kinds
 * with a few thousand records that people change.
 */
export function openRecordCopy<R extends Change>(options: RecordCopyOptions<R>): RecordCopy<R> {
  const { view, now = () => performance.now(), lookEveryMs = LOOK_EVERY_MS } = options;
  let records: readonly R[] = [];
  let version: string | null = null;
  let confirmedAt = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  const refresh = createJoined(async () => {
    const startedAt = now();
    try {
      const page = await answerWithin(LOOK_MAX_MS, view.readSince(version));
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
      await nextLook(lookEveryMs, closed.signal);
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
