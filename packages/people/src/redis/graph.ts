import { createHash, randomUUID } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis } from 'ioredis';
import { EpochPresentFault, MissingEpochFault } from '../faults.ts';
import {
  type Applied,
  type Cutoff,
  DEFAULT_LIMITS,
  type FactBlock,
  type GraphLimits,
  type IdentityGraph,
  type LinkSourcePartition,
  type Member,
} from '../graph.ts';
import type { GraphFact } from '../identities/steps.ts';
import { bucketOf, createLayout, type Layout } from './layout.ts';
import { createReadiness } from './readiness.ts';
import { createScript } from './script.ts';
import { fromComponent, fromReply, toFactsBlob, toKindLetters, toOverrideBlob } from './wire.ts';

export interface RedisIdentityGraphOptions {
  /** With its password: `redis://:password@host:port` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before every key; '' in a deployment, tests keep apart with it. */
  namespace?: string;
  limits?: GraphLimits;
  /** Topic whose offsets `apply` and its kin speak of; whoever calls none of them need not name it. */
  linkTopic?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
  /** Told with every `ready` and `takesWrites` why this Redis cannot be worked with although it answers. */
  onUnusable?: (fault: Error) => void;
}

/**
 * Facts in one call of the script. A call stops everybody else's: a fact costs it about 15 µs, one that moves many
 * identities up to a millisecond. More facts a call bring little.
 */
const CALL_FACTS_MAX = 128;

/** Keeps the server busy while answers are read, and a call from timing out behind many others. */
const CALLS_IN_FLIGHT_MAX = 4;

/** A server that is silent for this long counts as away: the block is tried again, which is safe. */
const COMMAND_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 2_000;
const RECONNECT_DELAY_MAX_MS = 1_000;

/** Opens the graph in Redis; resolves also while Redis is away, `ready` tells. */
export async function openRedisIdentityGraph(options: RedisIdentityGraphOptions): Promise<IdentityGraph> {
  const namespace = options.namespace ?? '';
  const pace = createReconnectPace('Redis', RECONNECT_DELAY_MAX_MS);
  const redis = new Redis(options.url, {
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    lazyConnect: true,
    // A command whose connection broke fails: only the caller knows where to begin again.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: pace.waitMs,
  });
  redis.on('error', (fault) => {
    pace.heard(fault);
    options.onFault?.(fault);
  });
  await redis.connect().catch(() => {});
  const connection = { redis, namespace, layout: createLayout(namespace, options.linkTopic ?? '') };
  return {
    ...createFactCalls(connection, options.limits ?? DEFAULT_LIMITS),
    ...createQuestions(connection),
    ...createErasureMarks(connection),
    ...createRebuild(connection),
    ...createReadiness(redis, { readEpoch: () => readEpoch(connection), onUnusable: options.onUnusable ?? (() => {}) }),
    close: async () => redis.disconnect(),
  };
}

interface Connection {
  readonly redis: Redis;
  readonly namespace: string;
  readonly layout: Layout;
}

function readEpoch({ redis, layout }: Connection): Promise<string | null> {
  return redis.get(layout.epoch);
}

async function readApplied({ redis, layout }: Connection, source: LinkSourcePartition): Promise<number> {
  return Number((await redis.hget(layout.progress, toSourceText(source))) ?? -1);
}

const markFieldOf = (source: LinkSourcePartition) => `${toSourceText(source)}/mark`;

