import { createHash, randomUUID } from 'node:crypto';
import { IDENTITY_KEY_BYTES } from '@playline/contracts';
import { waitAtMost } from '@playline/stores';
import {
  assertTakesWrites,
  isReplyError,
  nodesOf,
  openRedis,
  primariesOf,
  type Redis,
  type RedisAdapterOptions,
} from '@playline/stores/redis';
import { joinCells, type LinkPartitions, type PeopleStore } from '../cells.ts';
import type {
  ApplyOutcome,
  ChosenStatus,
  ConsentStore,
  ConsentSyncState,
  LoggedConsent,
  StoredConsent,
} from '../consents.ts';
import { DEFAULT_LIMITS, type GraphLimits, type UnlinkSide } from '../graph.ts';
import type { Cutoff, ErasureGuards, ErasureHold, HoldName, StoredHold } from '../guards.ts';
import { EpochPresentFault, MissingEpochFault, MissingFencesFault, type People } from '../people.ts';
import { type LinkedIdentity, type PeopleRebuild, toUnlinkSideLine } from '../rebuild.ts';
import { createGraph, type GraphParts, noteFieldOf, readApplied, readMembers, toSourceText } from './graph.ts';
import { createLayout, type Layout, NUMBER_BYTES } from './layout.ts';
import { createScript, type ScriptArgument, type ScriptName } from './scripts.ts';
import { fromSides, toDecidedBlob, toOverrideBlob, toSuspectBlob, toUnlinkSideBlob } from './wire.ts';

export interface RedisPeopleOptions extends RedisAdapterOptions {
  /** Must be shorter than the caller's deadline. Default: 5 s. */
  commandTimeoutMs?: number;
  limits?: GraphLimits;
  /** Link topic name on the broker. Required for applying facts. */
  linkTopic?: string;
  /** Consent topic name on the broker. Required for consents. */
  consentTopic?: string;
  /** Required for applying facts if the store is divided into cells. */
  linkPartitions?: LinkPartitions;
  /** Called by `ready` and `takesWrites` with the reason if Redis responds but is unusable. */
  onUnusable?: (fault: Error) => void;
}

/** Opens a connection. Resolves even if Redis is unavailable; check `ready`. */
export async function openRedisPeople(options: RedisPeopleOptions): Promise<People> {
  const { redis, opened, close } = openRedis(options, {
    commandTimeoutMs: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS,
  });
  await opened;
  const { namespace = '', linkTopic = '', consentTopic = '', cells = 0 } = options;
  const openCell = (cell: string | null) =>
    createStore(redis, createLayout({ namespace, linkTopic, consentTopic, cell }), options.limits ?? DEFAULT_LIMITS);
  const store =
    cells === 0
      ? openCell(null)
      : joinCells(
          Array.from({ length: cells }, (_, cell) => openCell(`c${cell}/${cells}`)),
          options.linkPartitions ?? null,
        );
  return {
    ...store,
    ...createReadiness(redis, store, options.onUnusable ?? (() => {})),
    rewriteLog: async () => {
      await assertNodesRespond(redis);
      await Promise.all(nodesOf(redis).map(rewriteLog));
    },
    readClockMs: async () => {
      const [seconds] = await redis.time();
      return seconds * 1_000;
    },
    close,
  };
}

function createStore(redis: Redis, layout: Layout, limits: GraphLimits): PeopleStore {
  const readEpoch = () => redis.get(layout.epoch);
  const parts = { redis, layout, readEpoch };
  const { loadConsents, ...consents } = createConsents(redis, layout);
  return {
    graph: createGraph(parts, limits),
    consents,
    guards: createGuards(redis, layout),
    rebuild: { ...createRebuild(parts), loadConsents },
    readEpoch,
  };
}

/** Allows for several queued calls of the graph's script. */
const COMMAND_TIMEOUT_MS = 5_000;

/** @throws Error if a node of a cluster is unavailable, because its files may contain deleted data */
async function assertNodesRespond(redis: Redis): Promise<void> {
  if (!redis.isCluster) return;
  const known = String(await primariesOf(redis)[0]!.call('CLUSTER', 'NODES'))
    .trim()
    .split('\n');
  const isUnavailable = (line: string) => /^\S+ \S+ \S*(fail|noaddr)/.test(line);
  if (known.some(isUnavailable) || nodesOf(redis).length < known.length)
    throw new Error('a node of the Redis Cluster is unavailable, so its files cannot be rewritten');
}

