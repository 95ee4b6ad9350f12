import { type Quotas, toQuotaStatus } from '../../accept.ts';
import type { MintCollection, MintScope } from '../../asset.ts';
import {
  type GrantedClaim,
  IncompleteClaimsFault,
  type MintClaims,
  PENDING_LIMITS,
  type UnknownClaim,
  type WantedClaim,
} from '../../claims.ts';
import { type CurrentState, findCurrentAttempt, isNewer, type MintState } from '../../states.ts';
import { comparePositions, isBeyond, isOwnedBy, type MintOwner, type MintReader, toMintPage } from '../../store.ts';
import type { MintView } from '../../view.ts';

export interface MemoryMints {
  readonly claims: MintClaims;
  readonly view: MintView;
  readonly quotas: Quotas;
  restart(options?: { isEmptied?: boolean }): void;
}

type WallClock = () => number;

interface StoredClaim extends CurrentState {
  readonly digest: string;
  readonly claimedAt: number | null;
}

interface Memory {
  run: number;
  completeIn: string | null;
  readonly claims: Map<string, StoredClaim>;
  readonly states: Map<string, MintState>;
  readonly offsets: Map<string, number>;
  readonly pending: Map<string, MintOwner>;
}

const keyOf = ({ chain, contractAddress, projectId }: MintScope, referenceId: string) =>
  `mint:claim:{${chain}:${contractAddress}}:${projectId}:${referenceId}`;

/** In-memory claims, view and quotas, complete from the start. Failed assets are retained and not limited. */
export function createMemoryMints(wallClockMs: WallClock = Date.now): MemoryMints {
  const memory: Memory = {
    run: 1,
    completeIn: '1',
    claims: new Map(),
    states: new Map(),
    offsets: new Map(),
    pending: new Map(),
  };
  return {
    claims: createClaims(memory, wallClockMs),
    view: createView(memory),
    quotas: createMemoryQuotas(wallClockMs),
    restart: ({ isEmptied = false } = {}) => {
      memory.run++;
      if (!isEmptied) return;
      for (const map of [memory.claims, memory.states, memory.offsets, memory.pending]) map.clear();
      memory.completeIn = null;
    },
  };
}

function createClaims(memory: Memory, now: WallClock): MintClaims {
  const assertComplete = () => {
    if (memory.completeIn !== String(memory.run)) throw new IncompleteClaimsFault();
  };
  return {
    claim: async (scope, wanted, { isDryRun = false } = {}) => {
      assertComplete();
      const checked = wanted.map((each) =>
        check(memory.claims.get(keyOf(scope, each.referenceId)) ?? null, each, now()),
      );
      const taken = checked.flatMap(({ verdict }, at) => (verdict === 'taken' ? [wanted[at]!.referenceId] : []));
      if (taken.length > 0) return { kind: 'taken', referenceIds: taken };
      const unknown = checked.flatMap(({ unknown: claim }) => claim ?? []);
      if (unknown.length > 0) return { kind: 'unknown', claims: unknown };
      const claims = checked.map(({ granted }) => granted);
      if (isDryRun) return { kind: 'claimed', claims };
      const { projectId, environmentId } = scope;
      const owner = { projectId, environmentId };
      const keys = wanted.map(({ referenceId }) => keyOf(scope, referenceId));
      if (isFull(memory, owner, keys)) return { kind: 'full', cleanedAt: now() };
      for (const [at, { referenceId, ...claim }] of claims.entries()) {
        const current = { status: 'pending', revision: 0, digest: wanted[at]!.digest, claimedAt: now() } as const;
        memory.claims.set(keyOf(scope, referenceId), { ...claim, ...current });
        memory.pending.set(keyOf(scope, referenceId), owner);
      }
      return { kind: 'claimed', claims };
    },
    confirm: async (scope, states) =>
      states.flatMap((state) => {
        const key = keyOf(scope, state.referenceId);
        const current = memory.claims.get(key);
        if (current !== undefined && current.attemptId !== state.attemptId) return [state.referenceId];
        if (current === undefined || current.claimedAt !== null) put(memory, key, state);
        return [];
      }),
    lapse: async (scope, { referenceId, attemptId, claimedAt }) => {
      const key = keyOf(scope, referenceId);
      const current = memory.claims.get(key);
      if (current?.attemptId === attemptId && current.claimedAt === claimedAt) end(memory, key, current);
    },
    clean: async (projectId, claimedUntil) => {
      for (const [key, owner] of [...memory.pending]) {
        const current = memory.claims.get(key);
        const claimedAt = current?.claimedAt ?? Number.POSITIVE_INFINITY;
        if (owner.projectId === projectId && claimedAt <= (claimedUntil ?? 0)) end(memory, key, current!);
      }
    },
    read: async (scope, referenceId) => {
      const key = keyOf(scope, referenceId);
      const state = memory.states.get(key) ?? null;
      const isKnown = state === null && memory.claims.get(key)?.claimedAt === null;
      return { isComplete: memory.completeIn === String(memory.run) && !isKnown, state };
    },
  };
}

function end(memory: Memory, key: string, current: StoredClaim): void {
  memory.claims.set(key, { ...current, status: 'failed', claimedAt: null });
  memory.pending.delete(key);
}

