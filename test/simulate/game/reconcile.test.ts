import { expect, it } from 'vitest';
import { createLedger, type Outcome } from '../run.ts';
import { createPersonTracker, type Identity, identityKeyOf } from './persons.ts';
import type { GameDifferenceKind } from './sender.ts';
import { type EventReader, type StoredOwner, settle } from './simulation.ts';

const [ada, ben]: Identity[] = [
  { kind: 'anonymous', id: 'ada' },
  { kind: 'anonymous', id: 'ben' },
];
const toOwner = ({ kind, id }: Identity, ...persons: string[]): StoredOwner => ({ kind, id, persons });

const createStore = (rows: readonly number[], owners: readonly StoredOwner[]): EventReader => ({
  counts: async () => ({ raw: rows.length + 1, distinct: new Set(rows).size }),
  eachSequence: async (each) => {
    for (const sequence of rows) each(sequence);
  },
  owners: async () => [...owners],
});

const OUTCOMES: readonly Outcome[] = ['accepted', 'accepted', 'rejected', 'unknown'];
const ROWS = [0, 1];
const OWNERS = [toOwner(ada!, 'aa'), toOwner(ben!, 'bb')];

/** Compares a store with a run: two accepted messages from two people, one rejected and one unacknowledged message. */
async function compare({ rows = ROWS, owners = OWNERS, isUncertain = false } = {}) {
  const [ledger, people] = [createLedger(), createPersonTracker()];
  for (const outcome of OUTCOMES) ledger.set(ledger.take(), outcome);
  for (const [household, owner] of [ada!, ben!].entries()) people.accept(household, { owner, fact: null });
  if (isUncertain) people.markUncertain(1);
  const run = { seed: 1, tag: '0a1b2c3d4e5f', startedAtMs: 0 };
  const reader = createStore(rows, owners);
  const options = { accepted: 2, idleMaxMs: 5, pollMs: 1 };
  const { result, differences } = await settle({ reader, run, ledger, people }, options);
  return { result, kinds: differences.byKind().map(({ kind }) => kind) };
}

it('settle finds no differences in a correct store', async () => {
  const { result, kinds } = await compare();
  expect(kinds).toEqual([]);
  expect(result).toEqual({ raw: 3, exact: 2, unknownStored: 0, persons: { model: 2, stored: 2 } });
});

it('settle accepts a stored message that was not acknowledged, and ignores the persons in its household', async () => {
  const owners = [OWNERS[0]!, toOwner(ben!, 'aa')];
  const { result, kinds } = await compare({ rows: [...ROWS, 3], owners, isUncertain: true });
  expect([kinds, result.unknownStored]).toEqual([[], 1]);
});

it.each<[string, { rows?: number[]; owners?: StoredOwner[] }, GameDifferenceKind]>([
  ['a lost message', { rows: [0] }, 'missing'],
  ['a message with two rows', { rows: [0, 1, 1] }, 'doubled'],
  ['a stored message that was rejected', { rows: [0, 1, 2] }, 'uninvited'],
  ['a stored message that was never sent', { rows: [0, 1, 9] }, 'uninvited'],
  ['two people stored as one person', { owners: [OWNERS[0]!, toOwner(ben!, 'aa')] }, 'person'],
  ['an owner with two persons', { owners: [OWNERS[0]!, toOwner(ben!, 'bb', 'cc')] }, 'person'],
  ['an owner that was never accepted', { owners: [...OWNERS, toOwner({ kind: 'steam', id: '7' }, 'dd')] }, 'person'],
  ['an owner without events', { owners: [OWNERS[0]!] }, 'person'],
])('settle reports %s', async (_name, store, kind) => {
  expect((await compare(store)).kinds).toEqual([kind]);
});

it('settle reports one person stored as two persons', async () => {
  const [ledger, people] = [createLedger(), createPersonTracker()];
  const fact = { link: 'identify', from: ada!, to: { kind: 'passport', id: 'x' } } as const;
  people.accept(0, { owner: ada!, fact });
  people.accept(0, { owner: fact.to, fact: null });
  const reader = createStore([], [toOwner(ada!, 'aa'), toOwner(fact.to, 'bb')]);
  const compared = { reader, run: { seed: 1, tag: '0a1b2c3d4e5f', startedAtMs: 0 }, ledger, people };
  const { differences } = await settle(compared, { accepted: 0, idleMaxMs: 5, pollMs: 1 });
  expect(differences.byKind()[0]?.first[0]).toContain(`should be one person with ${identityKeyOf(ada!)}`);
});
