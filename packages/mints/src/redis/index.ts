import {
  assertTakesWrites,
  isReplyError,
  openRedis,
  type RedisAdapterOptions,
  type RedisConnection,
  runScript,
} from '@playline/stores/redis';
import { type Quotas, toQuotaStatus } from '../accept.ts';
import type { MintScope } from '../asset.ts';
import {
  type ClaimOutcome,
  FAILED_PER_HOUR_MAX,
  IncompleteClaimsFault,
  type MintClaims,
  PENDING_LIMITS,
  SETTLED_LIMITS,
  type WantedClaim,
} from '../claims.ts';
import { joinGroups, type MintGroup } from '../groups.ts';
import type { MintState } from '../states.ts';
import type { MintView } from '../view.ts';
import { APPLY, CLAIM, CLEAN, COMPLETE, CONFIRM, LAPSE, PROGRESS, READ, TAKE } from './scripts.ts';

export interface RedisMints {
  readonly claims: MintClaims;
  readonly view: MintView;
  readonly quotas: Quotas;
  /** Whether Redis accepts writes. While Redis is out of memory, it refuses claims but still applies the log. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Expiry for unconfirmed claims, and for final states, which the tables also contain. */
const EXPIRY_MS = 7 * 24 * 60 * 60 * 1000;
const US_PER_MS = 1000;
const MS_PER_S = 1000;

type Names = ReturnType<typeof createNames>;

/** @param tag number of the hash tag that keeps the keys of a group of projects in one slot; null without a cluster */
function createNames(namespace: string, tag: number | null) {
  const infix = tag === null ? '' : `:{m${tag}}`;
  const toScope = (contract: string) => (tag === null ? `{${contract}}` : `{m${tag}}:${contract}`);
  const keyFor = (family: string, { chain, contractAddress, projectId }: MintScope, referenceId: string) =>
    `${namespace}mint:${family}:${toScope(`${chain}:${contractAddress}`)}:${projectId}:${referenceId}`;
  const ofProject = (family: string) => (projectId: string) => `${namespace}mint:${family}${infix}:${projectId}`;
  return {
    claim: (scope: MintScope, referenceId: string) => keyFor('claim', scope, referenceId),
    state: (scope: MintScope, referenceId: string) => keyFor('state', scope, referenceId),
    pending: ofProject('pending'),
    settled: ofProject('settled'),
    settledBytes: ofProject('settled-bytes'),
    floor: ofProject('floor'),
    failed: ofProject('failed'),
    cleaned: ofProject('cleaned'),
    quota: (kind: string, projectId: string) => `${namespace}mint:quota:${kind}:${projectId}`,
    complete: `${namespace}mint:complete${infix}`,
    offsets: `${namespace}mint:places${infix}`,
    /** For scripts that construct key names: a key that never exists, so that Redis refuses them while the slot moves. */
    absent: tag === null ? [] : [`${namespace}mint:complete${infix}:absent`],
  };
}

/** Fixed, because stored keys are not migrated. */
const HASH_TAGS = 64;

/** Opens claims, view and quotas in Redis. The README of infra/redis lists the keys. */
export async function openRedisMints(options: RedisAdapterOptions): Promise<RedisMints> {
  const scripts = await openScripts(options);
  const open = (tag: number | null): MintGroup => {
    const names = createNames(options.namespace ?? '', tag);
    const [claims, quotas] = [createClaims(scripts, names), createQuotas(scripts, names)];
    return { claims, view: createView(scripts, names), quotas };
  };
  const isDivided = (options.cells ?? 0) > 0;
  const tags = Array.from({ length: HASH_TAGS }, (_, tag) => tag);
  return {
    ...(isDivided ? joinGroups(tags.map(open)) : open(null)),
    ready: scripts.ready,
    close: scripts.close,
  };
}

function createClaims({ run }: Scripts, names: Names): MintClaims {
  return {
    claim: async (scope, wanted, { isDryRun = false } = {}) => {
      const { projectId, environmentId } = scope;
      const projectKeys = [names.pending(projectId), names.cleaned(projectId), names.failed(projectId)];
      const keys = [names.complete, ...projectKeys];
      const claims = wanted.map(({ referenceId }) => names.claim(scope, referenceId));
      const { environment, project } = PENDING_LIMITS;
      const limits = [environment.assets, environment.bytes, project.assets, project.bytes];
      const args = wanted.flatMap(({ attemptId, signer, digest }) => [attemptId, signer, digest]);
      const values = [isDryRun ? '1' : '0', EXPIRY_MS, environmentId, ...limits, FAILED_PER_HOUR_MAX, ...args];
      return toOutcome((await run(CLAIM, [...keys, ...claims], values)) as [string, ...(string | number)[]], wanted);
    },
    confirm: async (scope, states) => {
      const keys = states.flatMap(({ referenceId }) => [
        names.claim(scope, referenceId),
        names.state(scope, referenceId),
      ]);
      const args = states.flatMap((state) => [
        ...[state.attemptId, state.signer, state.requestedAt, state.environmentId],
        JSON.stringify(state),
      ]);
      const others = (await run(CONFIRM, [names.pending(scope.projectId), ...keys], args)) as number[];
      return others.map((at) => states[at]!.referenceId);
    },
    lapse: async (scope, { referenceId, attemptId, claimedAt }) => {
      const { projectId } = scope;
      const keys = [names.claim(scope, referenceId), names.pending(projectId), names.floor(projectId)];
      await run(LAPSE, keys, [attemptId, claimedAt, EXPIRY_MS]);
    },
    clean: async (projectId, claimedUntil) => {
      await run(
        CLEAN,
        [names.pending(projectId), names.floor(projectId), ...names.absent],
        [claimedUntil ?? 0, EXPIRY_MS],
      );
    },
    read: async (scope, referenceId) => {
      const keys = [names.complete, names.state(scope, referenceId), names.claim(scope, referenceId)];
      const [isComplete, text] = (await run(READ, keys, [])) as [number, string | null];
      return { isComplete: isComplete === 1, state: text === null ? null : (JSON.parse(text) as MintState) };
    },
  };
}

/** @throws IncompleteClaimsFault */
function toOutcome([kind, ...rest]: [string, ...(string | number)[]], wanted: readonly WantedClaim[]): ClaimOutcome {
  const referenceIdOf = (at: unknown) => wanted[Number(at)]!.referenceId;
  if (kind === 'incomplete') throw new IncompleteClaimsFault();
  if (kind === 'full') return { kind, cleanedAt: rest[0] === '' ? null : Number(rest[0]) };
  if (kind === 'failing') return { kind, waitMs: Number(rest[0]) };
  if (kind === 'taken') return { kind, referenceIds: rest.map(referenceIdOf) };
  if (kind === 'claimed') {
    const claims = toGroups(rest, 3).map(([attemptId, signer, requestedAt], at) => ({
      referenceId: referenceIdOf(at),
      attemptId: String(attemptId),
      signer: String(signer),
      requestedAt: Number(requestedAt),
    }));
    return { kind, claims };
  }
  const claims = toGroups(rest, 4).map(([at, attemptId, claimedAt, ageMs]) => ({
    referenceId: referenceIdOf(at),
    attemptId: String(attemptId),
    claimedAt: Number(claimedAt),
    ageMs: Number(ageMs),
  }));
  return { kind: 'unknown', claims };
}

function toGroups<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: list.length / size }, (_, at) => list.slice(at * size, (at + 1) * size));
}

