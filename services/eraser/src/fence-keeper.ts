import { type ErasureRecords, enforceFences } from '@playline/erasure';
import type { HoldName, People } from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';

export interface FenceKeeperParts {
  readonly people: Pick<People, 'guards' | 'readEpoch'>;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readUnfinished' | 'readProgress'>;
  readonly logger: Logger;
  /** Called when the fences were set again. */
  readonly onRestored: () => void;
}

/** How soon a start of Redis is noticed. Each check is one command of ten microseconds. */
const CHECK_MS = 500;
const RETRY_MS = 1_000;

/**
 * Sets the fences again whenever Redis was restarted or promoted, because it may have gone back to a state before them.
 * Until then Redis applies no link and returns no consent. Every eraser does this, whether or not it leads; several at
 * once do no harm.
 */
export function openFenceKeeper(parts: FenceKeeperParts): Closable {
  const stop = new AbortController();
  const watch = async () => {
    let isLogged = false;
    while (!stop.signal.aborted) {
      try {
        await restoreFences(parts, stop.signal);
        isLogged = false;
        await pause(CHECK_MS, stop.signal);
      } catch (error) {
        // One line for each outage, not one a second.
        if (!isLogged && !stop.signal.aborted) parts.logger.warn({ error }, 'fences cannot be checked or set again');
        isLogged = true;
        await pause(RETRY_MS, stop.signal);
      }
    }
  };
  const watching = watch();
  return {
    async close() {
      stop.abort();
      await watching;
    },
  };
}

/**
 * Places the holds of unfinished erasures and sets all fences again, and removes what both would have kept out. Does
 * nothing when no fence can be missing. A Redis without an epoch was emptied, and is rebuilt with its fences.
 */
async function restoreFences(parts: FenceKeeperParts, signal: AbortSignal): Promise<void> {
  const { people, records, logger, onRestored } = parts;
  const { run, isComplete } = await people.guards.fenceStatus();
  if (isComplete || (await people.readEpoch()) === null) return;
  await restoreHolds(parts);
  const removed = await enforceFences(people.guards, records.readFences({ signal }));
  // Another start of Redis may have lost them again. Then the next check finds that.
  if (!(await people.guards.completeFences(run))) return;
  onRestored();
  const sum = (count: 'links' | 'consents') => [...removed.values()].reduce((total, each) => total + each[count], 0);
  logger.info({ links: sum('links'), consents: sum('consents') }, 'fences set again after a start of Redis');
}

/** A hold that was lost is placed again; one of a finished erasure that came back is released. */
async function restoreHolds({ people: { guards }, records }: FenceKeeperParts): Promise<void> {
  const toId = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');
  const closures = new Map((await records.readProgress()).map((progress) => [toId(progress), progress.closureKeys]));
  const placed: HoldName[] = [];
  for (const request of await records.readUnfinished()) {
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
    const closure = closures.get(toId(request));
    // A hold that exists may cover more identities than the request.
    if (closure === undefined && (await guards.confirm(request))) continue;
    const keys = closure ?? [...subjectKeys, ...memberKeys];
    await guards.place({ environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null });
    placed.push(request);
  }
  // A receipt is stored before the release: another process may have finished some of these.
  const unfinished = new Set((await records.readUnfinished()).map(toId));
  for (const name of placed) if (!unfinished.has(toId(name))) await guards.release(name);
}
