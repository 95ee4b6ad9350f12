import { toTimestamp } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createDifferences, describeDifferences } from '../report.ts';
import { createRun, toMessageId } from '../run.ts';
import type { MadeActivity } from './activities.ts';
import { CHAIN } from './faulty-chain.ts';
import { type ChainDifferenceKind, createLedger, createReplica } from './replica.ts';

const run = createRun(1, 0);
const idOf = (sequence: number) => toMessageId(run, sequence);

function madeOf(sequence: number, amount: number): MadeActivity {
  return {
    id: idOf(sequence),
    chain: CHAIN.name,
    type: 'mint',
    indexed_at: toTimestamp(0),
    blockchain_metadata: null,
    details: { to: '0x1', amount: String(amount), asset: { contract_type: 'ERC20', contract_address: '0x2' } },
  };
}
const shownOf = (sequence: number, amount: number, step: number) => ({
  ...madeOf(sequence, amount),
  chain: CHAIN,
  updated_at: toTimestamp(1_000_000 + step),
});

function openReplica() {
  const [ledger, differences] = [createLedger(), createDifferences<ChainDifferenceKind>()];
  const served: number[] = [];
  for (const [sequence, amount] of [
    [0, 1],
    [1, 1],
    [1, 2],
  ] as const)
    ledger.acknowledge(sequence, ledger.publish(sequence, madeOf(sequence, amount)), 10);
  const replica = createReplica({ run, chain: CHAIN, ledger, differences, onServed: (ms) => void served.push(ms) });
  return { ledger, replica, served, differences, found: () => differences.byKind() };
}

it('a replica of a simulated chain accepts every version, or only the last one, in order', () => {
  for (const shown of [
    [shownOf(0, 1, 1), shownOf(1, 1, 2), shownOf(1, 2, 3)],
    [shownOf(1, 2, 3), shownOf(0, 1, 4)],
  ]) {
    const { replica, ledger, served, found } = openReplica();
    expect(ledger.pending).toBe(2);
    for (const activity of shown) replica.apply(activity, 15);
    expect(found()).toEqual([]);
    expect(ledger.pending).toBe(0);
    expect(served).toEqual(shown.map(() => 5));
  }
});

it('a replica of a simulated chain waits for the last acknowledged version', () => {
  const { replica, ledger } = openReplica();
  replica.apply(shownOf(0, 1, 1), 15);
  replica.apply(shownOf(1, 1, 2), 15);
  expect(ledger.pending).toBe(1);
});

it.each<[string, ReturnType<typeof shownOf>[], ChainDifferenceKind, string]>([
  ['a member that differs', [shownOf(0, 7, 1)], 'member', `${idOf(0)} details.amount: "7" instead of "1"`],
  ['an id that was never sent', [shownOf(5, 1, 1)], 'uninvited', idOf(5)],
  ['a position that is served twice', [shownOf(0, 1, 1), shownOf(0, 1, 1)], 'doubled', idOf(0)],
  ['a version that is served again at another position', [shownOf(0, 1, 1), shownOf(0, 1, 2)], 'doubled', 'version 1'],
  ['a position after a later one', [shownOf(0, 1, 2), shownOf(1, 2, 1)], 'order', idOf(1)],
  ['an earlier version after a later one', [shownOf(1, 2, 1), shownOf(1, 1, 2)], 'order', 'version 1'],
  ['an invalid time', [shownOf(0, 1, 1), { ...shownOf(1, 2, 2), updated_at: 'now' }], 'order', idOf(1)],
])('a replica of a simulated chain reports %s', (_what, shown, kind, text) => {
  const { replica, found } = openReplica();
  for (const activity of shown) replica.apply(activity, 15);
  expect(found()).toHaveLength(1);
  expect(found()[0]).toMatchObject({ kind, count: 1 });
  expect(found()[0]!.first[0]).toContain(text);
});

it('a replica of a simulated chain accepts a version twice after an unknown result', () => {
  const { replica, ledger, found } = openReplica();
  ledger.repeat(0);
  replica.apply(shownOf(0, 1, 1), 15);
  replica.apply(shownOf(0, 1, 2), 15);
  expect(found()).toEqual([]);
});

it('a replica of a simulated chain counts activities of other sources and ignores them', () => {
  const { replica, found } = openReplica();
  replica.apply({ ...shownOf(0, 9, 1), id: '00000000-0000-4000-8000-000000000001' }, 15);
  expect(replica.strangers).toBe(1);
  expect(found()).toEqual([]);
});

it('the differences between two values are empty for the same value, and only for that', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(describeDifferences(value, structuredClone(value))).toEqual([]);
    }),
  );
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      // JSON cannot represent minus zero.
      const [first, second] = [JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other))];
      const isSame = JSON.stringify(sorted(first)) === JSON.stringify(sorted(second));
      expect(describeDifferences(first, second).length === 0).toBe(isSame);
    }),
  );
});

it('the differences between two values have the path of the member, even when it is missing or unexpected', () => {
  expect(describeDifferences({ a: { b: [1, 2] }, c: null }, { a: { b: [1, 3] }, d: 1 })).toEqual([
    'a.b.1: 3 instead of 2',
    'c: nothing instead of null',
    'd: 1 instead of nothing',
  ]);
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return {
    members: Object.entries(value)
      .map(([name, member]) => [name, sorted(member)])
      .toSorted(),
  };
}