function createView({ run, redis }: Scripts, names: Names): MintView {
  const apply = async (states: readonly MintState[], to: readonly (string | number)[]): Promise<boolean> => {
    const keys = states.flatMap((state) => [
      names.claim(state, state.referenceId),
      names.state(state, state.referenceId),
      names.pending(state.projectId),
      names.settled(state.projectId),
      names.settledBytes(state.projectId),
      names.floor(state.projectId),
      names.failed(state.projectId),
    ]);
    const args = states.flatMap((state) => [
      ...[state.attemptId, state.signer, state.status, state.revision, state.requestedAt, state.environmentId],
      state.changedAt,
      JSON.stringify(state),
    ]);
    const limits = [SETTLED_LIMITS.assets, SETTLED_LIMITS.bytes, FAILED_PER_HOUR_MAX];
    return (await run(APPLY, [names.offsets, ...keys, ...names.absent], [...to, EXPIRY_MS, ...limits, ...args])) === 1;
  };
  return {
    progress: async () => {
      const reply = await run(PROGRESS, [names.complete, names.offsets], []);
      const [present, completeIn, offsets] = reply as [string, string | null, string[]];
      const pairs = toGroups(offsets, 2).map(([field = '', offset]) => [field, Number(offset)] as const);
      return { run: present, completeIn, offsets: new Map(pairs) };
    },
    apply: ({ states, to, from }) => apply(states, [`${to.topic}/${to.partition}`, from ?? '', to.offset]),
    restore: async (states) => {
      await apply(states, ['', '', '']);
    },
    forgetOffsets: async () => {
      await redis.del(names.complete, names.offsets);
    },
    complete: async (wanted) => {
      await run(COMPLETE, [names.complete], [wanted]);
    },
  };
}

function createQuotas({ run }: Scripts, names: Names): Quotas {
  return {
    take: async (projectId, policy, units) => {
      const unitUs = (MS_PER_S * US_PER_MS) / policy.perSecond;
      const args = [Math.round(units * unitUs), Math.round(policy.burst * unitUs)];
      const reply = (await run(TAKE, [names.quota(policy.kind, projectId)], args)) as [string, string];
      const [backlogMs, lackMs] = reply.map((us) => Number(us) / US_PER_MS) as [number, number];
      return toQuotaStatus(policy, backlogMs, lackMs);
    },
  };
}

const LIMITS = { commandTimeoutMs: 2_000 };

interface Scripts extends Omit<RedisConnection, 'opened'> {
  run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
}

/** Resolves even if Redis is unavailable. Commands then fail immediately. */
async function openScripts(options: RedisAdapterOptions): Promise<Scripts> {
  const { redis, opened, close } = openRedis(options, LIMITS);
  await opened;
  return {
    redis,
    run: (script, keys, args) => runScript(redis, { script, keys, args }),
    ready: async () => {
      if (redis.status !== 'ready') return false;
      try {
        await assertTakesWrites(redis);
        return true;
      } catch (fault) {
        if (isReplyError(fault)) options.onFault?.(fault);
        return false;
      }
    },
    close,
  };
}