function isFull(memory: Memory, owner: MintOwner, wanted: readonly string[]): boolean {
  const added = wanted.filter((key) => !memory.pending.has(key));
  const ofProject = [...memory.pending].filter(([, { projectId }]) => projectId === owner.projectId);
  const ofEnvironment = ofProject.filter(([, { environmentId }]) => environmentId === owner.environmentId);
  const isAbove = (
    pending: typeof ofProject,
    { assets, bytes }: { readonly assets: number; readonly bytes: number },
  ) => {
    const keys = [...pending.map(([key]) => key), ...added];
    return keys.length > assets || keys.reduce((sum, key) => sum + 4 * Buffer.byteLength(key) + 1_000, 0) > bytes;
  };
  if (added.length === 0) return false;
  return isAbove(ofEnvironment, PENDING_LIMITS.environment) || isAbove(ofProject, PENDING_LIMITS.project);
}

function check(current: StoredClaim | null, wanted: WantedClaim, nowMs: number) {
  const { referenceId, attemptId, signer, digest } = wanted;
  const isOpen = current !== null && current.claimedAt !== null;
  const isFree = current === null || current.status === 'failed';
  const openVerdict = current?.digest === digest ? 'reused' : 'unknown';
  const verdict = isOpen ? openVerdict : isFree ? 'free' : 'taken';
  const requestedAt = Math.max(nowMs, current === null ? 0 : current.requestedAt + 1);
  const created: GrantedClaim = { referenceId, attemptId, signer, requestedAt };
  const granted = verdict === 'reused' ? { referenceId, ...pick(current!) } : created;
  const claimedAt = current?.claimedAt ?? 0;
  const unknown: UnknownClaim | null =
    verdict === 'unknown' ? { referenceId, ...pick(current!), claimedAt, ageMs: nowMs - claimedAt } : null;
  return { verdict, granted, unknown };
}

const pick = ({ attemptId, signer, requestedAt }: StoredClaim) => ({ attemptId, signer, requestedAt });

function put(memory: Memory, key: string, state: MintState): void {
  const { attemptId, signer, status, revision, requestedAt } = state;
  memory.claims.set(key, { attemptId, status, revision, requestedAt, signer, digest: '-', claimedAt: null });
  memory.states.set(key, state);
  if (status === 'pending') memory.pending.set(key, { projectId: state.projectId, environmentId: state.environmentId });
  else memory.pending.delete(key);
}

function createView(memory: Memory): MintView {
  const applyAll = (states: readonly MintState[]) => {
    for (const state of states) {
      const key = keyOf(state, state.referenceId);
      const current = memory.claims.get(key) ?? null;
      const open = current === null ? null : { ...current, isConfirmed: current.claimedAt === null };
      if (isNewer(state, open)) put(memory, key, state);
    }
  };
  return {
    progress: async () => ({
      run: String(memory.run),
      completeIn: memory.completeIn,
      offsets: new Map(memory.offsets),
    }),
    apply: async ({ states, to, from }) => {
      const field = `${to.topic}/${to.partition}`;
      if ((memory.offsets.get(field) ?? null) !== from) return false;
      memory.offsets.set(field, to.offset);
      applyAll(states);
      return true;
    },
    restore: async (states) => applyAll(states),
    forgetOffsets: async () => {
      memory.offsets.clear();
      memory.completeIn = null;
    },
    complete: async (run) => {
      if (run === String(memory.run)) memory.completeIn = run;
    },
  };
}

export function createMemoryQuotas(wallClockMs: WallClock = Date.now): Quotas {
  const fullAt = new Map<string, number>();
  return {
    take: async (projectId, policy, units) => {
      const key = `${policy.kind} ${projectId}`;
      const unitMs = 1000 / policy.perSecond;
      const at = wallClockMs();
      const current = Math.max(fullAt.get(key) ?? 0, at);
      const newFullAt = Math.max(at, current + units * unitMs);
      const lackMs = newFullAt - at - policy.burst * unitMs;
      if (units > 0 && lackMs > 0) return toQuotaStatus(policy, current - at, lackMs);
      fullAt.set(key, newFullAt);
      return toQuotaStatus(policy, newFullAt - at, 0);
    },
  };
}

export function createMemoryMintReader(): MintReader & { readonly put: (...states: readonly MintState[]) => void } {
  const rows: MintState[] = [];
  const latestOf = ({ chain, contractAddress }: MintCollection) => {
    const ofCollection = rows.filter((row) => row.chain === chain && row.contractAddress === contractAddress);
    const attempts = Map.groupBy(ofCollection, (row) => keyOf(row, row.referenceId)).values();
    return [...attempts].flatMap((all) => findCurrentAttempt(all) ?? []).toSorted(comparePositions);
  };
  return {
    put: (...states) => void rows.push(...states),
    readOne: async (scope, referenceId) =>
      latestOf(scope).find((state) => keyOf(state, state.referenceId) === keyOf(scope, referenceId)) ?? null,
    readMetadata: async () => null,
    readPage: async ({ collection, owner, horizon, status, gap, direction, limit }) => {
      const owned = latestOf(collection).filter((state) => owner === null || isOwnedBy(state, owner));
      const all = owned.filter((state) => status === null || state.status === status);
      const upToHorizon = all.filter(({ requestedAt }) => horizon === null || requestedAt <= horizon);
      const states = upToHorizon.filter((state) => isBeyond(state, gap, direction));
      return toMintPage(direction === 'next' ? states.slice(0, limit) : states.slice(-limit), gap);
    },
    ready: async () => true,
  };
}
