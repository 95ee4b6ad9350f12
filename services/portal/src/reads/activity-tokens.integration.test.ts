import { randomUUID } from 'node:crypto';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Contract, contractOf, entriesOf, type Version } from '../test/activity-rows.ts';
import { type OwnReads, openOwnReads } from '../test/own-reads.ts';
import { byNewest } from './activities.ts';
import { type ActivityPosition, type ActivitySearch, createPortalReads } from './index.ts';

const NOW_MS = Date.parse('2026-11-20T10:00:00Z');
const DAY_US = 86_400_000_000;

let own: OwnReads;
beforeAll(async () => {
  own = await openOwnReads();
});
afterAll(() => own?.close());

const searchOf = (contracts: readonly Contract[], tokenId: string): ActivitySearch => ({
  nowMs: NOW_MS,
  contracts,
  type: '',
  tokenId,
  sinceMs: 0,
  untilMs: Date.UTC(2256, 0),
});

/** Reads all pages. */
async function readAll(search: ActivitySearch, { activities } = own.reads): Promise<ActivityPosition[]> {
  const found: ActivityPosition[] = [];
  for (let before: ActivityPosition | null | undefined; before !== null; ) {
    const page = await activities({ ...search, ...(before && { before }) });
    found.push(...page.activities.map(({ updatedUs, id }) => ({ updatedUs, id })));
    before = page.next;
  }
  return found;
}

it('a search for a token returns the activities whose last version has it, once each, newest first', async () => {
  const tokens = fc.constantFrom('4', '47', '4711', '0', '');
  const activity = fc.record({
    token: tokens,
    former: fc.option(tokens),
    isTwice: fc.boolean(),
    isOfSecond: fc.boolean(),
    ageUs: fc.constantFrom(0, 1, 1, 60_000_000, DAY_US, 40 * DAY_US, 800 * DAY_US),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(activity, { minLength: 1, maxLength: 16 }), async (wanted) => {
      const contracts = [contractOf(), contractOf()] as const;
      const last: Version[] = [];
      const rows = wanted.flatMap(({ token, former, isTwice, isOfSecond, ageUs }) => {
        const [id, us] = [randomUUID(), NOW_MS * 1000 - ageUs];
        const version = { id, us, tokenId: token };
        last.push(version);
        const before = former === null ? [] : [{ id, us: us - 5_000_000, supersededUs: us, tokenId: former }];
        const entries = [...before, version].flatMap((each) => entriesOf(contracts[isOfSecond ? 1 : 0], each));
        return isTwice ? [...entries, ...entries.map((entry) => ({ ...entry, kafka_partition: 1 }))] : entries;
      });
      await own.insert('activity_feeds', rows);
      for (const tokenId of ['4', '47', '4711', '0', '7']) {
        const expected = last
          .filter((version) => version.tokenId === tokenId)
          .map(({ us, id }) => ({ updatedUs: us, id }))
          .toSorted(byNewest);
        expect([tokenId, await readAll({ ...searchOf(contracts, tokenId), activitiesMax: 2 })]).toEqual([
          tokenId,
          expected,
        ]);
      }
    }),
    { numRuns: runsOf({ quick: 2, all: 6 }) },
  );
}, 120_000);

it('a search for a token takes one query with the index of tokens, and several with the same result without it', async () => {
  const contract = contractOf();
  // More rows than one query may read, in one part.
  await own.send(`INSERT INTO activity_feeds (entry, feed, updated_at, id, indexed_at, superseded_at, members)
    SELECT 'version', 'main ${contract.contractAddress} *', at, generateUUIDv4(), at, '2255-06-05 23:47:34',
      concat('"type":"mint","details":{"asset":{"token_id":"', toString(number), '"}}')
    FROM (SELECT number, fromUnixTimestamp64Micro(${NOW_MS * 1000} - toInt64(number), 'UTC') AS at FROM numbers(150000))`);
  let queries = 0;
  const counted = createPortalReads((sql, options) => {
    queries++;
    return own.query(sql, options);
  });
  const find = async () => {
    queries = 0;
    const found = await readAll(searchOf([contract], '149999'), counted);
    return { found: found.length, isOneQuery: queries === 1 };
  };
  const sync = 'SETTINGS mutations_sync = 1';
  await own.send(`ALTER TABLE activity_feeds CLEAR INDEX token_ids ${sync}`);
  expect(await find()).toEqual({ found: 1, isOneQuery: false });
  await own.send(`ALTER TABLE activity_feeds MATERIALIZE INDEX token_ids ${sync}`);
  expect(await find()).toEqual({ found: 1, isOneQuery: true });
});
