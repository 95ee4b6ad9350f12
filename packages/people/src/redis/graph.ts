import type { Redis } from '@playline/stores/redis';
import {
  type Applied,
  type FactBlock,
  type GraphLimits,
  type GraphNote,
  type IdentityGraph,
  type LinkSourcePartition,
  type Member,
  SUSPECTS_MAX,
  type Suspect,
} from '../graph.ts';
import type { LoggedFact } from '../identities/decisions.ts';
import { MissingEpochFault } from '../people.ts';
import type { Layout } from './layout.ts';
import { createScript } from './scripts.ts';
import { fromComponent, fromReply, fromSuspect, toFactsBlob, toKindCodes } from './wire.ts';

/** A call blocks Redis: about 15 µs per fact, up to a millisecond for a fact that moves many identities. */
const CALL_FACTS_MAX = 128;

/** Keeps Redis busy without queueing calls long enough to time out. */
const CALLS_IN_FLIGHT_MAX = 4;

/** Blocks Redis for about two milliseconds. */
const FORGOTTEN_PER_CALL_MAX = 1_000;

export interface GraphParts {
  readonly redis: Redis;
  readonly layout: Layout;
  readEpoch(): Promise<string | null>;
}

export function createGraph(parts: GraphParts, limits: GraphLimits): IdentityGraph {
  const { redis, layout } = parts;
  const forgetIdentities = createScript(redis, 'forgetIdentities');
  return {
    ...createFactCalls(parts, limits),
    ...createGraphQueries(parts),
    async forget({ environmentId, erasureId }, identityKeys) {
      let forgotten = 0;
      for (let at = 0; at < identityKeys.length; at += FORGOTTEN_PER_CALL_MAX) {
        const batch = identityKeys.slice(at, at + FORGOTTEN_PER_CALL_MAX);
        const args = [layout.namespace, layout.scopeOf(environmentId), erasureId, ...batch];
        const keys = [layout.epoch, layout.leasesOf(environmentId), ...layout.absent];
        forgotten += Number(await forgetIdentities(keys, args));
      }
      return forgotten;
    },
  };
}

/** Last applied offset of a partition, or -1. Does not require an epoch. */
export async function readApplied(
  { redis, layout }: Pick<GraphParts, 'redis' | 'layout'>,
  source: LinkSourcePartition,
): Promise<number> {
  return Number((await redis.hget(layout.progress, toSourceText(source))) ?? -1);
}

export const noteFieldOf = (source: LinkSourcePartition) => `${toSourceText(source)}/note`;

function createFactCalls(
  parts: GraphParts,
  limits: GraphLimits,
): Pick<IdentityGraph, 'apply' | 'lastApplied' | 'note' | 'readNote' | 'trim'> {
  const { redis, layout } = parts;
  const applyFacts = createScript(redis, 'applyFacts');
  const trimOutbox = createScript(redis, 'trimOutbox');
  const { identitiesMax, anonymousIdsMax, anonymousWindowMs, suspectLimit } = limits;
  const personLimits = [toKindCodes(limits.uniqueTypes), identitiesMax, anonymousIdsMax, anonymousWindowMs];
  const suspectLimits = [suspectLimit?.anonymousIdsMax ?? 'inf', suspectLimit?.windowMs ?? 0, SUSPECTS_MAX];
  const limitArguments = [...personLimits, ...suspectLimits];

  const applyCall = async (block: FactBlock, withOtherKeys: boolean): Promise<Applied[]> => {
    const position = [layout.namespace, toSourceText(block), block.after, block.through];
    const { blob, environmentIds } = toFactsBlob(block.facts, withOtherKeys);
    const args = [...position, ...limitArguments, blob, ...environmentIds.map(layout.scopeOf)];
    const keys = [layout.epoch, layout.progress, layout.fencedRun, ...layout.absent];
    return fromReply((await applyFacts(keys, args)) as Buffer);
  };

  return {
    apply: (block, onPart) => applyBlock(applyCall, block, onPart),
    async lastApplied(source) {
      const [epoch, applied] = await Promise.all([parts.readEpoch(), readApplied(parts, source)]);
      if (epoch === null) throw new MissingEpochFault();
      return applied;
    },
    // In the same hash as the applied offsets and written first, so an offset that survives a data loss has a note.
    async note(source, note) {
      await redis.hset(layout.progress, noteFieldOf(source), JSON.stringify(note));
    },
    async readNote(source) {
      const note = await redis.hget(layout.progress, noteFieldOf(source));
      return note === null ? null : (JSON.parse(note) as GraphNote);
    },
    async trim(source, through, environmentIds) {
      const scopes = Array.from(environmentIds, layout.scopeOf);
      await trimOutbox(
        [layout.progress, ...layout.absent],
        [layout.namespace, toSourceText(source), through, ...scopes],
      );
    },
  };
}

