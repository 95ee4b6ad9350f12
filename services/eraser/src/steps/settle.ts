import type { ErasureProgress, ErasureRecords, ErasureRequest, ErasureRows } from '@playline/erasure';
import type { ErasureHold, HoldName, People } from '@playline/people';
import { pauseOrThrow } from '@playline/stores';
import type { LogBarrier } from './log-barrier.ts';
import { CLOCKS_APART_MS, type Closure, type FoundClosure } from './persons.ts';
import { type ResolveParts, resolveClosures } from './resolve.ts';
import type { WaitingLink } from './waiting-links.ts';

export interface SettleParts {
  readonly people: Pick<People, 'graph' | 'guards' | 'consents'>;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly barrier: LogBarrier;
  /** Waits; the default waits for the given time. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const toId = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');

/** Checks until a request with a freed link is left out. The linker decides such a link within four seconds. */
const FREED_POLLS = 24;
const FREED_POLL_MS = 250;

/**
 * Finds the closures of requests, and places a hold on each of their identities. Leaves out a request that must wait
 * for another erasure: the other hold may delay a link up to the request's cut-off. That link may add somebody to this
 * person, and is decided only after the release.
 *
 * If two requests hold one identity, the later cut-off decides which of its links wait. So this hold may release a link
 * between the two cut-offs, and its decision is waited for.
 * @param linksMax links that may be held in memory
 * @throws TooManyLinksError, or whatever the stores throw; then it may be called again
 */
export async function settleClosures(
  parts: SettleParts,
  requests: readonly ErasureRequest[],
  linksMax: number,
  signal: AbortSignal,
): Promise<FoundClosure[]> {
  for (let freedLooks = 0; ; freedLooks++) {
    const waiting = await parts.barrier.linksStored(signal);
    const noted = await parts.records.readProgress();
    const closures = await resolveClosures(
      { rows: parts.rows, findOthers: createFindOthers(parts, requests, noted), linksMax },
      requests,
    );
    // Read again after the decisions, because an eraser stores its progress before it deletes decisions.
    const notedNow = await parts.records.readProgress();
    assertNotBegun(requests, notedNow);
    if (notedNow.some(({ batchId }) => !noted.some((known) => known.batchId.equals(batchId)))) continue;
    await holdAll(parts, closures);
    const undecided = await findUndecided(parts, closures, waiting);
    if (![...undecided.values()].includes('freed') || freedLooks === FREED_POLLS)
      return closures.filter((closure) => !undecided.has(closure));
    await (parts.pause ?? pauseOrThrow)(FREED_POLL_MS, signal);
  }
}

/**
 * Finds erasures that were running when the first of these was requested, or later. Only those that have begun, because
 * the others have deleted no decisions.
 */
function createFindOthers(
  { records }: SettleParts,
  requests: readonly ErasureRequest[],
  noted: readonly ErasureProgress[],
): ResolveParts['findOthers'] {
  const askedAt = requests.reduce((first, { requestedAt }) => Math.min(first, requestedAt), Number.POSITIVE_INFINITY);
  const begun = new Set(noted.map(toId));
  return async (identities, onLink) => {
    const open = await records.readOpenSince(askedAt - CLOCKS_APART_MS, identities, onLink);
    return open.filter(({ request, receipt }) => receipt !== null || begun.has(toId(request)));
  };
}

/** @throws Error when another process has begun these erasures while this one was paused */
function assertNotBegun(requests: readonly ErasureRequest[], noted: readonly ErasureProgress[]): void {
  const begun = new Set(noted.map(toId));
  if (requests.some((request) => begun.has(toId(request))))
    throw new Error('another process has begun erasures of this batch');
}

/**
 * Extends the holds to the whole closures. A hold may be gone for two reasons: another process finished the erasure
 * while this one was paused, or Redis lost its last second. Only in the second case is it placed again. A receipt shows
 * the first case, because it is stored before the release.
 */
export async function holdAll(parts: SettleParts, closures: readonly Closure[]): Promise<void> {
  const { guards } = parts.people;
  const gone: ErasureHold[] = [];
  for (const { keys, request } of closures) {
    const { environmentId, erasureId, cutoffAt: cutoffMs } = request;
    const hold = { environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null };
    if (!(await guards.extendHold(hold))) gone.push(hold);
  }
  if (gone.length === 0) return;
  const unfinished = new Set((await parts.records.readUnfinished()).map(toId));
  if (gone.some((hold) => !unfinished.has(toId(hold))))
    throw new Error('another process has finished erasures of this batch');
  for (const hold of gone) await guards.putHold(hold);
}

/**
 * Closures that an undecided link up to their cut-off may still change. The link waits for the erasure of somebody else
 * (`held`), or waits no longer (`freed`). The erasure that it waits for has the earlier cut-off, so of two requests at
 * least one goes on.
 */
async function findUndecided(
  { people: { guards } }: SettleParts,
  closures: readonly Closure[],
  waiting: readonly WaitingLink[],
): Promise<ReadonlyMap<Closure, 'held' | 'freed'>> {
  const named = closures.flatMap((closure) => closure.keys.map((key) => ({ closure, key })));
  const closuresOf = Map.groupBy(named, ({ closure, key }) => nameOf(closure.request.environmentId, key));
  const touching = waiting.flatMap((link) => {
    const touched = link.keys.map((key) => closuresOf.get(nameOf(link.environmentId, key)) ?? []);
    const isInAll = (closure: Closure) => touched.every((each) => each.some((own) => own.closure === closure));
    const mayChange = (closure: Closure) =>
      link.receivedAtMs <= closure.request.cutoffAt && (link.isUnlink || !isInAll(closure));
    const each = new Set(touched.flat().map(({ closure }) => closure));
    return [...each].filter(mayChange).map((closure) => ({ closure, link }));
  });
  const undecided = new Map<Closure, 'held' | 'freed'>();
  for (const [environmentId, own] of Map.groupBy(touching, ({ link }) => link.environmentId)) {
    const keys = new Map(own.flatMap(({ link }) => link.keys.map((key) => [key.toString('latin1'), key] as const)));
    const from = await guards.heldFrom(environmentId, [...keys.values()]);
    const heldFromMs = new Map([...keys.keys()].map((name, at) => [name, from[at]!]));
    const isHeld = ({ keys: ends, receivedAtMs }: WaitingLink) =>
      ends.some((key) => receivedAtMs > (heldFromMs.get(key.toString('latin1')) ?? Number.POSITIVE_INFINITY));
    for (const { closure, link } of own)
      if (isHeld(link)) undecided.set(closure, 'held');
      else if (!undecided.has(closure)) undecided.set(closure, 'freed');
  }
  return undecided;
}

const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
