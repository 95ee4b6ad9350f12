import { randomUUID } from 'node:crypto';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Contract, createContract, toFeedRows, toTimestamp, type Version } from '../test/activity-rows.ts';
import { openTestReads, type TestReads, toSqlTime } from '../test/test-reads.ts';
import { byNewest } from './activities.ts';
import {
  type ActivityPage,
  type ActivityPosition,
  type ActivitySearch,
  createPortalReads,
  type MintSearch,
  type PortalReads,
  readManyActivities,
} from './index.ts';

const NOW_MS = Date.parse('2026-11-20T10:00:00Z');
const DAY_US = 86_400_000_000;
const END_MS = Date.UTC(2256, 0);

let database: TestReads;
let reads: PortalReads;
beforeAll(async () => {
  database = await openTestReads();
  ({ reads } = database);
});
afterAll(() => database?.close());

const put = (contract: Contract, versions: readonly Version[]) =>
  database.insert(
    'activity_feeds',
    versions.flatMap((version) => toFeedRows(contract, version)),
  );

const createSearch = (contracts: readonly Contract[], overrides: Partial<ActivitySearch> = {}): ActivitySearch => ({
  nowMs: NOW_MS,
  contracts,
  type: '',
  tokenId: '',
  sinceMs: 0,
  untilMs: END_MS,
  ...overrides,
});
const idsOf = async (search: ActivitySearch) => (await reads.activities(search)).activities.map(({ id }) => id);

async function readAll(search: ActivitySearch, { activities } = reads): Promise<ActivityPosition[]> {
  const found: ActivityPosition[] = [];
  for (let before: ActivityPosition | null | undefined; before !== null; ) {
    const page = await activities({ ...search, ...(before && { before }) });
    found.push(...page.activities.map(({ updatedUs, id }) => ({ updatedUs, id })));
    before = page.next;
  }
  return found;
}

it('reads.activities returns the latest version of each activity once, newest first, for every token filter', async () => {
  const tokens = fc.constantFrom('4', '47', '4711', '0', '');
  const activity = fc.record({
    token: tokens,
    previous: fc.option(tokens),
    isDuplicated: fc.boolean(),
    isSecondContract: fc.boolean(),
    ageUs: fc.constantFrom(0, 1, 1, 60_000_000, DAY_US, 8 * DAY_US, 40 * DAY_US, 800 * DAY_US),
    part: fc.nat(2),
  });
  const list = fc.array(activity, { minLength: 1, maxLength: 16 });
  await fc.assert(
    fc.asyncProperty(list, fc.integer({ min: 1, max: 6 }), async (generated, activitiesMax) => {
      const contracts = [createContract(), createContract()] as const;
      const latest: Version[] = [];
      const parts: object[][] = [[], [], [], []];
      for (const { token, previous, isDuplicated, isSecondContract, ageUs, part } of generated) {
        const [id, us] = [randomUUID(), NOW_MS * 1000 - ageUs];
        const version = { id, us, tokenId: token };
        latest.push(version);
        const superseded = previous === null ? [] : [{ id, us: us - 5_000_000, supersededUs: us, tokenId: previous }];
        const versions = [...superseded, version];
        const entries = versions.flatMap((each) => toFeedRows(contracts[isSecondContract ? 1 : 0], each));
        parts[part]!.push(...entries);
        // Differs from the original rows, so that ClickHouse does not deduplicate the insert.
        if (isDuplicated) parts[3]!.push(...entries.map((entry) => ({ ...entry, kafka_partition: 1 })));
      }
      for (const rows of parts.filter(({ length }) => length > 0)) await database.insert('activity_feeds', rows);
      for (const tokenId of ['', '4', '47', '4711', '0', '7']) {
        const expected = latest
          .filter((version) => tokenId === '' || version.tokenId === tokenId)
          .map(({ us, id }) => ({ updatedUs: us, id }))
          .toSorted(byNewest);
        const found = await readAll(createSearch(contracts, { tokenId, activitiesMax }));
        expect([tokenId, found]).toEqual([tokenId, expected]);
      }
    }),
    { numRuns: runsOf({ quick: 2, all: 6 }) },
  );
}, 120_000);