async function rewriteLog(node: Pick<Redis, 'call'>): Promise<void> {
  try {
    await node.call('BGREWRITEAOF');
  } catch (fault) {
    // The next rewrite removes the data that the running rewrite includes.
    if (!(fault instanceof Error && /already in progress/.test(fault.message))) throw fault;
  }
}

/** Out of memory, failing snapshots, a replica, or a primary without enough replicas. */
const REFUSES_WRITES = /^(OOM|MISCONF|READONLY|NOREPLICAS)\b/;
/** Readiness probes time out after one second. */
const WRITE_CHECK_MS = 900;

/** Checks whether Redis is usable and reports the reason if it is not. */
function createReadiness(
  redis: Redis,
  { readEpoch, guards }: PeopleStore,
  onUnusable: (fault: Error) => void,
): Pick<People, 'ready' | 'takesWrites'> {
  const check = async (): Promise<boolean> => {
    if (redis.status !== 'ready') return false;
    try {
      await assertTakesWrites(redis);
      return true;
    } catch (fault) {
      if (!isReplyError(fault)) return false;
      if (!REFUSES_WRITES.test(fault.message)) return true;
      onUnusable(fault);
      return false;
    }
  };
  const takesWrites = () => waitAtMost(WRITE_CHECK_MS, check(), () => false);
  return {
    takesWrites,
    ready: async () => {
      if (redis.status !== 'ready') return false;
      const [epoch, fences, isWritable] = await Promise.all([readEpoch(), guards.fenceStatus(), takesWrites()]);
      if (epoch === null) onUnusable(new MissingEpochFault());
      else if (!fences.isComplete) onUnusable(new MissingFencesFault());
      return epoch !== null && fences.isComplete && isWritable;
    },
  };
}

/** Blocks Redis for a few milliseconds. */
const FORGOTTEN_PER_CALL_MAX = 1_000;

function createConsents(redis: Redis, layout: Layout): ConsentStore & Pick<PeopleRebuild, 'loadConsents'> {
  const forgetConsents = createScript(redis, 'forgetConsents');
  const putConsent = createScript(redis, 'putConsent');
  const readConsent = createScript(redis, 'readConsent');
  const markConsents = createScript(redis, 'markConsents');
  const consentSyncState = createScript(redis, 'consentSyncState');

  const put = async (change: LoggedConsent, epoch: '' | 'epoch') => {
    const { environmentId, identityKey: key } = change;
    const buckets = [layout.consentsOf(environmentId, key), layout.fencesOf(environmentId, key)];
    const keys = [layout.epoch, ...buckets, layout.consentLog];
    return fromReply(await putConsent(keys, [key, toValue(change), epoch]));
  };
  return {
    apply: (change) => put(change, 'epoch'),
    loadConsents: (changes) => Promise.all(changes.map((change) => put(change, ''))),
    async read(environmentId, identityKey) {
      const keys = [layout.epoch, layout.consentsOf(environmentId, identityKey), layout.consentLog, layout.fencedRun];
      const value = await readConsent(keys, [identityKey]);
      return Buffer.isBuffer(value) ? fromValue(value) : null;
    },
    syncState: async () => fromSyncState(await consentSyncState([layout.consentLog], [])),
    markCurrent: async (run, ends) => {
      const lastOffsets = [...ends].filter(([, end]) => end > 0).flatMap(([partition, end]) => [partition, end - 1]);
      return (await markConsents([layout.consentLog], [run, ...lastOffsets])) === 1;
    },
    async readStored(environmentId, identityKeys) {
      const read = (key: Buffer) => redis.hgetBuffer(layout.consentsOf(environmentId, key), key);
      const values = await Promise.all(identityKeys.map(read));
      return values.flatMap((value, at) =>
        value === null ? [] : [{ identityKey: identityKeys[at]!, ...fromValue(value) }],
      );
    },
    async forget(environmentId, consents) {
      let forgotten = 0;
      for (let at = 0; at < consents.length; at += FORGOTTEN_PER_CALL_MAX) {
        const batch = consents.slice(at, at + FORGOTTEN_PER_CALL_MAX);
        const buckets = batch.map(({ identityKey }) => layout.consentsOf(environmentId, identityKey));
        const args = batch.flatMap((consent) => [consent.identityKey, toValue(consent)]);
        forgotten += Number(await forgetConsents(buckets, args));
      }
      return forgotten;
    },
  };
}