function createFactCalls(
  connection: Connection,
  limits: GraphLimits,
): Pick<IdentityGraph, 'apply' | 'lastApplied' | 'noteMark' | 'readMark' | 'trim'> {
  const { redis, namespace, layout } = connection;
  const applyScript = createScript(redis, 'components.lua', 'apply.lua');
  const trimScript = createScript(redis, 'trim.lua');
  const { identitiesMax, anonymousIdsMax, anonymousWindowMs } = limits;
  const limitArguments = [toKindLetters(limits.uniqueTypes), identitiesMax, anonymousIdsMax, anonymousWindowMs];

  const applyCall = async (block: FactBlock, withOthers: boolean): Promise<Applied[]> => {
    const place = [namespace, toSourceText(block), block.after, block.through];
    const { blob, environmentIds } = toFactsBlob(block.facts, withOthers);
    const args = [...place, ...limitArguments, blob, ...environmentIds];
    return fromReply((await applyScript([layout.epoch, layout.progress], args)) as Buffer);
  };

  return {
    apply: (block, onPart) => applyBlock(applyCall, block, onPart),
    async lastApplied(source) {
      const [epoch, applied] = await Promise.all([readEpoch(connection), readApplied(connection, source)]);
      if (epoch === null) throw new MissingEpochFault();
      return applied;
    },
    // Beside what is applied, and in the order of calls: a Redis that lost its last second has both or the mark alone.
    async noteMark(source, mark) {
      await redis.hset(layout.progress, markFieldOf(source), mark);
    },
    readMark: (source) => redis.hget(layout.progress, markFieldOf(source)),
    async trim(source, through, environmentIds) {
      await trimScript([], [namespace, toSourceText(source), through, ...environmentIds]);
    },
  };
}

type ApplyCall = (call: FactBlock, withOthers: boolean) => Promise<Applied[]>;

/**
 * Runs a block in calls, several on their way at once. One that stopped is finished before those behind it; every call
 * decides a fact at least.
 */
async function applyBlock(applyCall: ApplyCall, block: FactBlock, onPart?: (part: Applied[]) => void) {
  const waiting = splitBlock(block);
  const running: { call: FactBlock; reply: Promise<Applied[]> }[] = [];
  const results: Applied[] = [];
  const tell = (part: Applied[]) => {
    results.push(...part);
    onPart?.(part);
  };
  const start = (call: FactBlock) => {
    const reply = applyCall(call, false);
    reply.catch(() => {});
    running.push({ call, reply });
  };
  try {
    // Each call says what the one before it applied, so none runs where one before it failed or stopped.
    while (running.length + waiting.length > 0) {
      while (waiting.length > 0 && running.length < CALLS_IN_FLIGHT_MAX) start(waiting.shift()!);
      const { call, reply } = running[0]!;
      const part = await reply;
      running.shift();
      tell(part);
      if (part.length === call.facts.length) continue;
      await Promise.allSettled(running.map((later) => later.reply));
      waiting.unshift(...running.splice(0).map((later) => later.call));
      for (let rest = toRest(call, part.length); rest.facts.length > 0; ) {
        const decided = await applyCall(rest, true);
        tell(decided);
        rest = toRest(rest, decided.length);
      }
    }
  } finally {
    // Nothing of a block runs any more when its caller hears that it failed.
    await Promise.allSettled(running.map(({ reply }) => reply));
  }
  return results;
}

function createQuestions(connection: Connection): Pick<IdentityGraph, 'rootOf' | 'membersOf' | 'digest' | 'readEpoch'> {
  const { redis, layout } = connection;
  const readRoot = (environmentId: string, key: Buffer) => redis.hgetBuffer(layout.indexOf(environmentId, key), key);
  return {
    rootOf: readRoot,
    async membersOf(environmentId, key) {
      let root = await readRoot(environmentId, key);
      for (;;) {
        if (root === null) return [];
        const members = await readMembers(connection, environmentId, root);
        if (members.length > 0) return members;
        // The component took another root between the two questions; where it did not, there is nobody.
        const moved = await readRoot(environmentId, key);
        if (moved?.equals(root)) return [];
        root = moved;
      }
    },
    digest: (environmentId) => readDigest(connection, environmentId),
    readEpoch: () => readEpoch(connection),
  };
}