it('reads.activities applies each filter and returns only activities of the given contracts', async () => {
  const [contract, another] = [createContract(), createContract()];
  const us = NOW_MS * 1000;
  const mint = { id: randomUUID(), us };
  const burn = { id: randomUUID(), us: us - 1, type: 'burn', tokenId: '77', indexedUs: us - DAY_US };
  await put(contract, [mint, burn]);
  await put(another, [{ id: randomUUID(), us }]);
  await put({ ...contract, chain: 'main-2' }, [{ id: randomUUID(), us }]);
  const found = (filter: Partial<ActivitySearch>) => idsOf(createSearch([contract], filter));
  expect(await found({})).toEqual([mint.id, burn.id]);
  for (const filter of [{ type: 'mint' }, { tokenId: '7' }, { sinceMs: NOW_MS }, { sinceMs: NOW_MS - 1 }])
    expect([filter, await found(filter)]).toEqual([filter, [mint.id]]);
  const before = { updatedUs: us, id: '' };
  for (const filter of [{ type: 'burn' }, { tokenId: '77' }, { untilMs: NOW_MS }, { before }])
    expect([filter, await found(filter)]).toEqual([filter, [burn.id]]);
  for (const filter of [{ type: '*' }, { type: "mint' OR '1' = '1" }, { tokenId: '%' }, { tokenId: '' }, { type: '' }])
    expect([filter, (await found(filter)).length]).toEqual([
      filter,
      Object.values(filter)[0] === '' || filter.type === '*' ? 2 : 0,
    ]);
});

it('reads.activities treats wildcards in contract addresses literally', async () => {
  const contract = createContract();
  await put(contract, [{ id: randomUUID(), us: NOW_MS * 1000 }]);
  const { contractAddress: address } = contract;
  for (const contractAddress of ['*', '', '%', '0x%', `${address} *`, `${address}\n`, '* *'])
    expect([contractAddress, await idsOf(createSearch([{ chain: 'main', contractAddress }]))]).toEqual([
      contractAddress,
      [],
    ]);
  expect(await idsOf(createSearch([]))).toEqual([]);
});

it('reads.activities returns all fields of a sale, including its payment', async () => {
  const contract = createContract();
  const members = {
    type: 'sale',
    details: {
      order_id: 'o',
      from: '0xa',
      to: '0xb',
      asset: ['1', '2'].map((tokenId) => ({
        contract_address: contract.contractAddress,
        token_id: tokenId,
        amount: '1',
      })),
      payment: { token: { contract_type: 'NATIVE', symbol: '<b>"ETH"</b>' }, price_including_fees: '105', fees: [] },
    },
    blockchain_metadata: { transaction_hash: '0xhash', block_number: '9', transaction_index: '0', log_index: null },
  };
  const feed = `main ${contract.contractAddress} *`;
  const [id, at] = [randomUUID(), toTimestamp(NOW_MS * 1000)];
  const entry = { entry: 'version', feed, id, updated_at: at, indexed_at: at, superseded_at: '2255-06-05 23:47:34' };
  await database.insert('activity_feeds', [{ ...entry, members: JSON.stringify(members).slice(1, -1) }]);
  expect((await reads.activities(createSearch([contract]))).activities).toEqual([
    {
      ...contract,
      id,
      type: 'sale',
      from: '0xa',
      to: '0xb',
      transactionHash: '0xhash',
      blockNumber: '9',
      updatedUs: NOW_MS * 1000,
      updatedMs: NOW_MS,
      indexedMs: NOW_MS,
      assets: ['1', '2'].map((tokenId) => ({ contractAddress: contract.contractAddress, tokenId, amount: '1' })),
      payment: { contractAddress: '', symbol: '<b>"ETH"</b>', amount: '105' },
    },
  ]);
  for (const tokenId of ['1', '2']) expect(await idsOf(createSearch([contract], { tokenId }))).toEqual([id]);
});

