import type { MintCollection } from '../asset.ts';
import {
  IncompleteClaimsFault,
  judgeClaim,
  type MintClaims,
  type PlacedClaim,
  type StandingClaim,
  type UnknownClaim,
  type WantedClaim,
} from '../claims.ts';
import { type Quotas, toQuotaStanding } from '../quota.ts';
import { foldAttempts, isTruer, type MintState } from '../states.ts';
import { comparePositions, isBeyond, isOwnedBy, type MintReader, toMintPage } from '../store.ts';
import type { MintView } from '../view.ts';

export interface MemoryMints {
  readonly claims: MintClaims;
  readonly view: MintView;
  readonly quotas: Quotas;
  /** Simulates a restart of the store, with its data lost or kept. */
  restart(options?: { isEmptied?: boolean }): void;
}

/** Epoch milliseconds. */
type WallClock = () => number;

interface Held {
  run: number;
  completeIn: string | null;
  readonly claims: Map<string, StandingClaim>;
  readonly states: Map<string, MintState>;
  readonly places: Map<string, number>;
}

const keyOf = ({ chain, contractAddress }: MintCollection, referenceId: string) =>
  `${chain}:${contractAddress}:${referenceId}`;

/** Claims and view in memory, for tests. Complete from the beginning. */
export function createMemoryMints(wallClockMs: WallClock = Date.now): MemoryMints {
  const held: Held = { run: 1, completeIn: '1', claims: new Map(), states: new Map(), places: new Map() };
  return {
    claims: createClaims(held, wallClockMs),
    view: createView(held),
    quotas: createMemoryQuotas(wallClockMs),
    restart: ({ isEmptied = false } = {}) => {
      held.run++;
      if (!isEmptied) return;
      for (const map of [held.claims, held.states, held.places]) map.clear();
      held.completeIn = null;
    },
  };
}

function createClaims(held: Held, now: WallClock): MintClaims {
  const assertComplete = () => {
    if (held.completeIn !== String(held.run)) throw new IncompleteClaimsFault();
  };
  return {
    claim: async (collection, wanted, { isDry = false } = {}) => {
      assertComplete();
      const judged = wanted.map((each) =>
        judge(held.claims.get(keyOf(collection, each.referenceId)) ?? null, each, now()),
      );
      const taken = judged.flatMap(({ verdict }, at) => (verdict === 'taken' ? [wanted[at]!.referenceId] : []));
      if (taken.length > 0) return { kind: 'taken', referenceIds: taken };
      const unknown = judged.flatMap(({ unknown: claim }) => claim ?? []);
      if (unknown.length > 0) return { kind: 'unknown', claims: unknown };
      const claims = judged.map(({ placed }) => placed);
      if (!isDry)
        for (const [at, { referenceId, ...claim }] of claims.entries()) {
          const standing = { status: 'pending', revision: 0, digest: wanted[at]!.digest, claimedAt: now() } as const;
          held.claims.set(keyOf(collection, referenceId), { ...claim, ...standing });
        }
      return { kind: 'claimed', claims };
    },
    confirm: async (collection, states) =>
      states.flatMap((state) => {
        const key = keyOf(collection, state.referenceId);
        const standing = held.claims.get(key);
        if (standing !== undefined && standing.attemptId !== state.attemptId) return [state.referenceId];
        if (standing === undefined || standing.claimedAt !== null) put(held, key, state);
        return [];
      }),
    lapse: async (collection, { referenceId, attemptId, claimedAt }) => {
      const key = keyOf(collection, referenceId);
      const standing = held.claims.get(key);
      if (standing?.attemptId !== attemptId || standing.claimedAt !== claimedAt) return;
      held.claims.set(key, { ...standing, status: 'failed', claimedAt: null });
    },
    read: async (collection, referenceId) => ({
      isComplete: held.completeIn === String(held.run),
      state: held.states.get(keyOf(collection, referenceId)) ?? null,
    }),
  };
}

