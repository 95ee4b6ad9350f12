import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { LoggedConsent } from './consents.ts';
import type { Suspect } from './graph.ts';
import type { GraphFact } from './identities/steps.ts';
import type { People } from './people.ts';
import { MissingFencesFault, RestartedFault } from './people.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { openTestPeople } from './test/test-people.ts';

const T = Date.UTC(2026, 5, 15);
const SOURCE = { generation: 0, partition: 0 };

interface Harness {
  readonly people: People;
  /** Simulates a store restart, after which fences may be missing. */
  restart(): Promise<void>;
}

const testPeople = openTestPeople();
afterAll(testPeople.close);

async function openRedis(): Promise<Harness> {
  const { people, namespace } = await testPeople.open();
  await people.rebuild.mintEpoch();
  const restart = async () => void (await testPeople.redis.set(`${namespace}f:complete`, 'the previous run'));
  return { people, restart };
}

async function openMemory(): Promise<Harness> {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  return { people, restart: async () => people.restart() };
}

describe.each([
  ['memory', openMemory],
  ['redis', openRedis],
])('fences in %s', (_name, open) => {
  async function openPeople() {
    const harness = await open();
    const { people } = harness;
    const environmentId = `test-${randomUUID()}`;
    let offset = 0;
    const link = async (aKey: Buffer, bKey: Buffer, receivedAt: number) => {
      const step = {
        link: 'alias',
        aKind: 'custom',
        bKind: 'custom',
        blocked: false,
        otherKeys: [],
        aKey,
        bKey,
      } as const;
      const fact = { environmentId, offset, receivedAt, eventTime: receivedAt, steps: [step] } as unknown as GraphFact;
      await people.graph.apply({ ...SOURCE, after: offset - 1, through: offset, facts: [fact] });
      offset++;
    };
    const consentOf = (identityKey: Buffer, receivedAt: number): LoggedConsent => {
      return {
        environmentId,
        identityKey,
        status: 'full',
        receivedAt,
        position: { partition: 0, offset: 1, loggedAtMs: T + 9 },
      };
    };
    const membersOf = async (key: Buffer) =>
      (await people.graph.membersOf(environmentId, key)).map((member) => member.key.toString('hex'));
    return { ...harness, environmentId, link, consentOf, membersOf };
  }

  it('enforcing fences removes only links and consents up to the cut-off', async () => {
    const { people, environmentId, link, consentOf, membersOf } = await openPeople();
    const [erased, friend, stranger, returned, later] = Array.from({ length: 5 }, () => randomBytes(16));
    await link(erased!, friend!, T);
    await link(erased!, stranger!, T);
    await link(returned!, later!, T + 1);
    for (const key of [erased!, friend!]) await people.consents.apply(consentOf(key, T));
    await people.consents.apply(consentOf(returned!, T + 1));
    const cutoffs = [erased!, returned!].map((key) => ({ environmentId, key, cutoffMs: T }));
    expect(await people.guards.enforce(cutoffs)).toEqual({ links: 1, consents: 1 });
    expect(await people.guards.enforce(cutoffs)).toEqual({ links: 0, consents: 0 });
    expect(await membersOf(erased!)).toEqual([]);
    expect(await membersOf(friend!)).toEqual([friend!, stranger!].map((key) => key.toString('hex')).sort());
    expect(await membersOf(returned!)).toEqual([returned!, later!].map((key) => key.toString('hex')).sort());
    const stored = await people.consents.readStored(environmentId, [erased!, friend!, returned!]);
    expect(stored.map(({ identityKey }) => identityKey)).toEqual([friend, returned]);
    await link(erased!, friend!, T);
    expect(await membersOf(erased!)).toEqual([]);
    expect(await people.consents.apply(consentOf(erased!, T))).toBe('fenced');
  });

  it('enforcing fences removes held suspects and unlink sides up to the cut-off, but keeps rulings', async () => {
    const { people } = _name === 'redis' ? await testPeople.open() : { people: openMemoryPeople() };
    const environmentId = `test-${randomUUID()}`;
    const [erased, returned, blocked] = [randomBytes(16), randomBytes(16), randomBytes(16)];
    const suspectOf = (key: Buffer, since: number, state: Suspect['state'] = 'held') => {
      return { environmentId, key, state, since, generation: 0, offset: 0 };
    };
    const suspects = [suspectOf(erased, T), suspectOf(returned, T + 1), suspectOf(blocked, T, 'blocked')];
    await people.rebuild.loadSuspects(suspects);
    const sideOf = (key: Buffer, unlinkedAt: number) =>
      ({ environmentId, key, side: 'none', generation: 0, offset: unlinkedAt - T, unlinkedAt }) as const;
    await people.rebuild.loadUnlinkSides([sideOf(erased, T), sideOf(returned, T), sideOf(returned, T + 1)]);
    await people.rebuild.mintEpoch();
    const cutoffs = [erased, returned, blocked].map((key) => ({ environmentId, key, cutoffMs: T }));
    await people.guards.enforce(cutoffs);
    const known = await people.graph.suspects(environmentId);
    expect(known.map(({ key }) => key)).toEqual([returned, blocked].sort(Buffer.compare));
    const kept = _name === 'redis' ? (await testPeople.open()).people : openMemoryPeople();
    await kept.rebuild.loadUnlinkSides([sideOf(returned, T + 1)]);
    expect(await people.rebuild.digest(environmentId)).toBe(await kept.rebuild.digest(environmentId));
  });

  it('after a restart, links cannot be applied and consents cannot be read until the fences are complete', async () => {
    const { people, environmentId, link, consentOf, restart } = await openPeople();
    const [first, second] = [randomBytes(16), randomBytes(16)];
    expect(await people.ready()).toBe(true);
    await restart();
    expect(await people.ready()).toBe(false);
    await expect(link(first, second, T)).rejects.toThrow(MissingFencesFault);
    await expect(people.consents.read(environmentId, first)).rejects.toThrow(MissingFencesFault);
    // Consent changes are still accepted. Enforcing the fences later removes changes up to a cut-off.
    expect(await people.consents.apply(consentOf(first, T))).toBe('applied');
    const { run, isComplete } = await people.guards.fenceStatus();
    expect(isComplete).toBe(false);
    expect(await people.guards.completeFences('an earlier run')).toBe(false);
    expect(await people.guards.completeFences(run)).toBe(true);
    expect(await people.ready()).toBe(true);
    await link(first, second, T);
  });

  it('creating an epoch marks the fences as complete unless Redis restarted while they were loaded', async () => {
    const { people } = await open();
    const epoch = await people.readEpoch();
    expect(await people.rebuild.mintEpoch('an earlier run')).toBe(epoch);
    const empty = _name === 'redis' ? (await testPeople.open()).people : openMemoryPeople();
    await expect(empty.rebuild.mintEpoch('an earlier run')).rejects.toThrow(RestartedFault);
    expect(await empty.readEpoch()).toBeNull();
    await empty.rebuild.mintEpoch((await empty.guards.fenceStatus()).run);
    expect((await empty.guards.fenceStatus()).isComplete).toBe(true);
  });
});