describe('a contract whose entire history was indexed within a minute', () => {
  const ROWS = 200_000;
  const STEP_US = 100;
  const contract = createContract();
  /** Position of activity `number`, where 0 is the newest. */
  const positionOf = (number: number) => ({
    updatedUs: NOW_MS * 1000 - number * STEP_US,
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
  });
  const positionsIn = (activities: readonly ActivityPosition[]) =>
    activities.map(({ updatedUs, id }) => ({ updatedUs, id }));
  const positionsFrom = (first: number, count: number) =>
    Array.from({ length: count }, (_, index) => positionOf(first + index));

  /** Reads the first page that is not empty. On a slow machine, a search may time out before it finds an activity. */
  const readFirstPage = async (search: ActivitySearch): Promise<ActivityPage> => {
    const page = await reads.activities(search);
    if (page.activities.length > 0 || page.next === null) return page;
    return readFirstPage({ ...search, before: page.next });
  };

  beforeAll(() =>
    database.send(`INSERT INTO activity_feeds (entry, feed, updated_at, id, indexed_at, superseded_at, members)
      SELECT 'version', 'main ${contract.contractAddress} *', at, toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(number), 12, '0'))),
        at, '2255-06-05 23:47:34', concat('"type":"mint","details":{"asset":{"token_id":"', toString(number), '"}}')
      FROM (SELECT number, fromUnixTimestamp64Micro(${NOW_MS * 1000} - toInt64(number) * ${STEP_US}, 'UTC') AS at FROM numbers(${ROWS}))`),
  );

  it('a single query for 200,000 activities exceeds the ClickHouse read limit', async () => {
    const args = `contracts = ['main ${contract.contractAddress}'], type = '', token = '', since = 0, until = ${END_MS * 1000}, before = ''`;
    const sql = `SELECT count() FROM portal_activities(${args}, indexed_since = 0, indexed_until = ${END_MS})`;
    await expect(database.send(sql)).rejects.toThrow('TOO_MANY_ROWS');
  });

  function createCounted() {
    const views: (string | undefined)[] = [];
    const query: typeof database.query = (sql, options) => {
      views.push(/FROM \(?(?:SELECT \* FROM )?(\w+)/.exec(sql)?.[1]);
      return database.query(sql, options);
    };
    return { views, reads: createPortalReads(query) };
  }

  it('the first page of 200,000 activities takes 3 queries: a rejected window, the start and the page', async () => {
    const counted = createCounted();
    const page = await counted.reads.activities(createSearch([contract]));
    expect(positionsIn(page.activities)).toEqual(positionsFrom(0, 100));
    expect(counted.views).toEqual(['portal_activities', 'portal_activity_times', 'portal_activities']);
  });

  it('the first page and a page from the middle of 200,000 activities are full', async () => {
    const newest = await readFirstPage(createSearch([contract]));
    expect(positionsIn(newest.activities)).toEqual(positionsFrom(0, 100));
    expect(newest.next).toEqual(positionOf(99));
    const middle = await readFirstPage(createSearch([contract], { before: positionOf(150_000), activitiesMax: 1_000 }));
    expect(positionsIn(middle.activities)).toEqual(positionsFrom(150_001, 1_000));
  });

  it('a token search takes one query with the token index, and finds the same activities without it', async () => {
    const counted = createCounted();
    for (const [tokenId, found] of [
      [String(ROWS - 1), [positionOf(ROWS - 1)]],
      [String(ROWS), []],
    ] as const)
      expect(await readAll(createSearch([contract], { tokenId }), counted.reads)).toEqual(found);
    expect(counted.views).toEqual(['portal_activities', 'portal_activities']);
    await database.send('ALTER TABLE activity_feeds CLEAR INDEX token_ids SETTINGS mutations_sync = 1');
    expect(await readAll(createSearch([contract], { tokenId: String(ROWS - 1) }), counted.reads)).toEqual([
      positionOf(ROWS - 1),
    ]);
    expect(counted.views.length).toBeGreaterThan(3);
  });
});

it('readManyActivities sorts activities across contracts that are read with several queries', async () => {
  const contracts = Array.from({ length: 70 }, createContract);
  const us = NOW_MS * 1000;
  // Two activities per timestamp, from contracts that are read by different queries.
  const all = contracts.map((contract, index) => ({ contract, version: { id: randomUUID(), us: us - (index % 35) } }));
  await database.insert(
    'activity_feeds',
    all.flatMap(({ contract, version }) => toFeedRows(contract, version)),
  );
  const expected = all.map(({ version }) => ({ updatedUs: version.us, id: version.id })).toSorted(byNewest);
  const readIds: string[] = [];
  for await (const page of readManyActivities(
    (each) => reads.activities({ ...each, activitiesMax: 25 }),
    createSearch(contracts),
    1_000,
  ))
    readIds.push(...page.map(({ id }) => id));
  expect(readIds).toEqual(expected.map(({ id }) => id));
});

const bytesOf = (name: string) => name.repeat(20);
const addressOf = (name: string) => `0x${Buffer.from(bytesOf(name)).toString('hex')}`;
let created = 0;
const toMintRow = (environment: string, ageMs: number, overrides: object = {}) => {
  created++;
  return {
    environment_id: environment,
    chain: 'main',
    contract: bytesOf('c'),
    signer: bytesOf('s'),
    owner: bytesOf('o'),
    attempt_id: String(created).padStart(16, 'a'),
    reference_id: `r-${created}`,
    revision: 1,
    requested_at: toSqlTime(NOW_MS - ageMs),
    changed_at: toSqlTime(NOW_MS - ageMs + 500),
    status: 'succeeded',
    stage: 'settled',
    ...overrides,
  };
};
const waiting = { status: 'pending', stage: 'waiting' };
const readSigners = (environmentId: string, sinceMs = NOW_MS - 86_400_000) =>
  reads.mintSigners({ environmentId, sinceMs });

it('reads.mintSigners derives the minter role only from mint stages that prove the role', async () => {
  for (const [overrides, roleProvenMs] of [
    [{ status: 'succeeded' }, NOW_MS - 8_500],
    [{ status: 'pending', stage: 'logged' }, NOW_MS - 8_500],
    [{ status: 'pending', stage: 'mined' }, NOW_MS - 8_500],
    [{ status: 'failed' }, null],
    [{ status: 'pending', stage: 'accepted' }, null],
    [waiting, null],
  ] as const) {
    const environment = `e-${randomUUID()}`;
    await database.insert('mint_requests', [toMintRow(environment, 9_000, overrides)]);
    expect([overrides, await readSigners(environment)]).toMatchObject([overrides, [{ roleProvenMs }]]);
  }
});

it('reads.mintSigners counts waiting assets and finds the start of the oldest wait and the latest reason', async () => {
  const environment = `e-${randomUUID()}`;
  const settled = toMintRow(environment, 20_000, { ...waiting, reason: 'waited earlier' });
  await database.insert('mint_requests', [
    ...[settled, toMintRow(environment, 3_000, { ...waiting, reason: 'no role' })],
    ...[
      toMintRow(environment, 2_000, { ...waiting, reason: 'no funds' }),
      toMintRow(environment, 1_000, { stage: 'logged' }),
    ],
  ]);
  // Inserted separately, so that both revisions exist until ClickHouse merges them.
  await database.insert('mint_requests', [{ ...settled, revision: 2, status: 'failed', stage: 'settled' }]);
  const signer = { chain: 'main', contractAddress: addressOf('c'), signerAddress: addressOf('s') };
  const state = { waiting: 2, waitingSinceMs: NOW_MS - 2_500, reason: 'no funds' };
  expect(await readSigners(environment)).toEqual([{ ...signer, ...state, roleProvenMs: NOW_MS - 500 }]);
});

it('reads.mintSigners lists the signers in the time range by chain and collection', async () => {
  const environment = `e-${randomUUID()}`;
  await database.insert('mint_requests', [
    ...[toMintRow(environment, 9_000), toMintRow(environment, 8_000, { signer: bytesOf('t') })],
    ...[toMintRow(environment, 7_000, { contract: bytesOf('d') }), toMintRow(environment, 6_000, { chain: 'second' })],
    toMintRow(`${environment}-2`, 5_000, { contract: bytesOf('x') }),
  ]);
  const found = async (sinceMs?: number) =>
    (await readSigners(environment, sinceMs)).map((each) => [each.chain, each.contractAddress, each.signerAddress]);
  expect(await found()).toEqual([
    ...[
      ['main', addressOf('c'), addressOf('t')],
      ['main', addressOf('c'), addressOf('s')],
    ],
    ...[
      ['main', addressOf('d'), addressOf('s')],
      ['second', addressOf('c'), addressOf('s')],
    ],
  ]);
  expect(await found(NOW_MS - 8_000)).toHaveLength(3);
  expect(await found(NOW_MS - 7_999)).toHaveLength(2);
  expect(await found(NOW_MS)).toEqual([]);
});

it('reads.mints returns each mint once, even if collections share a reference id', async () => {
  const environment = `e-${randomUUID()}`;
  await database.insert('mint_requests', [
    ...[9_000, 8_000, 8_000, 1_000].map((ageMs) => toMintRow(environment, ageMs)),
    ...['d', 'e'].map((name) => toMintRow(environment, 8_000, { reference_id: 'twice', contract: bytesOf(name) })),
  ]);
  const found: string[] = [];
  for (let before: MintSearch['before'], pages = 0; pages < 20; pages++) {
    const search = { environmentId: environment, sinceMs: NOW_MS - 86_400_000, status: '' as const, mintsMax: 1 };
    const [mint] = await reads.mints({ ...search, ...(before && { before }) });
    if (mint === undefined) break;
    found.push(`${mint.referenceId} ${mint.contractAddress}`);
    before = mint;
  }
  expect([found.length, new Set(found).size]).toEqual([6, 6]);
});

it('reads.tokens returns only the given contracts, with their latest names', async () => {
  const [contract, another] = [createContract(), createContract()];
  const rowOf = ({ contractAddress }: typeof contract, ms: number, overrides: object) => {
    const bytes = contractAddress.slice(2);
    return `('main', unhex('${bytes}'), '${toSqlTime(NOW_MS + ms)}', ${Object.values(overrides).join(', ')})`;
  };
  // Inserted separately, because the table removes duplicates within an insert, and the view must remove all others.
  for (const row of [
    rowOf(contract, 0, { name: "'Old'", symbol: "'OLD'", decimals: 2 }),
    rowOf(contract, 1, { name: "'Gold'", symbol: 'NULL', decimals: 18 }),
    rowOf(another, 0, { name: "'Other'", symbol: "'O'", decimals: 'NULL' }),
  ])
    await database.send(`INSERT INTO tokens (chain, contract, updated_at, name, symbol, decimals) VALUES ${row}`);
  expect(await reads.tokens([contract])).toEqual([{ ...contract, name: 'Gold', symbol: '', decimals: 18 }]);
  expect(await reads.tokens([contract, another, createContract()])).toHaveLength(2);
  expect(await reads.tokens([{ chain: 'main', contractAddress: '*' }])).toEqual([]);
  expect(await reads.tokens([])).toEqual([]);
});
