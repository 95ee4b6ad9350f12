/** Scheduled maintenance for finished erasures. Runs while this process leads. */
import {
  dropStaleBatches,
  type ErasureRecords,
  type ErasureRows,
  recordLogExpiry,
  removeFromDisk,
  type Survivors,
  scrub,
} from '@playline/erasure';
import type { People } from '@playline/people';
import type { Logger } from '@playline/runtime';
import type { LogReader } from '@playline/stream';
import { type LeaderTask, openLeaderTask } from './leading.ts';

export interface MaintenanceParts {
  readonly records: ErasureRecords;
  readonly rows: ErasureRows;
  readonly people: Pick<People, 'guards' | 'rewriteLog'>;
  readonly reader: Pick<LogReader, 'bounds'>;
  readonly topicPrefix: string;
  readonly wallClockMs: () => number;
  readonly schedule: Schedule;
  readonly logger: Logger;
  readonly onSurvivors: (survivors: readonly Survivors[]) => void;
  /** Called when this process starts to lead. */
  readonly onLead: () => void;
  readonly onDone: (work: MaintenanceTask) => void;
  readonly onFault: (work: MaintenanceTask) => void;
}

/** Minutes after midnight UTC. */
export interface Schedule {
  readonly scrubMinute: number;
  readonly removalMinute: number;
}

/**
 * - tidy: removes holds and targets of finished erasures
 * - expire: records log expiry in receipts
 * - scrub: deletes data that fences should have refused
 * - remove: rewrites files that contain deleted rows, and Redis's append-only file
 */
export const MAINTENANCE_TASKS = ['tidy', 'expire', 'scrub', 'remove'] as const;
export type MaintenanceTask = (typeof MAINTENANCE_TASKS)[number];

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
/** Avoids searching all tables in a process that keeps restarting. */
const FIRST_AFTER_MS = 5 * MINUTE_MS;
const TIDY_EVERY_MS = 10 * MINUTE_MS;

const RETRY_AFTER_MS = 30 * MINUTE_MS;

/** Opens the maintenance that runs while this process leads. */
export function openMaintenance(parts: MaintenanceParts): LeaderTask {
  return openLeaderTask((signal, run) => {
    const due = createSchedule(parts);
    const check = () => {
      // Tasks run sequentially because each task may read whole tables.
      for (const work of MAINTENANCE_TASKS.filter(due.isDue))
        run(async () => {
          if (!(await doWork(parts, work, signal))) due.postpone(work);
        });
    };
    parts.onLead();
    const timer = setInterval(check, MINUTE_MS);
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
    run(async () => void (await doWork(parts, 'tidy', signal)));
  });
}

/** Daily work is due once per day and once after this process starts to lead. */
function createSchedule({ schedule: { scrubMinute, removalMinute }, wallClockMs }: MaintenanceParts) {
  const startMs = performance.now();
  let tidiedMs = startMs;
  const days = new Map<MaintenanceTask, number>();
  const notBeforeMs = new Map<MaintenanceTask, number>();
  const minutes: Partial<Record<MaintenanceTask, number>> = { scrub: scrubMinute, remove: removalMinute };
  return {
    isDue(work: MaintenanceTask): boolean {
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
    postpone(work: MaintenanceTask): void {
      days.delete(work);
      notBeforeMs.set(work, performance.now() + RETRY_AFTER_MS);
    },
  };
}

/** Day number, with days that start at `minute` (UTC). */
export function dayOf(nowMs: number, minute: number): number {
  return Math.floor((nowMs / MINUTE_MS - minute) / DAY_MINUTES);
}

/** @returns false if the work failed */
async function doWork(parts: MaintenanceParts, work: MaintenanceTask, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return true;
  try {
    await WORK[work](parts, signal);
    parts.onDone(work);
    return true;
  } catch (error) {
    if (signal.aborted) return true;
    parts.onFault(work);
    parts.logger.error({ error, work }, 'erasure maintenance failed; retrying');
    return false;
  }
}

const WORK: Record<MaintenanceTask, (parts: MaintenanceParts, signal: AbortSignal) => Promise<void>> = {
  async tidy(parts) {
    const { rows, records, wallClockMs } = parts;
    const readActiveBatches = async () =>
      new Set((await records.readProgress()).map(({ batchId }) => batchId.toString('hex')));
    await dropStaleBatches({ rows, wallClockMs, readActiveBatches });
    await releaseFinished(parts);
  },
  async expire({ records, reader: log, topicPrefix, wallClockMs }) {
    await recordLogExpiry({ records, log, topicPrefix, wallClockMs });
  },
  async scrub(parts, signal) {
    const { rows, records, people, wallClockMs, onSurvivors, logger } = parts;
    const report = (survivors: readonly Survivors[], pass: number) => {
      if (pass === 1) onSurvivors(survivors);
      logger.error({ survivors, pass }, 'survivors found; deleting rows of erased people');
    };
    const options = { rows, records, wallClockMs, signal, people: people.guards, onSurvivors: report };
    const { fences, found } = await scrub(options);
    logger.info({ fences, found: found.length }, 'scrub completed');
  },
  async remove(parts, signal) {
    const { rows, records, people, wallClockMs, logger } = parts;
    // Redis rewrites the file in the background.
    await people.rewriteLog().catch((error) => logger.warn({ error }, 'Redis refused to rewrite the append-only file'));
    const onFoundOnDisk = (survivors: readonly Survivors[]) =>
      logger.error({ survivors }, 'rows of erased people remain in files; physicallyErasedAt not set');
    const { marked, deferred } = await removeFromDisk({ rows, records, wallClockMs, signal, onFoundOnDisk });
    logger.info({ marked, deferred }, 'deleted rows removed from disk');
  },
};

/** A paused eraser may recreate a hold after the next eraser has released it. */
async function releaseFinished({ records, people: { guards } }: MaintenanceParts): Promise<void> {
  const finished = await records.readFinished();
  for (const environmentId of await records.readEnvironments())
    for (const { erasureId } of await guards.listHolds(environmentId))
      if (finished.has(erasureId.toString('hex'))) await guards.releaseHold({ environmentId, erasureId });
}
