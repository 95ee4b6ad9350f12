import { setTimeout as delay } from 'node:timers/promises';
import { type ErasureRecords, type ErasureRequest, type ErasureRows, hashClosure } from '@playline/erasure';
import type { ErasureHold, HoldName, People } from '@playline/people';
import { indexPersons } from './counts.ts';
import type { LogBarrier } from './log-barrier.ts';
import { CLOCKS_APART_MS, type ErasedPerson } from './persons.ts';
import { resolvePersons } from './resolve.ts';
import type { WaitingLink } from './waiting-links.ts';

export interface SettleParts {
  readonly people: Pick<People, 'graph' | 'guards' | 'consents'>;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly barrier: LogBarrier;
  /** Waits; by itself for as long as it is told. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const toHash = (keys: readonly Buffer[]) => hashClosure(keys).toString('hex');
export const toId = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');
export const rest = (ms: number, signal: AbortSignal): Promise<void> => delay(ms, undefined, { signal });

/** A link that nobody holds any more is looked at by the linker within a second, or four when it is on its rounds. */
const FREED_LOOKS = 24;
const FREED_LOOK_MS = 250;

/**
 * Finds out whom requests are about, and holds every identity of theirs. Who waits for another erasure is left out: a link
 * by the cut-off that this one holds back may join two people, and is decided only when it lets go.
 *
 * Requests about one person may have different cut-offs: a link between the two waits for the earlier hold, although the
 * later erasure is about it. So holds are raised to the latest, and who is erased is found out once more.
 * @throws whatever the stores throw; then it may be called again
 */
export async function settlePersons(
  parts: SettleParts,
  requests: readonly ErasureRequest[],
  signal: AbortSignal,
): Promise<ErasedPerson[]> {
  let before = '';
  for (let freedLooks = 0; ; ) {
    const waiting = await parts.barrier.linksStored(signal);
    const persons = await resolvePersons(parts.rows, requests, await readOthers(parts, requests));
    await assertNotBegun(parts, requests);
    await holdAll(parts, persons);
    const now = persons.map(({ keys }) => toHash(keys)).join();
    const isRaised = persons.some(({ requests: own, cutoffAt }) => own.some((each) => each.cutoffAt < cutoffAt));
    if (isRaised && now !== before) {
      before = now;
      continue;
    }
    const undecided = await findUndecided(parts, persons, waiting);
    if (![...undecided.values()].includes('freed') || freedLooks === FREED_LOOKS)
      return persons.filter((person) => !undecided.has(person));
    freedLooks++;
    await (parts.pause ?? rest)(FREED_LOOK_MS, signal);
  }
}

/** Erasures of others that were open when the first of these was asked for. */
async function readOthers({ records }: SettleParts, requests: readonly ErasureRequest[]) {
  const own = new Set(requests.map(toId));
  const askedAt = Math.min(...requests.map(({ requestedAt }) => requestedAt));
  const open = await records.readOpenSince(askedAt - CLOCKS_APART_MS);
  return open.filter(({ request }) => !own.has(toId(request)));
}

/**
 * Another process may have begun these erasures while this one was paused: decisions that its sweep has taken were not
 * found. It notes them before it sweeps, so this is asked behind the look for decisions.
 */
async function assertNotBegun({ records }: SettleParts, requests: readonly ErasureRequest[]): Promise<void> {
  const begun = new Set((await records.readProgress()).map(toId));
  if (requests.some((request) => begun.has(toId(request))))
    throw new Error('another process has begun erasures of this batch');
}

/**
 * Each erasure of a person holds all of it: whichever is let go first, the others keep later links waiting. A hold that
 * is gone was let go by another process, which has finished the erasure while this one was paused, or was lost with the
 * last second of Redis. Only what was lost is placed again: a receipt comes before the release, so it is there to be seen.
 */
export async function holdAll(parts: SettleParts, persons: readonly ErasedPerson[]): Promise<void> {
  const { guards } = parts.people;
  const gone: ErasureHold[] = [];
  for (const { environmentId, cutoffAt: cutoffMs, keys, requests } of persons)
    for (const { erasureId } of requests) {
      const hold = { environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null };
      if (!(await guards.extend(hold))) gone.push(hold);
    }
  if (gone.length === 0) return;
  const unfinished = new Set((await parts.records.readUnfinished()).map(toId));
  if (gone.some((hold) => !unfinished.has(toId(hold))))
    throw new Error('another process has finished erasures of this batch');
  for (const hold of gone) await guards.place(hold);
}

/**
 * Persons about whom a link by their cut-off is not decided: it waits for the erasure of somebody else (`held`), or does
 * so no more (`freed`). The erasure that it waits for has an earlier cut-off, so of two persons one is not left out.
 */
async function findUndecided(
  { people: { guards } }: SettleParts,
  persons: readonly ErasedPerson[],
  waiting: readonly WaitingLink[],
): Promise<ReadonlyMap<ErasedPerson, 'held' | 'freed'>> {
  const personOf = indexPersons(persons);
  const touching = waiting.flatMap((link) => {
    const named = link.keys.map((key) => personOf(link.environmentId, key));
    const mayChange = (person: ErasedPerson) =>
      link.receivedAtMs <= person.cutoffAt && (link.isUnlink || named.some((each) => each !== person));
    return [...new Set(named)].flatMap((person) => (person && mayChange(person) ? [{ person, link }] : []));
  });
  const undecided = new Map<ErasedPerson, 'held' | 'freed'>();
  for (const [environmentId, own] of Map.groupBy(touching, ({ link }) => link.environmentId)) {
    const keys = new Map(own.flatMap(({ link }) => link.keys.map((key) => [key.toString('latin1'), key] as const)));
    const from = await guards.heldFrom(environmentId, [...keys.values()]);
    const heldFromMs = new Map([...keys.keys()].map((name, at) => [name, from[at]!]));
    const isHeld = ({ keys: named, receivedAtMs }: WaitingLink) =>
      named.some((key) => receivedAtMs > (heldFromMs.get(key.toString('latin1')) ?? Number.POSITIVE_INFINITY));
    for (const { person, link } of own)
      if (isHeld(link)) undecided.set(person, 'held');
      else if (!undecided.has(person)) undecided.set(person, 'freed');
  }
  return undecided;
}