type ApplyCall = (call: FactBlock, withOtherKeys: boolean) => Promise<Applied[]>;

/** Applies a block in pipelined calls. If a call stops early, its remaining facts are sent before later calls. */
async function applyBlock(applyCall: ApplyCall, block: FactBlock, onPart?: (part: Applied[]) => void) {
  const queued = splitBlock(block);
  const running: { call: FactBlock; reply: Promise<Applied[]> }[] = [];
  const results: Applied[] = [];
  const report = (part: Applied[]) => {
    for (const each of part) results.push(each);
    onPart?.(part);
  };
  const start = (call: FactBlock) => {
    const reply = applyCall(call, false);
    reply.catch(() => {});
    running.push({ call, reply });
  };
  try {
    // Each call sends the preceding offset, so Redis refuses the call if the previous call failed or stopped early.
    while (running.length + queued.length > 0) {
      while (queued.length > 0 && running.length < CALLS_IN_FLIGHT_MAX) start(queued.shift()!);
      const { call, reply } = running[0]!;
      const part = await reply;
      running.shift();
      report(part);
      if (part.length === call.facts.length) continue;
      await Promise.allSettled(running.map((later) => later.reply));
      for (const later of running.splice(0).reverse()) queued.unshift(later.call);
      for (let rest = toRest(call, part.length); rest.facts.length > 0; ) {
        const decided = await applyCall(rest, true);
        report(decided);
        rest = toRest(rest, decided.length);
      }
    }
  } finally {
    // All calls must have finished before the fault propagates.
    await Promise.allSettled(running.map(({ reply }) => reply));
  }
  return results;
}

function createGraphQueries(parts: GraphParts): Pick<IdentityGraph, 'rootOf' | 'rootsOf' | 'membersOf' | 'suspects'> {
  const { redis, layout } = parts;
  const readRoot = (environmentId: string, key: Buffer) => redis.hgetBuffer(layout.indexOf(environmentId, key), key);
  return {
    rootOf: readRoot,
    async suspects(environmentId) {
      const flat = (await redis.callBuffer('HGETALL', layout.suspectsOf(environmentId))) as Buffer[];
      if ((await parts.readEpoch()) === null) throw new MissingEpochFault();
      const suspects: Suspect[] = [];
      for (let at = 0; at < flat.length; at += 2) suspects.push(fromSuspect(environmentId, flat[at]!, flat[at + 1]!));
      return suspects.sort((a, b) => Buffer.compare(a.key, b.key));
    },
    rootsOf: (environmentId, keys) => Promise.all(keys.map((key) => readRoot(environmentId, key))),
    async membersOf(environmentId, key) {
      let root = await readRoot(environmentId, key);
      for (;;) {
        if (root === null) return [];
        const members = await readMembers(parts, environmentId, root);
        if (members.length > 0) return members;
        // The root may have changed between the two reads.
        const moved = await readRoot(environmentId, key);
        if (moved?.equals(root)) return [];
        root = moved;
      }
    },
  };
}

export function toSourceText({ generation, partition }: LinkSourcePartition): string {
  return `${generation}/${partition}`;
}

function splitBlock(block: FactBlock): FactBlock[] {
  const calls: FactBlock[] = [];
  let after = block.after;
  for (let start = 0; start === 0 || start < block.facts.length; start += CALL_FACTS_MAX) {
    const facts: readonly LoggedFact[] = block.facts.slice(start, start + CALL_FACTS_MAX);
    const isLast = start + CALL_FACTS_MAX >= block.facts.length;
    const through = isLast ? block.through : facts.at(-1)!.offset;
    calls.push({ ...block, after, through, facts });
    after = Math.max(after, through);
  }
  return calls;
}

function toRest(call: FactBlock, decided: number): FactBlock {
  const after = decided === 0 ? call.after : Math.max(call.after, call.facts[decided - 1]!.offset);
  return { ...call, after, facts: call.facts.slice(decided) };
}

/** Members of the component that has this root, sorted by key. */
export async function readMembers(
  { redis, layout }: Pick<GraphParts, 'redis' | 'layout'>,
  environmentId: string,
  root: Buffer,
): Promise<Member[]> {
  const component = (await redis.callBuffer('GET', layout.componentOf(environmentId, root))) as Buffer | null;
  return component === null ? [] : fromComponent(component);
}
