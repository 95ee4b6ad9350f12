import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toTimestamp } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import type { ReadHistory } from '../../../services/operator/src/replicate/history.ts';
import { createDifferences, describeDifferences } from '../report.ts';
import { createRun, toMessageId } from '../run.ts';
import type { GeneratedActivity } from './generator.ts';
import { checkTokens, createPublish, createSent, type GeneratedToken } from './import.ts';
import {
  type ChainDifferenceKind,
  checkServed,
  createLedger,
  createReplica,
  walkBackwards,
  walkFiltered,
} from './replica.ts';

const CHAIN = { name: 'test-chain', id: 'eip155:31337' };
const run = createRun(1, 0);
const idOf = (sequence: number) => toMessageId(run, sequence);

function activityOf(sequence: number, amount: number): GeneratedActivity {
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
  ...activityOf(sequence, amount),
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
    ledger.acknowledge(sequence, ledger.publish(sequence, activityOf(sequence, amount)), 10);
  const replica = createReplica({ run, chain: CHAIN, ledger, differences, onServed: (ms) => void served.push(ms) });
  return { ledger, replica, served, differences, found: () => differences.byKind() };
}

it('the replica accepts either all versions in order or only the last version', () => {
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

it('an activity stays pending until its last acknowledged version is served', () => {
  const { replica, ledger } = openReplica();
  replica.apply(shownOf(0, 1, 1), 15);
  replica.apply(shownOf(1, 1, 2), 15);
  expect(ledger.pending).toBe(1);
});

it.each<[string, ReturnType<typeof shownOf>[], ChainDifferenceKind, string]>([
  ['a different field', [shownOf(0, 7, 1)], 'member', `${idOf(0)} details.amount: "7" instead of "1"`],
  ['an id that was never sent', [shownOf(5, 1, 1)], 'uninvited', idOf(5)],
  ['a position served twice', [shownOf(0, 1, 1), shownOf(0, 1, 1)], 'doubled', idOf(0)],
  ['a version served at two positions', [shownOf(0, 1, 1), shownOf(0, 1, 2)], 'doubled', 'version 1'],
  ['a position served after a later one', [shownOf(0, 1, 2), shownOf(1, 2, 1)], 'order', idOf(1)],
  ['an earlier version served after a later one', [shownOf(1, 2, 1), shownOf(1, 1, 2)], 'order', 'version 1'],
  ['an invalid time', [shownOf(0, 1, 1), { ...shownOf(1, 2, 2), updated_at: 'now' }], 'order', idOf(1)],
])('the replica reports %s', (_what, shown, kind, text) => {
  const { replica, found } = openReplica();
  for (const activity of shown) replica.apply(activity, 15);
  expect(found()).toHaveLength(1);
  expect(found()[0]).toMatchObject({ kind, count: 1 });
  expect(found()[0]!.first[0]).toContain(text);
});

it('checkServed reports activities that are not served, or not in their last version', () => {
  const { replica, ledger, differences, found } = openReplica();
  replica.apply(shownOf(1, 1, 2), 15);
  checkServed(ledger, differences);
  const first = [`${idOf(0)} is not served`, `${idOf(1)} is served in version 1 of 2`];
  expect(found()).toEqual([{ kind: 'missing', count: 2, first }]);
});

/** Creates a history with two activities per page. A cursor is the number of preceding activities. */
function readOf(shown: readonly ReturnType<typeof shownOf>[], isBackwards: boolean): ReadHistory {
  return async (cursor) => {
    const position = Number(cursor ?? 0);
    const [from, to] = isBackwards
      ? [Math.max(0, position - 2), position]
      : [position, Math.min(shown.length, position + 2)];
    return { activities: shown.slice(from, to), previousCursor: String(from), nextCursor: String(to) };
  };
}

it.each<[string, number[], ChainDifferenceKind | null, string]>([
  ['nothing if the reads agree', [0, 1], null, ''],
  ['a missing activity', [1], 'filter', `${idOf(0)} is missing`],
  ['an activity that does not match the filter', [0, 1, 2], 'filter', `${idOf(2)} is unexpected`],
  ['an activity at another position', [0, 3], 'filter', `${idOf(1)} is at`],
  ['nothing if the backward read agrees', [0, 1, 2], null, ''],
  ['an activity missing in a backward read', [0, 2], 'backwards', `${idOf(1)} is missing`],
])('reading the history reports %s: %j', async (_what, indexes, kind, text) => {
  const { ledger, replica, differences, found } = openReplica();
  ledger.acknowledge(2, ledger.publish(2, { ...activityOf(2, 1), type: 'burn' }), 10);
  const all = [shownOf(0, 1, 1), shownOf(1, 2, 2), { ...shownOf(2, 1, 3), type: 'burn' as const }, shownOf(1, 2, 4)];
  for (const activity of all.slice(0, 3)) replica.apply(activity, 15);
  const [model, stop] = [{ run, ledger, differences }, new AbortController().signal];
  const shown = indexes.map((index) => all[index]!);
  if (kind === 'backwards' || (indexes.length === 3 && kind === null))
    await walkBackwards({ readHistory: readOf(shown, true), from: String(shown.length), until: null, stop }, model);
  else {
    const filter = { name: 'mints', filters: {}, matches: ({ type }: GeneratedActivity) => type === 'mint' };
    await walkFiltered(filter, { readHistory: readOf(shown, false), stop }, model);
  }
  expect(found().map((difference) => difference.kind)).toEqual(kind === null ? [] : [kind]);
  if (kind !== null) expect(found()[0]!.first.join()).toContain(text);
});

it('createPublish reports wrong counts and unexpected refusal reasons', async () => {
  const { ledger, differences, found } = openReplica();
  const publish = createPublish({
    importer: {
      import: async ({ onRefused }) => {
        onRefused(2, ['type']);
        return { lines: 2, published: 0, unchanged: 0, superseded: 0, refused: 1 };
      },
    },
    ledger,
    differences,
    sent: createSent(),
    retryMaxMs: 0,
    onProgress: () => {},
  });
  const broken = { text: '[]', sequence: 4, activity: null, refusal: ['message'] };
  await publish([{ text: '{}', sequence: 3, activity: activityOf(3, 1), refusal: [] }, broken]);
  const first = ['expected [message], got [type]: []', 'published: 0 lines instead of 1'];
  expect(found()).toEqual([{ kind: 'import', count: 2, first }]);
});

it('checkTokens reports a wrong token and an ignored ETag', async () => {
  const token: GeneratedToken = {
    chain: CHAIN.name,
    contract_address: '0x1',
    name: 'Gold',
    verification_status: 'verified',
  };
  const server = createServer(({ url = '' }, response) => {
    if (!url.endsWith(token.contract_address)) return response.writeHead(404).end('{}');
    const result = { ...token, name: 'Silver', chain: CHAIN, updated_at: 'now' };
    return response.writeHead(200, { etag: '"1"' }).end(JSON.stringify({ result }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { differences, found } = openReplica();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await checkTokens([token], { url, chain: CHAIN, differences, retryMaxMs: 100, onCall: () => {} });
  const first = ['0x1 result.name: "Silver" instead of "Gold"', '0x1 returns 200 instead of 304 for its ETag'];
  expect(found()).toEqual([{ kind: 'token', count: 2, first }]);
});

it('the replica accepts a repeated version after an import with an unknown result', () => {
  const { replica, ledger, found } = openReplica();
  ledger.allowRepeat(0);
  replica.apply(shownOf(0, 1, 1), 15);
  replica.apply(shownOf(0, 1, 2), 15);
  expect(found()).toEqual([]);
});

it('the replica counts and ignores activities from other sources', () => {
  const { replica, found } = openReplica();
  replica.apply({ ...shownOf(0, 9, 1), id: '00000000-0000-4000-8000-000000000001' }, 15);
  expect(replica.strangers).toBe(1);
  expect(found()).toEqual([]);
});

it('describeDifferences returns an empty list if and only if the values are equal', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(describeDifferences(value, structuredClone(value))).toEqual([]);
    }),
  );
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      // JSON cannot represent minus zero.
      const [first, second] = [JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))];
      const isSame = JSON.stringify(sorted(first)) === JSON.stringify(sorted(second));
      expect(describeDifferences(first, second).length === 0).toBe(isSame);
    }),
  );
});

it('describeDifferences returns the paths of different, missing and unexpected fields', () => {
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