function createErasureMarks({ redis, layout }: Connection): Pick<IdentityGraph, 'fence' | 'hold' | 'release'> {
  const raiseFence = async (cutoff: Cutoff) => {
    const { environmentId, key } = cutoff;
    await redis.setbit(layout.fenceMapOf(environmentId), bucketOf(key), 1);
    await raise(redis, layout.fencesOf(environmentId, key), cutoff);
  };
  return {
    fence: async (cutoffs) => void (await Promise.all(cutoffs.map(raiseFence))),
    hold: (cutoff) => raise(redis, layout.holdsOf(cutoff.environmentId), cutoff),
    release: async (environmentId, key) => void (await redis.hdel(layout.holdsOf(environmentId), key)),
  };
}

function createRebuild(connection: Connection): Pick<IdentityGraph, 'mintEpoch' | 'load' | 'loadApplied'> {
  const { redis, namespace, layout } = connection;
  const loadScript = createScript(redis, 'load.lua');
  return {
    async mintEpoch() {
      const minted: string = randomUUID();
      return (await redis.set(layout.epoch, minted, 'NX', 'GET')) ?? minted;
    },
    async load(overrides) {
      await loadScript([layout.epoch], [namespace, ...overrides.map(toOverrideBlob)]);
    },
    async loadApplied(source, offset) {
      if ((await readEpoch(connection)) !== null) throw new EpochPresentFault();
      const known = await readApplied(connection, source);
      await redis.hset(layout.progress, toSourceText(source), Math.max(known, offset));
    },
  };
}

function toSourceText({ generation, partition }: LinkSourcePartition): string {
  return `${generation}/${partition}`;
}

/** Cuts a block for several calls; each follows the one before it. */
function splitBlock(block: FactBlock): FactBlock[] {
  const calls: FactBlock[] = [];
  let after = block.after;
  for (let start = 0; start === 0 || start < block.facts.length; start += CALL_FACTS_MAX) {
    const facts: readonly GraphFact[] = block.facts.slice(start, start + CALL_FACTS_MAX);
    const isLast = start + CALL_FACTS_MAX >= block.facts.length;
    const through = isLast ? block.through : facts.at(-1)!.offset;
    calls.push({ ...block, after, through, facts });
    after = Math.max(after, through);
  }
  return calls;
}

/** What a call that stopped after some facts has left. */
function toRest(call: FactBlock, decided: number): FactBlock {
  const after = decided === 0 ? call.after : Math.max(call.after, call.facts[decided - 1]!.offset);
  return { ...call, after, facts: call.facts.slice(decided) };
}

/** Sets a cut-off unless a later one stands. */
async function raise(redis: Redis, name: string, { key, cutoffMs }: Cutoff): Promise<void> {
  const known = Number((await redis.hget(name, key)) ?? 0);
  if (cutoffMs > known) await redis.hset(name, key, cutoffMs);
}

async function readMembers({ redis, layout }: Connection, environmentId: string, root: Buffer): Promise<Member[]> {
  const component = (await redis.callBuffer('GET', layout.membersOf(environmentId, root))) as Buffer | null;
  return component === null ? [] : fromComponent(component);
}

/** Walks every bucket: for a rebuild's proof and for tests, not for traffic. */
async function readDigest(connection: Connection, environmentId: string): Promise<string> {
  const { redis, layout } = connection;
  const roots = new Map<string, string>();
  for await (const names of redis.scanStream({ match: layout.indexPattern(environmentId), count: 1_000 }))
    for (const name of names as string[]) {
      const flat = (await redis.callBuffer('HGETALL', name)) as Buffer[];
      for (let at = 0; at < flat.length; at += 2) roots.set(flat[at]!.toString('hex'), flat[at + 1]!.toString('hex'));
    }
  const lines: string[] = [];
  for (const root of new Set(roots.values())) {
    const members = await readMembers(connection, environmentId, Buffer.from(root, 'hex'));
    for (const { key, kind, linkedAt } of members) {
      const hex = key.toString('hex');
      // Root as the index has it: an index that disagrees with the members shows.
      lines.push(`${hex} ${roots.get(hex)} ${kind} ${linkedAt}\n`);
    }
  }
  return createHash('sha256').update(lines.sort().join('')).digest('hex');
}
