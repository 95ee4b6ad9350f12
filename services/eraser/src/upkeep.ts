import {
  dropStaleBatches,
  type ErasureRecords,
  type ErasureRows,
  noteExpiredLogs,
  removeFromDisk,
  type Survivors,
  scrub,
} from '@playline/erasure';
import type { People } from '@playline/people';
import type { Logger } from '@playline/runtime';
import type { LogReader } from '@playline/stream';
import { type Leading, openLeading } from './leading.ts';

export interface UpkeepParts {
  readonly records: ErasureRecords;
  readonly rows: ErasureRows;
  readonly people: Pick<People, 'guards' | 'rewriteLog'>;
  readonly reader: Pick<LogReader, 'bounds'>;
  readonly topicPrefix: string;
  readonly wallClockMs: () => number;
  readonly schedule: Schedule;
  readonly logger: Logger;
  readonly onSurvivors: (survivors: readonly Survivors[]) => void;
  /** Called when this process begins to lead. */
  readonly onLead: () => void;
  readonly onDone: (work: UpkeepWork) => void;
  readonly onFault: (work: UpkeepWork) => void;
}

/** Minutes after midnight UTC. */
export interface Schedule {
  readonly scrubMinute: number;
  readonly removalMinute: number;
}

/**
 * - tidy: removes holds and targets of finished erasures that a paused or killed eraser left behind
 * - expire: notes in receipts that the log has no records of the person any more
 * - scrub: searches for rows of everybody who was ever erased
 * - remove: rewrites files with deleted rows, and makes Redis rewrite its log
 */
export const UPKEEP_WORK = ['tidy', 'expire', 'scrub', 'remove'] as const;
export type UpkeepWork = (typeof UPKEEP_WORK)[number];

/** Regular work on finished erasures: see `UPKEEP_WORK`. */
export type Upkeep = Leading;

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
/** A process that keeps restarting must not search all tables each time. */
const FIRST_AFTER_MS = 5 * MINUTE_MS;
const TIDY_EVERY_MS = 10 * MINUTE_MS;

/** When daily work that failed is tried again. */
const AGAIN_AFTER_MS = 30 * MINUTE_MS;

/** Opens the upkeep; it does nothing before it leads. */
export function openUpkeep(parts: UpkeepParts): Upkeep {
  return openLeading((signal, run) => {
    const due = createDue(parts);
    const look = () => {
      // One after the other: each may read whole tables.
      for (const work of UPKEEP_WORK.filter(due.isDue))
        run(async () => {
          if (!(await doWork(parts, work, signal))) due.postpone(work);
        });
    };
    parts.onLead();
    const timer = setInterval(look, MINUTE_MS);
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
    run(async () => void (await doWork(parts, 'tidy', signal)));
  });
}

/** Each is due once a day, and once when this process begins to lead, as it does not know when it was last done. */
function createDue({ schedule, wallClockMs }: UpkeepParts) {
  const startMs = performance.now();
  let tidiedMs = startMs;
  const days = new Map<UpkeepWork, number>();
  const notBeforeMs = new Map<UpkeepWork, number>();
  const minutes: Partial<Record<UpkeepWork, number>> = { scrub: schedule.scrubMinute, remove: schedule.removalMinute };
  return {
    isDue(work: UpkeepWork): boolean {
      const minute = minutes[work];
      if (minute === undefined) {
        const isDue = performance.now() - tidiedMs >= TIDY_EVERY_MS;
        if (isDue && work === 'expire') tidiedMs = performance.now();
        return isDue;
      }
      if (performance.now() < (notBeforeMs.get(work) ?? startMs + FIRST_AFTER_MS)) return false;
      const day = dayOf(wallClockMs(), minute);
      if (days.get(work) === day) return false;
      days.set(work, day);
      return true;
    },
    /** Makes failed work due again on the same day, after a while. */
    postpone(work: UpkeepWork): void {
      days.delete(work);
      notBeforeMs.set(work, performance.now() + AGAIN_AFTER_MS);
    },
  };
}

/** Number of the day, if days begin at this minute of the day (UTC). */
export function dayOf(nowMs: number, minute: number): number {
  return Math.floor((nowMs / MINUTE_MS - minute) / DAY_MINUTES);
}

/** @returns false when it failed */
async function doWork(parts: UpkeepParts, work: UpkeepWork, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return true;
  try {
    await WORKS[work](parts, signal);
    parts.onDone(work);
    return true;
  } catch (error) {
    if (signal.aborted) return true;
    parts.onFault(work);
    parts.logger.error({ error, work }, 'the upkeep of erasures failed; it is done again by itself');
    return false;
  }
}

const WORKS: Record<UpkeepWork, (parts: UpkeepParts, signal: AbortSignal) => Promise<void>> = {
  async tidy(parts) {
    const { rows, records, wallClockMs } = parts;
    const readWorkedOn = async () =>
      new Set((await records.readProgress()).map(({ batchId }) => batchId.toString('hex')));
    await dropStaleBatches({ rows, wallClockMs, readWorkedOn });
    await releaseFinished(parts);
  },
  async expire({ records, reader: log, topicPrefix, wallClockMs }) {
    await noteExpiredLogs({ records, log, topicPrefix, wallClockMs });
  },
  async scrub(parts, signal) {
    const { rows, records, people, wallClockMs, onSurvivors, logger } = parts;
    const tell = (survivors: readonly Survivors[], look: number) => {
      if (look === 1) onSurvivors(survivors);
      logger.error({ survivors, look }, 'rows of erased people were there again and are swept');
    };
    const { fences, found } = await scrub({
      rows,
      records,
      wallClockMs,
      signal,
      people: people.guards,
      onSurvivors: tell,
    });
    logger.info({ fences, found: found.length }, 'looked for rows of everybody who was erased');
  },
  async remove(parts, signal) {
    const { rows, records, people, wallClockMs, logger } = parts;
    // Not waited for, because Redis rewrites in the background.
    await people.rewriteLog().catch((error) => logger.warn({ error }, 'Redis does not write its log anew when asked'));
    const onFoundOnDisk = (survivors: readonly Survivors[]) =>
      logger.error({ survivors }, 'rows of erased people stand in files behind the removal: no receipt is marked');
    const { marked, deferred } = await removeFromDisk({ rows, records, wallClockMs, signal, onFoundOnDisk });
    logger.info({ marked, deferred }, 'files with deleted rows were written anew');
  },
};

/** Releases holds of finished erasures. A paused eraser may have placed one again after its successor released it. */
async function releaseFinished({ records, people: { guards } }: UpkeepParts): Promise<void> {
  const finished = await records.readFinished();
  for (const environmentId of await records.readEnvironments())
    for (const { erasureId } of await guards.listHolds(environmentId))
      if (finished.has(erasureId.toString('hex'))) await guards.releaseHold({ environmentId, erasureId });
}