// These codes are stored in Redis and must not change.
const STATUS_CODES: Readonly<Record<ChosenStatus, string>> = { none: 'n', anonymous: 'a', full: 'f' };
const OUTCOMES: Readonly<Record<string, ApplyOutcome>> = { a: 'applied', s: 'superseded', f: 'fenced' };
const STATUSES = new Map((Object.keys(STATUS_CODES) as ChosenStatus[]).map((status) => [STATUS_CODES[status], status]));

/** Byte offsets in a stored consent. `put-consent.lua` depends on this layout. */
const CONSENT_OFFSETS = {
  status: 0,
  partition: 1,
  offset: 3,
  loggedAt: 3 + NUMBER_BYTES,
  receivedAt: 3 + 2 * NUMBER_BYTES,
  end: 3 + 3 * NUMBER_BYTES,
} as const;

function toValue({ status, receivedAt, position }: StoredConsent): Buffer {
  const value = Buffer.alloc(CONSENT_OFFSETS.end);
  value.write(STATUS_CODES[status], CONSENT_OFFSETS.status, 'latin1');
  value.writeUInt16BE(position.partition, CONSENT_OFFSETS.partition);
  value.writeUIntBE(position.offset, CONSENT_OFFSETS.offset, NUMBER_BYTES);
  value.writeUIntBE(position.loggedAtMs, CONSENT_OFFSETS.loggedAt, NUMBER_BYTES);
  value.writeUIntBE(Math.max(0, receivedAt), CONSENT_OFFSETS.receivedAt, NUMBER_BYTES);
  return value;
}

/** @throws if the value is invalid */
function fromValue(value: Buffer): StoredConsent {
  const status = STATUSES.get(value.toString('latin1', CONSENT_OFFSETS.status, CONSENT_OFFSETS.partition));
  if (status === undefined || value.length !== CONSENT_OFFSETS.end)
    throw new Error('Redis contains an invalid consent. Rebuild Redis with "npm run rebuild"');
  const position = {
    partition: value.readUInt16BE(CONSENT_OFFSETS.partition),
    offset: value.readUIntBE(CONSENT_OFFSETS.offset, NUMBER_BYTES),
    loggedAtMs: value.readUIntBE(CONSENT_OFFSETS.loggedAt, NUMBER_BYTES),
  };
  return { status, receivedAt: value.readUIntBE(CONSENT_OFFSETS.receivedAt, NUMBER_BYTES), position };
}

function fromReply(reply: unknown): ApplyOutcome {
  const outcome = OUTCOMES[String(reply)];
  if (outcome === undefined) throw new Error('The consent script returned an unknown reply');
  return outcome;
}

/** Parses the reply of `consent-sync-state.lua`. */
function fromSyncState(reply: unknown): ConsentSyncState {
  const [run = '', ...flat] = (reply as [Buffer, Buffer[]]).flat().map(String);
  const fields = new Map(flat.flatMap((field, at) => (at % 2 === 0 ? [[field, flat[at + 1] ?? ''] as const] : [])));
  const isCurrent = fields.get('run') === run;
  fields.delete('run');
  return {
    run,
    isCurrent,
    lags: () => !isCurrent,
    applied: new Map([...fields].map(([partition, last]) => [Number(partition), Number(last)])),
  };
}

function createRebuild(parts: GraphParts): Omit<PeopleRebuild, 'loadConsents'> {
  const { redis, layout } = parts;
  const mintEpoch = createScript(redis, 'mintEpoch');
  const loaderOf = <R extends { readonly environmentId: string }>(name: ScriptName, toBlob: (row: R) => Buffer) => {
    const load = createScript(redis, name);
    return async (rows: readonly R[]) => {
      const blobs = rows.map((row) => toBlob({ ...row, environmentId: layout.scopeOf(row.environmentId) }));
      await load([layout.epoch, ...layout.absent], [layout.namespace, ...blobs]);
    };
  };
  return {
    async missing() {
      if ((await parts.readEpoch()) !== null) throw new EpochPresentFault();
      return () => true;
    },
    mintEpoch: async (run = '') => String(await mintEpoch([layout.epoch, layout.fencedRun], [randomUUID(), run])),
    loadOverrides: loaderOf('loadOverrides', toOverrideBlob),
    loadUnlinkSides: loaderOf('loadUnlinkSides', toUnlinkSideBlob),
    loadSuspects: loaderOf('loadSuspects', toSuspectBlob),
    loadDecided: loaderOf('loadDecided', toDecidedBlob),
    async loadApplied(source, offset, note) {
      if ((await parts.readEpoch()) !== null) throw new EpochPresentFault();
      const known = await readApplied(parts, source);
      if (note !== undefined) await redis.hset(layout.progress, noteFieldOf(source), JSON.stringify(note));
      await redis.hset(layout.progress, toSourceText(source), Math.max(known, offset));
    },
    identities: () => readIdentities(parts),
    digest: (environmentId) => readDigest(parts, environmentId),
  };
}

