import type { ErasureProgress, ErasureRecords, ErasureRequest, ErasureRows } from '@playline/erasure';
import type { ErasureHold, HoldName, People } from '@playline/people';
import { pauseOrThrow } from '@playline/stores';
import type { LogBarrier } from './log-barrier.ts';
import { CLOCK_SKEW_MS, type Closure, type FoundClosure } from './persons.ts';
import { type ResolveParts, resolveClosures } from './resolve.ts';
import type { WaitingLink } from './waiting-links.ts';

export interface SettleParts {
  readonly people: Pick<People, 'graph' | 'guards' | 'consents'>;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly barrier: LogBarrier;
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const toId = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');

/**
 * Number of polls after which a request with a released link is excluded. The linker decides released links within four
 * seconds.
 */
const RELEASED_POLLS = 24;
const RELEASED_POLL_MS = 250;

/**
 * Finds the requests' closures and holds their identities. A request is excluded if a link up to its cut-off waits
 * for another erasure and may add identities. If a hold with a later cut-off releases such a link, this function waits
 * for the link's decision.
 * @param linksMax maximum number of links in memory
 * @throws TooManyLinksError, or store faults, after which the call may be retried
 */
export async function settleClosures(
  parts: SettleParts,
  requests: readonly ErasureRequest[],
  linksMax: number,
  signal: AbortSignal,
): Promise<FoundClosure[]> {
  for (let polls = 0; ; polls++) {
    const waiting = await parts.barrier.linksStored(signal);
    const progress = await parts.records.readProgress();
    const closures = await resolveClosures(
      { rows: parts.rows, findOthers: createFindOthers(parts, requests, progress), linksMax },
      requests,
    );
    // Reread after the decisions because an eraser stores its progress before it deletes decisions.
    const progressNow = await parts.records.readProgress();
    assertNotStarted(requests, progressNow);
    if (progressNow.some(({ batchId }) => !progress.some((known) => known.batchId.equals(batchId)))) continue;
    await holdAll(parts, closures);
    const undecided = await findUndecided(parts, closures, waiting);
    if (![...undecided.values()].includes('released') || polls === RELEASED_POLLS)
      return closures.filter((closure) => !undecided.has(closure));
    await (parts.pause ?? pauseOrThrow)(RELEASED_POLL_MS, signal);
  }
}

/** Finds started erasures that may have deleted decisions since the first of these requests. */
function createFindOthers(
  { records }: SettleParts,
  requests: readonly ErasureRequest[],
  progress: readonly ErasureProgress[],
): ResolveParts['findOthers'] {
  const times = requests.map(({ requestedAt }) => requestedAt);
  const firstRequestedAt = times.reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY);
  const started = new Set(progress.map(toId));
  return async (identities, onLink) => {
    const open = await records.readOpenSince(firstRequestedAt - CLOCK_SKEW_MS, identities, onLink);
    return open.filter(({ request, receipt }) => receipt !== null || started.has(toId(request)));
  };
}

function assertNotStarted(requests: readonly ErasureRequest[], progress: readonly ErasureProgress[]): void {
  const started = new Set(progress.map(toId));
  if (requests.some((request) => started.has(toId(request))))
    throw new Error('another process has started erasures in this batch');
}

/**
 * Extends the holds to the closures. Recreates missing holds, which Redis may have lost.
 * @throws if a receipt shows that another process has finished the erasure
 */
export async function holdAll(parts: SettleParts, closures: readonly Closure[]): Promise<void> {
  const { guards } = parts.people;
  const missing: ErasureHold[] = [];
  for (const { keys, request } of closures) {
    const { environmentId, erasureId, cutoffAt: cutoffMs } = request;
    const hold = { environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null };
    if (!(await guards.extendHold(hold))) missing.push(hold);
  }
  if (missing.length === 0) return;
  const unfinished = new Set((await parts.records.readUnfinished()).map(toId));
  if (missing.some((hold) => !unfinished.has(toId(hold))))
    throw new Error('another process has finished erasures in this batch');
  for (const hold of missing) await guards.putHold(hold);
}

/**
 * Finds closures that an undecided link may change. The link still waits for another erasure (`held`) or no longer
 * waits (`released`). The other erasure has the earlier cut-off, so one of the two requests always makes progress.
 */
async function findUndecided(
  { people: { guards } }: SettleParts,
  closures: readonly Closure[],
  waiting: readonly WaitingLink[],
): Promise<ReadonlyMap<Closure, 'held' | 'released'>> {
  const named = closures.flatMap((closure) => closure.keys.map((key) => ({ closure, key })));
  const closuresOf = Map.groupBy(named, ({ closure, key }) => nameOf(closure.request.environmentId, key));
  const affected = waiting.flatMap((link) => {
    const perIdentity = link.keys.map((key) => closuresOf.get(nameOf(link.environmentId, key)) ?? []);
    const isInAll = (closure: Closure) => perIdentity.every((each) => each.some((entry) => entry.closure === closure));
    const mayChange = (closure: Closure) =>
      link.receivedAtMs <= closure.request.cutoffAt && (link.isUnlink || !isInAll(closure));
    const each = new Set(perIdentity.flat().map(({ closure }) => closure));
    return [...each].filter(mayChange).map((closure) => ({ closure, link }));
  });
  const undecided = new Map<Closure, 'held' | 'released'>();
  for (const [environmentId, group] of Map.groupBy(affected, ({ link }) => link.environmentId)) {
    const keys = new Map(group.flatMap(({ link }) => link.keys.map((key) => [key.toString('latin1'), key] as const)));
    const from = await guards.heldFrom(environmentId, [...keys.values()]);
    const heldFromMs = new Map([...keys.keys()].map((name, at) => [name, from[at]!]));
    const isHeld = ({ keys: ends, receivedAtMs }: WaitingLink) =>
      ends.some((key) => receivedAtMs > (heldFromMs.get(key.toString('latin1')) ?? Number.POSITIVE_INFINITY));
    for (const { closure, link } of group)
      if (isHeld(link)) undecided.set(closure, 'held');
      else if (!undecided.has(closure)) undecided.set(closure, 'released');
  }
  return undecided;
}

const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
