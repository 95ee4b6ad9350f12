import { expect, it } from 'vitest';
import type { LoggedSuspect } from './graph.ts';
import { EpochPresentFault } from './people.ts';
import { rebuildGraph, type VersionedOverride } from './rebuild.ts';
import { openMemoryPeople } from './test/memory/index.ts';

const keyOf = (text: string) => Buffer.alloc(16, text);
const row = (key: string, root: string, parts: Partial<VersionedOverride> = {}): VersionedOverride => ({
  environmentId: 'test',
  kind: 'anonymous',
  linkedAt: 1_000,
  version: 1n,
  key: keyOf(key),
  root: keyOf(root),
  ...parts,
});
const EMPTY_SOURCES = { fences: [], later: [], stored: [], unlinks: [], decided: [], applied: [] };

it('a rebuild restores the latest root of each identity from rows in any order', async () => {
  const people = openMemoryPeople();
  const stored = [row('b', 'b', { version: 3n }), row('c', 'b', { version: 3n }), row('d', 'a', { version: 9n })];
  const later = [row('c', 'a', { version: 5n }), row('b', 'a', { version: 5n }), row('a', 'a', { version: 5n })];
  const copies = [row('b', 'b', { version: 3n }), row('d', 'c', { version: 2n })];
  const rebuilt = await rebuildGraph(people, { ...EMPTY_SOURCES, stored, later: [...later, ...copies] });
  expect(rebuilt).toEqual({ fromTable: 1, fromLog: 3, erased: 0, unlinkSides: 0 });
  const members = await people.graph.membersOf('test', keyOf('d'));
  expect(members.map(({ key }) => key)).toEqual(['a', 'b', 'c', 'd'].map(keyOf));
});

it('a rebuild skips links up to a cut-off', async () => {
  const people = openMemoryPeople();
  const fences = ['a', 'b'].map((key) => ({ environmentId: 'test', key: keyOf(key), cutoffMs: 1_000 }));
  const stored = [row('a', 'a'), row('b', 'a'), row('c', 'c')];
  const later = [row('b', 'b', { version: 2n, linkedAt: 1_001 })];
  expect(await rebuildGraph(people, { ...EMPTY_SOURCES, fences, stored, later })).toEqual({
    fromTable: 1,
    fromLog: 1,
    erased: 1,
    unlinkSides: 0,
  });
  expect(await people.graph.rootOf('test', keyOf('a'))).toBeNull();
  expect(await people.graph.rootOf('test', keyOf('b'))).toEqual(keyOf('b'));
});

it('a rebuild skips held ids of erased people but keeps rulings', async () => {
  const people = openMemoryPeople();
  const fences = ['a', 'b', 'c'].map((key) => ({ environmentId: 'test', key: keyOf(key), cutoffMs: 1_000 }));
  const suspectOf = (key: string, state: LoggedSuspect['state']): LoggedSuspect => {
    return { environmentId: 'test', key: keyOf(key), state, since: 1_000, generation: 0, offset: 0 };
  };
  const suspects = [suspectOf('a', 'held'), suspectOf('b', 'blocked'), suspectOf('c', 'allowed')];
  await rebuildGraph(people, { ...EMPTY_SOURCES, fences, suspects });
  await people.rebuild.mintEpoch();
  const states = (await people.graph.suspects('test')).map(({ state }) => state);
  expect(states).toEqual(['blocked', 'allowed']);
});

it('a rebuild fails if the store has an epoch', async () => {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  await expect(rebuildGraph(people, { ...EMPTY_SOURCES, stored: [row('a', 'a')] })).rejects.toThrow(EpochPresentFault);
});