/** Scans the identities of one environment, or of all environments. */
async function* readIdentities({ redis, layout }: GraphParts, wantedId?: string): AsyncGenerator<LinkedIdentity> {
  for await (const name of scanKeys(redis, layout.indexPattern(wantedId))) {
    const environmentId = layout.environmentOf(name);
    const flat = (await redis.callBuffer('HGETALL', name)) as Buffer[];
    for (let at = 0; at < flat.length; at += 2) yield { environmentId, key: flat[at]!, root: flat[at + 1]! };
  }
}

async function* scanKeys(redis: Redis, match: string): AsyncGenerator<string> {
  for (const node of primariesOf(redis))
    for await (const names of node.scanStream({ match, count: 1_000 })) yield* names as string[];
}

async function readDigest(parts: GraphParts, environmentId: string): Promise<string> {
  const roots = new Map<string, string>();
  for await (const { key, root } of readIdentities(parts, environmentId))
    roots.set(key.toString('hex'), root.toString('hex'));
  const lines: string[] = [];
  for (const root of new Set(roots.values())) {
    const members = await readMembers(parts, environmentId, Buffer.from(root, 'hex'));
    for (const { key, kind, linkedAt } of members) {
      const hex = key.toString('hex');
      // Uses the root from the index, so that an index that contradicts the component changes the digest.
      lines.push(`${hex} ${roots.get(hex)} ${kind} ${linkedAt}\n`);
    }
  }
  for (const side of await readUnlinkSides(parts, environmentId)) lines.push(toUnlinkSideLine(side));
  return createHash('sha256').update(lines.sort().join('')).digest('hex');
}

async function readUnlinkSides({ redis, layout }: GraphParts, environmentId: string): Promise<UnlinkSide[]> {
  const flat = (await redis.callBuffer('HGETALL', layout.unlinksOf(environmentId))) as Buffer[];
  const sides: UnlinkSide[] = [];
  for (let at = 0; at < flat.length; at += 2)
    if (flat[at]!.length === IDENTITY_KEY_BYTES)
      for (const each of fromSides(environmentId, flat[at]!, flat[at + 1]!)) sides.push(each);
  return sides;
}

/** Far more than the number of holds that expire between two calls of `dropLapsedHolds`. */
const LAPSED_PER_SWEEP_MAX = 1_000;

const FENCES_PER_CALL_MAX = 1_000;

/** Blocks Redis for a few milliseconds: about 35 µs per person with eight identities. */
const KEYS_PER_CALL_MAX = 100;

function createGuards(redis: Redis, layout: Layout): ErasureGuards {
  const putHold = createScript(redis, 'putHold');
  const confirmHold = createScript(redis, 'confirmHold');
  const releaseHold = createScript(redis, 'releaseHold');
  const raiseFences = createScript(redis, 'raiseFences');
  const enforceFences = createScript(redis, 'enforceFences');
  const fenceStatus = createScript(redis, 'fenceStatus');
  const completeFences = createScript(redis, 'completeFences');

  const fenceKeys = [layout.fencedRun, ...layout.absent];
  const release = async ({ environmentId, erasureId }: HoldName, lapsedAtMs: number | '') =>
    (await releaseHold(layout.holdKeysOf(environmentId), [erasureId, lapsedAtMs])) === 1;
  return {
    async putHold(hold) {
      // Added first because a hold that is missing from this set would never expire.
      if (hold.lapsesAtMs !== null) await redis.zadd(layout.lapsing, hold.lapsesAtMs, toMember(hold));
      await putHold(layout.holdKeysOf(hold.environmentId), [hold.erasureId, toLease(hold), '']);
    },
    extendHold: async (hold) =>
      (await putHold(layout.holdKeysOf(hold.environmentId), [hold.erasureId, toLease(hold), 'extend'])) === 1,
    confirmHold: async ({ environmentId, erasureId }) =>
      (await confirmHold(layout.holdKeysOf(environmentId), [erasureId])) === 1,
    async listHolds(environmentId) {
      const leases = (await redis.callBuffer('HGETALL', layout.leasesOf(environmentId))) as Buffer[];
      return leases.flatMap((id, at) => (at % 2 === 0 ? [fromLease(id, leases[at + 1]!)] : []));
    },
    releaseHold: async (name) => void (await release(name, '')),
    async dropLapsedHolds(nowMs) {
      const { lapsing } = layout;
      let dropped = 0;
      for (const member of await redis.zrangebyscoreBuffer(lapsing, '-inf', nowMs, 'LIMIT', 0, LAPSED_PER_SWEEP_MAX)) {
        if (await release(fromMember(member), nowMs)) dropped++;
        await redis.zrem(layout.lapsing, member);
      }
      return dropped;
    },
    heldFrom: createHeldFrom(redis, layout),
    async fence(cutoffs) {
      for (const args of toFenceCalls(layout, cutoffs)) await raiseFences(fenceKeys, args);
    },
    async enforce(cutoffs) {
      let [links, consents] = [0, 0];
      for (const args of toFenceCalls(layout, cutoffs)) {
        const [removedLinks, removedConsents] = (await enforceFences(fenceKeys, args)) as [number, number];
        links += removedLinks;
        consents += removedConsents;
      }
      return { links, consents };
    },
    async fenceStatus() {
      const reply = await fenceStatus([layout.fencedRun, layout.epoch], []);
      const [run, isComplete, hasEpoch] = reply as [Buffer, number, number];
      const isRestorable = isComplete === 0 && hasEpoch === 1;
      return { run: run.toString(), isComplete: isComplete === 1, isRestorable, lacks: () => isRestorable };
    },
    completeFences: async (run) => (await completeFences([layout.fencedRun], [run])) === 1,
  };
}

