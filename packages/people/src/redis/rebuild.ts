import { createHash, randomUUID } from 'node:crypto';
import { IDENTITY_KEY_BYTES } from '@playline/contracts';
import { EpochPresentFault } from '../faults.ts';
import type { UnlinkSide } from '../graph.ts';
import { type LinkedIdentity, type PeopleRebuild, toUnlinkSideLine } from '../rebuild.ts';
import { type GraphParts, noteFieldOf, readApplied, readMembers, toSourceText } from './graph.ts';
import { createScript } from './scripts.ts';
import { fromSides, toDecidedBlob, toOverrideBlob, toSuspectBlob, toUnlinkSideBlob } from './wire.ts';

/** The rebuild without the consents. */
export function createRebuild(parts: GraphParts): Omit<PeopleRebuild, 'loadConsents'> {
  const { redis, layout } = parts;
  const mintEpoch = createScript(redis, 'mintEpoch');
  const loadOverrides = createScript(redis, 'loadOverrides');
  const loadUnlinkSides = createScript(redis, 'loadUnlinkSides');
  const loadDecided = createScript(redis, 'loadDecided');
  const loadSuspects = createScript(redis, 'loadSuspects');
  return {
    mintEpoch: async (run = '') => String(await mintEpoch([layout.epoch, layout.fencedRun], [randomUUID(), run])),
    async loadOverrides(overrides) {
      await loadOverrides([layout.epoch], [layout.namespace, ...overrides.map(toOverrideBlob)]);
    },
    async loadUnlinkSides(sides) {
      await loadUnlinkSides([layout.epoch], [layout.namespace, ...sides.map(toUnlinkSideBlob)]);
    },
    async loadSuspects(suspects) {
      await loadSuspects([layout.epoch], [layout.namespace, ...suspects.map(toSuspectBlob)]);
    },
    async loadDecided(places) {
      await loadDecided([layout.epoch], [layout.namespace, ...places.map(toDecidedBlob)]);
    },
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

/** Reads every bucket of every environment. */
async function* readIdentities({ redis, layout }: GraphParts): AsyncGenerator<LinkedIdentity> {
  const pattern = layout.indexPattern('*');
  const prefix = pattern.indexOf('*');
  for await (const names of redis.scanStream({ match: pattern, count: 1_000 }))
    for (const name of names as string[]) {
      const environmentId = name.slice(prefix, name.lastIndexOf('}'));
      const flat = (await redis.callBuffer('HGETALL', name)) as Buffer[];
      for (let at = 0; at < flat.length; at += 2) yield { environmentId, key: flat[at]!, root: flat[at + 1]! };
    }
}

/** Reads every bucket. For rebuilds and tests, too slow for traffic. */
async function readDigest(parts: GraphParts, environmentId: string): Promise<string> {
  const { redis, layout } = parts;
  const roots = new Map<string, string>();
  for await (const names of redis.scanStream({ match: layout.indexPattern(environmentId), count: 1_000 }))
    for (const name of names as string[]) {
      const flat = (await redis.callBuffer('HGETALL', name)) as Buffer[];
      for (let at = 0; at < flat.length; at += 2) roots.set(flat[at]!.toString('hex'), flat[at + 1]!.toString('hex'));
    }
  const lines: string[] = [];
  for (const root of new Set(roots.values())) {
    const members = await readMembers(parts, environmentId, Buffer.from(root, 'hex'));
    for (const { key, kind, linkedAt } of members) {
      const hex = key.toString('hex');
      // Uses the root from the index, so that a mismatch with the members changes the digest.
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