function judge(standing: StandingClaim | null, wanted: WantedClaim, nowMs: number) {
  const { referenceId, attemptId, signer, digest } = wanted;
  const verdict = judgeClaim(standing, digest);
  const requestedAt = Math.max(nowMs, standing === null ? 0 : standing.requestedAt + 1);
  const own: PlacedClaim = { referenceId, attemptId, signer, requestedAt };
  const placed = verdict === 'taken over' ? { referenceId, ...pick(standing!) } : own;
  const claimedAt = standing?.claimedAt ?? 0;
  const unknown: UnknownClaim | null =
    verdict === 'unknown' ? { referenceId, ...pick(standing!), claimedAt, ageMs: nowMs - claimedAt } : null;
  return { verdict, placed, unknown };
}

const pick = ({ attemptId, signer, requestedAt }: StandingClaim) => ({ attemptId, signer, requestedAt });

function put(held: Held, key: string, state: MintState): void {
  const { attemptId, signer, status, revision, requestedAt } = state;
  held.claims.set(key, { attemptId, status, revision, requestedAt, signer, digest: '-', claimedAt: null });
  held.states.set(key, state);
}

function createView(held: Held): MintView {
  const bringIn = (states: readonly MintState[]) => {
    for (const state of states) {
      const key = keyOf(state, state.referenceId);
      const standing = held.claims.get(key) ?? null;
      const open = standing === null ? null : { ...standing, isConfirmed: standing.claimedAt === null };
      if (isTruer(state, open)) put(held, key, state);
    }
  };
  return {
    standing: async () => ({ run: String(held.run), completeIn: held.completeIn, places: new Map(held.places) }),
    apply: async ({ states, place, from }) => {
      const field = `${place.topic}/${place.partition}`;
      if ((held.places.get(field) ?? null) !== from) return false;
      held.places.set(field, place.offset);
      bringIn(states);
      return true;
    },
    restore: async (states) => bringIn(states),
    forgetPlaces: async () => {
      held.places.clear();
      held.completeIn = null;
    },
    complete: async (run) => {
      if (run === String(held.run)) held.completeIn = run;
    },
  };
}

/** Quotas in memory. */
export function createMemoryQuotas(wallClockMs: WallClock = Date.now): Quotas {
  const fullAt = new Map<string, number>();
  return {
    take: async (projectId, policy, units) => {
      const key = `${policy.kind} ${projectId}`;
      const unitMs = 1000 / policy.perSecond;
      const at = wallClockMs();
      const standing = Math.max(fullAt.get(key) ?? 0, at);
      const wanted = Math.max(at, standing + units * unitMs);
      const lackMs = wanted - at - policy.burst * unitMs;
      if (units > 0 && lackMs > 0) return toQuotaStanding(policy, standing - at, lackMs);
      fullAt.set(key, wanted);
      return toQuotaStanding(policy, wanted - at, 0);
    },
  };
}

/** A reader in memory, of the states given to `put`. */
export function createMemoryMintReader(): MintReader & { readonly put: (...states: readonly MintState[]) => void } {
  const rows: MintState[] = [];
  const latestOf = (collection: MintCollection) => {
    const key = keyOf(collection, '');
    const own = rows.filter((row) => keyOf(row, '') === key);
    const attempts = Map.groupBy(own, ({ referenceId }) => referenceId).values();
    return [...attempts].flatMap((all) => foldAttempts(all) ?? []).toSorted(comparePositions);
  };
  return {
    put: (...states) => void rows.push(...states),
    readOne: async (collection, referenceId) =>
      latestOf(collection).find((state) => state.referenceId === referenceId) ?? null,
    readPage: async ({ collection, owner, horizon, status, gap, direction, limit }) => {
      const own = latestOf(collection).filter((state) => owner === null || isOwnedBy(state, owner));
      const all = own.filter((state) => status === null || state.status === status);
      const known = all.filter(({ requestedAt }) => horizon === null || requestedAt <= horizon);
      const beyond = known.filter((state) => isBeyond(state, gap, direction));
      return toMintPage(direction === 'next' ? beyond.slice(0, limit) : beyond.slice(-limit), gap);
    },
    ready: async () => true,
  };
}
