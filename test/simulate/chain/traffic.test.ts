import { createParseActivity, findChanged, toActivityRow } from '@playline/chain';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseJson } from '../delivery.ts';
import { createRun } from '../run.ts';
import type { GeneratedActivity } from './generator.ts';
import { createTraffic, type TrafficLine } from './traffic.ts';

const CHAIN = 'test-chain';
const NOON_MS = Date.UTC(2026, 10, 21, 12);

function generateGroups(seed: number, activities = 600): TrafficLine[][] {
  const options = { run: createRun(seed, NOON_MS), chain: CHAIN, activitiesMax: activities, brokenFraction: 0.1 };
  const traffic = createTraffic(options);
  const groups: TrafficLine[][] = [];
  for (let group = traffic.next(NOON_MS); group !== null; group = traffic.next(NOON_MS + groups.length))
    groups.push(group);
  return groups;
}

const parse = createParseActivity({ chain: CHAIN, traceId: 'ab'.repeat(16) });
const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const validActivitiesOf = (lines: readonly TrafficLine[]) =>
  lines.flatMap(({ activity }) => (activity === null ? [] : [activity]));
const finalOf = (lines: readonly TrafficLine[]) =>
  [...new Map(lines.flatMap((line) => (line.activity === null ? [] : [[line.sequence, line.activity] as const])))]
    .toSorted(([a], [b]) => a - b)
    .map(([, activity]) => activity);

/** Returns an activity's transfers. For assets that enter or leave the chain, the sender or receiver is null. */
function movesOf({ type, details }: GeneratedActivity) {
  const sender = type === 'mint' || type === 'deposit' ? null : details.from!;
  const receiver = type === 'burn' || type === 'withdrawal' ? null : details.to!;
  const assets = Array.isArray(details.asset) ? details.asset : [details.asset];
  return assets.map((asset) => ({
    asset: `${asset.contract_address} ${'token_id' in asset ? asset.token_id : ''}`,
    isUnique: asset.contract_type === 'ERC721',
    sender,
    receiver,
    amount: BigInt('amount' in asset ? asset.amount : details.amount!),
  }));
}

it('createTraffic generates a consistent history: senders own what they send, unique assets have one owner', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const held = new Map<string, bigint>();
      const holderOf = new Map<string, string | null>();
      for (const activity of finalOf(generateGroups(seed).flat()))
        for (const { asset, isUnique, sender, receiver, amount } of movesOf(activity)) {
          expect(amount).toBeGreaterThan(0n);
          if (isUnique) expect([amount, holderOf.get(asset) ?? null]).toEqual([1n, sender]);
          holderOf.set(asset, receiver);
          const balance = (held.get(`${asset} ${sender}`) ?? 0n) - amount;
          if (sender !== null) expect(balance).toBeGreaterThanOrEqual(0n);
          if (sender !== null) held.set(`${asset} ${sender}`, balance);
          if (receiver !== null) held.set(`${asset} ${receiver}`, (held.get(`${asset} ${receiver}`) ?? 0n) + amount);
        }
    }),
    { numRuns: runsOf({ quick: 3, all: 15 }) },
  );
});

it('createTraffic generates lines that the parser accepts unchanged, or refuses with the expected errors', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      for (const { text, activity, refusal } of generateGroups(seed).flat()) {
        // Only the import can report this error, because the error concerns two lines.
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

it('createTraffic generates versions that differ from each other, except in constant fields', () => {
  const versionsOf = Map.groupBy(validActivitiesOf(generateGroups(7, 3_000).flat()), ({ id }) => id);
  const histories = [...versionsOf.values()].filter(({ length }) => length > 1);
  expect(histories.length).toBeGreaterThan(100);
  for (const versions of histories) {
    expect(new Set(versions.map((version) => JSON.stringify(version))).size).toBe(versions.length);
    const constants = versions.map((version) => constantsOf(version));
    for (const each of constants) expect(findChanged(constants[0]!, each)).toEqual([]);
  }
});

it('createTraffic generates all activity types, contract kinds and payments, and off-chain transfers', () => {
  const activities = finalOf(generateGroups(11, 2_000).flat());
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

it('createTraffic generates a history that depends only on the seed, except for ids, addresses and timestamps', () => {
  const outlineOf = (seed: number) =>
    generateGroups(seed).map((group) =>
      group.map(({ activity, refusal, sequence }) => [sequence, refusal, activity?.type, activity?.details.amount]),
    );
  expect(outlineOf(9)).toEqual(outlineOf(9));
  expect(outlineOf(9)).not.toEqual(outlineOf(10));
});

function constantsOf(activity: GeneratedActivity) {
  const parsed = parse(activity);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return toActivityRow(parsed.record, { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 });
}
