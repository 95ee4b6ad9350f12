import { createParseActivity, findChanged, toActivityRow } from '@playline/chain';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseJson } from '../delivery.ts';
import { createRun } from '../run.ts';
import type { MadeActivity } from './maker.ts';
import { createTraffic, type TrafficLine } from './traffic.ts';

const CHAIN = 'made-up-chain';
const NOON_MS = Date.UTC(2026, 10, 21, 12);

function makeGroups(seed: number, activities = 600): TrafficLine[][] {
  const options = { run: createRun(seed, NOON_MS), chain: CHAIN, activitiesMax: activities, brokenShare: 0.1 };
  const traffic = createTraffic(options);
  const groups: TrafficLine[][] = [];
  for (let group = traffic.next(NOON_MS); group !== null; group = traffic.next(NOON_MS + groups.length))
    groups.push(group);
  return groups;
}

const parse = createParseActivity({ chain: CHAIN, traceId: 'ab'.repeat(16) });
const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const rightOf = (lines: readonly TrafficLine[]) =>
  lines.flatMap(({ activity }) => (activity === null ? [] : [activity]));
/** The last version of each activity in the order of blocks, which is the order of their numbers. */
const finalOf = (lines: readonly TrafficLine[]) =>
  [...new Map(lines.flatMap((line) => (line.activity === null ? [] : [[line.sequence, line.activity] as const])))]
    .toSorted(([one], [other]) => one - other)
    .map(([, activity]) => activity);

/** What an activity moves: asset, giver or null, taker or null, amount. */
function movesOf({ type, details }: MadeActivity) {
  const giver = type === 'mint' || type === 'deposit' ? null : details.from!;
  const taker = type === 'burn' || type === 'withdrawal' ? null : details.to!;
  const assets = Array.isArray(details.asset) ? details.asset : [details.asset];
  return assets.map((asset) => ({
    asset: `${asset.contract_address} ${'token_id' in asset ? asset.token_id : ''}`,
    isUnique: asset.contract_type === 'ERC721',
    giver,
    taker,
    amount: BigInt('amount' in asset ? asset.amount : details.amount!),
  }));
}

it('a generated history is possible: every giver has what is given, and a unique asset has one holder', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const held = new Map<string, bigint>();
      const handOf = new Map<string, string | null>();
      for (const activity of finalOf(makeGroups(seed).flat()))
        for (const { asset, isUnique, giver, taker, amount } of movesOf(activity)) {
          expect(amount).toBeGreaterThan(0n);
          if (isUnique) expect([amount, handOf.get(asset) ?? null]).toEqual([1n, giver]);
          handOf.set(asset, taker);
          const left = (held.get(`${asset} ${giver}`) ?? 0n) - amount;
          if (giver !== null) expect(left).toBeGreaterThanOrEqual(0n);
          if (giver !== null) held.set(`${asset} ${giver}`, left);
          if (taker !== null) held.set(`${asset} ${taker}`, (held.get(`${asset} ${taker}`) ?? 0n) + amount);
        }
    }),
    { numRuns: runsOf({ quick: 3, all: 15 }) },
  );
});

it('a generated history has lines that the import accepts as intended, and broken ones that it refuses for the intended fault', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      for (const { text, activity, refusal } of makeGroups(seed).flat()) {
        // This fault is between two lines: the import reports it, not the parser.
        if (refusal[0]?.endsWith('would be changed')) continue;
        const parsed = parse(parseJson(text));
        const fields = parsed.ok ? [] : parsed.errors.map(({ field }) => field);
        if (text !== '{"half":') expect(fields).toEqual(refusal);
        if (!parsed.ok || activity === null) continue;
        const row = toActivityRow(parsed.record, { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 });
        expect(row.id).toBe(activity.id);
        expect(JSON.parse(row.details)).toEqual(activity.details);
      }
    }),
    { numRuns: runsOf({ quick: 3, all: 15 }) },
  );
});

it('a generated history has later versions that differ from all earlier ones, but never in constant members', () => {
  const versionsOf = Map.groupBy(rightOf(makeGroups(7, 3_000).flat()), ({ id }) => id);
  const severalTimes = [...versionsOf.values()].filter(({ length }) => length > 1);
  expect(severalTimes.length).toBeGreaterThan(100);
  for (const versions of severalTimes) {
    expect(new Set(versions.map((version) => JSON.stringify(version))).size).toBe(versions.length);
    const constants = versions.map((version) => constantsOf(version));
    for (const each of constants) expect(findChanged(constants[0]!, each)).toEqual([]);
  }
});

it('a generated history has all types, all kinds of contracts, sales in coin and token, and off-chain moves', () => {
  const activities = finalOf(makeGroups(11, 2_000).flat());
  expect(activities).toHaveLength(2_000);
  expect(new Set(activities.map(({ type }) => type))).toEqual(new Set(ACTIVITY_TYPES));
  const tokens = new Set(activities.flatMap(({ details }) => details.payment?.token.contract_type ?? []));
  expect(tokens).toEqual(new Set(['NATIVE', 'ERC20']));
  const kinds = new Set(
    activities.flatMap(({ details: { asset } }) => (Array.isArray(asset) ? asset[0]! : asset).contract_type),
  );
  expect(kinds).toEqual(new Set(['ERC20', 'ERC721', 'ERC1155']));
  const offChain = activities.filter(({ blockchain_metadata }) => blockchain_metadata === null);
  expect(new Set(offChain.map(({ type }) => type))).toEqual(new Set(['deposit', 'withdrawal']));
});

it('a generated history is the same for the same seed except for ids, addresses and times, and differs for another seed', () => {
  const outlineOf = (seed: number) =>
    makeGroups(seed).map((group) =>
      group.map(({ activity, refusal, sequence }) => [sequence, refusal, activity?.type, activity?.details.amount]),
    );
  expect(outlineOf(9)).toEqual(outlineOf(9));
  expect(outlineOf(9)).not.toEqual(outlineOf(10));
});

function constantsOf(activity: MadeActivity) {
  const parsed = parse(activity);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return toActivityRow(parsed.record, { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 });
}