function* toFenceCalls(layout: Layout, cutoffs: readonly Cutoff[]): Generator<ScriptArgument[]> {
  for (const [environmentId, group] of Map.groupBy(cutoffs, (cutoff) => cutoff.environmentId))
    for (let at = 0; at < group.length; at += FENCES_PER_CALL_MAX) {
      const batch = group.slice(at, at + FENCES_PER_CALL_MAX).flatMap(({ key, cutoffMs }) => [key, cutoffMs]);
      yield [layout.namespace, layout.scopeOf(environmentId), ...batch];
    }
}

function createHeldFrom(redis: Redis, layout: Layout): ErasureGuards['heldFrom'] {
  const heldFrom = createScript(redis, 'heldFrom');
  return async (environmentId, keys) => {
    const persons: string[] = [];
    // Keyed by person, so that all its identities have the same result even if a hold ends between two calls.
    const earliest = new Map<string, number | null>();
    while (persons.length < keys.length) {
      const batch = keys.slice(persons.length, persons.length + KEYS_PER_CALL_MAX);
      const args = [layout.namespace, layout.scopeOf(environmentId), ...batch];
      const reply = (await heldFrom([layout.epoch, ...layout.absent], args)) as Buffer[];
      for (let at = 0; at < reply.length; at += 2) {
        const [person, cutoff] = [reply[at]!.toString('hex'), reply[at + 1]!.toString()];
        persons.push(person);
        earliest.set(person, earlierOf(earliest.get(person) ?? null, cutoff === '' ? null : Number(cutoff)));
      }
    }
    return persons.map((person) => earliest.get(person)!);
  };
}

function earlierOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

const ERASURE_ID_BYTES = 16;

/** Encodes a hold for the scripts: cut-off, expiry (0: never), keys. */
function toLease({ cutoffMs, lapsesAtMs, keys }: ErasureHold): Buffer {
  const times = Buffer.alloc(2 * NUMBER_BYTES);
  times.writeUIntBE(cutoffMs, 0, NUMBER_BYTES);
  times.writeUIntBE(lapsesAtMs ?? 0, NUMBER_BYTES, NUMBER_BYTES);
  return Buffer.concat([times, ...keys]);
}

function fromLease(erasureId: Buffer, lease: Buffer): StoredHold {
  const lapses = lease.readUIntBE(NUMBER_BYTES, NUMBER_BYTES);
  return { erasureId, cutoffMs: lease.readUIntBE(0, NUMBER_BYTES), lapsesAtMs: lapses === 0 ? null : lapses };
}

/** Member of the sorted set of expiring holds. Environment ids contain no NUL. */
function toMember({ environmentId, erasureId }: HoldName): Buffer {
  return Buffer.concat([Buffer.from(`${environmentId}\0`), erasureId]);
}

function fromMember(member: Buffer): HoldName {
  const idAt = member.length - ERASURE_ID_BYTES;
  return { environmentId: member.toString('utf8', 0, idAt - 1), erasureId: member.subarray(idAt) };
}
