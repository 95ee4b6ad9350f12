import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ChainLog } from '../node.ts';
import { toActivityRow } from '../rows.ts';
import { eventTopicOf } from './abi-reader.ts';
import { BLOCK_LIMITS, findOverBudget } from './block-budget.ts';
import { parseBridge } from './bridges.ts';
import { createReadActivities, type LogSettings, ORDER_FULFILLED } from './read-activities.ts';
import type { ReadBlocks } from './read-range.ts';
import { CONSECUTIVE_TRANSFER, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE } from './transfers.ts';

const TOKEN = `0x${'70'.repeat(20)}`;
const MARKET = `0x${'3a'.repeat(20)}`;
const BRIDGE = `0x${'b1'.repeat(20)}`;
const accountAt = (number: number) => `0x${number.toString(16).padStart(40, '0')}`;
const word = (value: number | bigint | string) =>
  typeof value === 'string' ? value.replace('0x', '').padStart(64, '0') : value.toString(16).padStart(64, '0');
const topic = (value: number | bigint | string) => `0x${word(value)}`;
const data = (...values: (number | bigint | string)[]) => `0x${values.map(word).join('')}`;
const logOf = (overrides: Partial<ChainLog>): ChainLog => ({
  blockNumber: 7,
  blockHash: `0x${'bb'.repeat(32)}`,
  transactionHash: `0x${'cd'.repeat(32)}`,
  transactionIndex: 3,
  logIndex: 5,
  address: TOKEN,
  topics: [],
  data: '0x',
  ...overrides,
});
const settings = {
  chain: 'demo-chain',
  nativeSymbol: 'ETH',
  marketplaces: [MARKET],
  bridges: parseBridge({
    contract: BRIDGE,
    deposit: 'Deposited(address indexed token, address, address indexed who, uint256 amount)',
    withdrawal: 'Withdrawn(address indexed who, address token, uint amount)',
  }),
};
const blockOf = (logs: readonly ChainLog[], { timestampS = 1_700_000_000, seconds = 12 } = {}): ReadBlocks => {
  const { blockNumber: number, blockHash: hash } = logs[0]!;
  const block = { number, hash, parentHash: hash, timestampS, logsBloom: Buffer.alloc(0) };
  return { blocks: [block], logs, parentTimestampS: timestampS - seconds };
};
const readWith = (logSettings: LogSettings, log: ChainLog, timestampS?: number) =>
  [...createReadActivities(logSettings)(blockOf([log], { timestampS }))][0]!.reading;
const read = (log: ChainLog, timestampS?: number) => readWith(settings, log, timestampS);
const LOCATION = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };
const detailsIn = (log: ChainLog) =>
  read(log, 1_700_000_000).records.map((record) => {
    const row = toActivityRow(record, LOCATION);
    return { type: row.type, ...JSON.parse(row.details) };
  });

const erc20 = { contract_type: 'ERC20', contract_address: TOKEN };
const erc721 = { contract_type: 'ERC721', contract_address: TOKEN, token_id: '9', amount: '1' };
const transfer = (from: number, to: number) => logOf({ topics: [TRANSFER, topic(from), topic(to)], data: data(5) });

it('an ERC-20 Transfer from the zero address is a mint, to the zero address a burn, and otherwise a transfer', () => {
  expect(detailsIn(transfer(1, 2))).toEqual([
    { type: 'transfer', from: accountAt(1), to: accountAt(2), amount: '5', asset: erc20 },
  ]);
  expect(detailsIn(transfer(0, 2))).toEqual([{ type: 'mint', to: accountAt(2), amount: '5', asset: erc20 }]);
  expect(detailsIn(transfer(1, 0))).toEqual([{ type: 'burn', from: accountAt(1), amount: '5', asset: erc20 }]);
  expect(read(transfer(0, 0), 0)).toMatchObject({ records: [], unread: 'no-party' });
  expect(read(transfer(1, 2), 0).tokens).toEqual([TOKEN]);
});

it('a Transfer with four topics is an ERC-721 transfer', () => {
  const log = logOf({ topics: [TRANSFER, topic(0), topic(2), topic(9)] });
  expect(detailsIn(log)).toEqual([{ type: 'mint', to: accountAt(2), amount: '1', asset: erc721 }]);
  expect(read(log, 0).tokens).toEqual([]);
});

it('a TransferSingle yields one activity, and a TransferBatch yields one activity per item, each with its own id', () => {
  const sides = [topic(8), topic(1), topic(2)];
  const single = logOf({ topics: [TRANSFER_SINGLE, ...sides], data: data(4, 30) });
  const asset = { contract_type: 'ERC1155', contract_address: TOKEN, token_id: '4', amount: '30' };
  expect(detailsIn(single)).toEqual([{ type: 'transfer', from: accountAt(1), to: accountAt(2), amount: '30', asset }]);
  const batch = logOf({ topics: [TRANSFER_BATCH, ...sides], data: data(64, 160, 2, 4, 4, 2, 1, 7) });
  expect(detailsIn(batch).map(({ amount, asset: { token_id } }) => [token_id, amount])).toEqual([
    ['4', '1'],
    ['4', '7'],
  ]);
  expect(new Set(read(batch, 0).records.map(({ id }) => id.toString('hex'))).size).toBe(2);
  const uneven = logOf({ topics: [TRANSFER_BATCH, ...sides], data: data(64, 160, 2, 4, 4, 1, 1) });
  expect(read(uneven, 0)).toMatchObject({ records: [], unread: 'malformed' });
});

it('a ConsecutiveTransfer yields one activity per token', () => {
  const range = (last: number) =>
    logOf({ topics: [CONSECUTIVE_TRANSFER, topic(10), topic(0), topic(2)], data: data(last) });
  expect(detailsIn(range(12)).map(({ asset }) => asset.token_id)).toEqual(['10', '11', '12']);
  expect(read(range(12), 0).summary).toBeNull();
  expect(read(range(9), 0).unread).toBe('malformed');
});

it('a log yields the same record each time, with the time of its block', () => {
  const [one, other] = [transfer(1, 2), { ...transfer(1, 2), blockHash: `0x${'0f'.repeat(32)}` }];
  expect(read(one, 1_700_000_000).records).toEqual(read(other, 1_700_000_000).records);
  const [{ indexedAt, blockchainMetadata, traceId }] = read(one, 1_700_000_000).records as [never];
  expect(indexedAt).toBe(1_700_000_000_000_000);
  expect(blockchainMetadata).toMatchObject({ blockNumber: '7', transactionIndex: '3', logIndex: '5' });
  expect(traceId).toBe('cd'.repeat(16));
});

it("any log can be read without throwing, and its activities pass the writer's validation", () => {
  const hex = fc
    .array(fc.constantFrom(word(0), word(1), word(32), word(64), word(2n ** 256n - 1n), 'ab'), { maxLength: 12 })
    .map((parts) => `0x${parts.join('')}`);
  const topics = fc
    .tuple(
      fc.constantFrom(TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE_TRANSFER, ORDER_FULFILLED),
      fc.array(fc.constantFrom(topic(0), topic(1), topic(2), topic(2n ** 255n)), { maxLength: 3 }),
    )
    .map(([first, rest]) => [first, ...rest]);
  const address = fc.constantFrom(TOKEN, MARKET, BRIDGE);
  fc.assert(
    fc.property(topics, hex, address, (anyTopics, text, contractAddress) => {
      const { records, unread } = read(logOf({ topics: anyTopics, data: text, address: contractAddress }), 0);
      for (const record of records) toActivityRow(record, LOCATION);
      if (records.length > 0) expect(unread).toBeNull();
    }),
    { numRuns: 500 },
  );
});

const legacy = {
  ...settings,
  legacyTokens: [
    { contract: TOKEN, type: 'ERC721' as const },
    { contract: MARKET, type: 'ERC20' as const },
  ],
};
const earlyLog = logOf({ topics: [TRANSFER], data: data(accountAt(1), accountAt(2), 9) });
const asset = { contract_type: 'ERC721', contract_address: TOKEN, token_id: '9', amount: '1' };

it('a Transfer without indexed parameters is decoded for a legacy token and reported as unindexed for any other contract', () => {
  const legacySettings = { ...legacy, marketplaces: [] };
  const shownOf = (log: ChainLog) => readWith(legacySettings, log).records.map(({ details }) => JSON.parse(details));
  expect(shownOf(earlyLog)).toEqual([{ from: accountAt(1), to: accountAt(2), amount: '1', asset }]);
  const halfIndexed = logOf({ topics: [TRANSFER, topic(1), topic(2)], data: data(9) });
  expect(shownOf(halfIndexed)).toEqual(shownOf(earlyLog));
  expect(shownOf(logOf({ topics: [TRANSFER, topic(1), topic(2), topic(9)] }))).toEqual(shownOf(earlyLog));
  expect(shownOf({ ...earlyLog, address: MARKET })).toMatchObject([{ amount: '9', asset: { contract_type: 'ERC20' } }]);
  expect(read(earlyLog, 0)).toMatchObject({ records: [], unread: 'unindexed' });
  expect(read(logOf({ topics: [TRANSFER, topic(1)], data: data(2, 9) }), 0).unread).toBe('unindexed');
});

it('a Transfer without indexed parameters is malformed if its data has the wrong length or an invalid address', () => {
  for (const broken of [data(1, 2), data(1, 2, 3, 4), data(2n ** 200n, 2, 3), '0x'])
    expect(readWith(legacy, logOf({ topics: [TRANSFER], data: broken }))).toMatchObject({
      records: [],
      unread: 'malformed',
    });
});

const contract = (number: number) => `0x${number.toString(16).padStart(40, 'c')}`;
const range = (logIndex: number, address: string, [first, last]: readonly [bigint | number, bigint | number]) =>
  logOf({ logIndex, address, topics: [CONSECUTIVE_TRANSFER, topic(first), topic(0), topic(2)], data: data(last) });
const batch = (logIndex: number, address: string, ids: readonly number[]) =>
  logOf({
    logIndex,
    address,
    topics: [TRANSFER_BATCH, topic(9), topic(1), topic(2)],
    data: data(64, 64 + 32 * (ids.length + 1), ids.length, ...ids, ids.length, ...ids),
  });

const readAll = (logs: readonly ChainLog[], seconds = 12) =>
  [...createReadActivities(settings)(blockOf(logs, { seconds }))].map(({ reading }) => reading);
/** Reads one block with these ranges, each from its own contract, and returns the number of activities per range. */
const countsOf = (tokens: readonly number[], seconds: number) => {
  const ranges = tokens.map((count, at) => range(at, contract(at), [1, count]));
  return readAll(ranges, seconds).map(({ records }) => records.length);
};

it('a block yields at most 10,000 activities per contract, and a log above the limit is summarised with ids and count', () => {
  const ids = Array.from({ length: 5_001 }, (_, index) => 7 + index);
  const readings = readAll([
    range(0, TOKEN, [1, 5_000]),
    batch(1, TOKEN, ids),
    batch(2, TOKEN, ids.slice(1)),
    batch(3, TOKEN, [5]),
    batch(4, contract(1), [5]),
    range(5, contract(2), [10, 2n ** 256n - 1n]),
  ]);
  expect(readings.map(({ records }) => records.length)).toEqual([5_000, 0, 5_000, 0, 1, 0]);
  expect(readings[1]).toEqual({
    records: [],
    tokens: [],
    unread: null,
    summary: { contract: TOKEN, tokens: 5_001n, firstId: 7n, lastId: 5_007n },
  });
  expect(readings[3]!.summary).toMatchObject({ tokens: 1n });
  expect(readings[5]!.summary).toMatchObject({ tokens: 2n ** 256n - 10n, lastId: 2n ** 256n - 1n });
});

it.each([
  [0, 500],
  [1, 5_000],
  [2, 10_000],
  [3, 15_000],
  [4, 20_000],
  [86_400, 20_000],
])('a block %i seconds after the previous block yields at most %i activities from ranges', (seconds, most) => {
  const half = most / 2;
  expect(countsOf([half, half], seconds)).toEqual([half, half]);
  expect(countsOf([half, half, 1], seconds)).toEqual([half, 0, 1]);
});

it('the ranges of contracts with the fewest tokens are indexed first', () => {
  expect(countsOf([10_000, 10_000, 5_000, 501], 2)).toEqual([0, 0, 5_000, 501]);
  expect(countsOf([10_000, 10_000, 5_000, 501], 4)).toEqual([10_000, 0, 5_000, 501]);
  const several = [1, 2, 3].map((at) => range(at, contract(1), [at * 100, at * 100 + 99]));
  const counts = readAll([range(0, contract(0), [1, 250]), ...several], 0).map(({ records }) => records.length);
  expect(counts).toEqual([250, 100, 100, 0]);
});

it('ranges do not reduce the budget for batches and single transfers', () => {
  const single = logOf({ logIndex: 3, topics: [TRANSFER, topic(1), topic(2)], data: data(5) });
  const full = range(0, contract(0), [1, 500]);
  const readings = readAll([full, batch(1, contract(1), [1, 2]), batch(2, contract(0), [1]), single], 0);
  expect(readings.map(({ records }) => records.length)).toEqual([500, 2, 1, 1]);
});

it('the budget limits every chain to the capacity of one indexer', () => {
  const ranges = fc.array(fc.integer({ min: 1, max: 12_000 }), { maxLength: 60 });
  const blocks = fc.array(fc.record({ ranges, seconds: fc.nat(15) }), { minLength: 1, maxLength: 6 });
  const property = fc.property(blocks, (generatedBlocks) => {
    for (const { ranges: tokens, seconds } of generatedBlocks) {
      const logs = tokens.map((count, at) => ({
        logIndex: at,
        contract: contract(at),
        tokens: BigInt(count),
        isRange: true,
      }));
      const omitted = findOverBudget(logs, BLOCK_LIMITS, seconds);
      const indexed = tokens.reduce((sum, count, at) => sum + (omitted.has(at) ? 0 : count), 0);
      expect(indexed).toBeLessThanOrEqual(Math.max(500, 5_000 * seconds));
    }
  });
  fc.assert(property);
});

it("a block's budget does not depend on the range in which the block is read", () => {
  const logSpecs = fc.array(fc.record({ contractNumber: fc.nat(3), tokens: fc.integer({ min: 1, max: 30 }) }), {
    maxLength: 8,
  });
  const chain = fc.array(fc.record({ seconds: fc.nat(2), logSpecs }), { minLength: 2, maxLength: 8 });
  const limits = { itemsPerContract: 40, itemsFromRanges: (elapsed: number) => 20 + 20 * elapsed };
  const property = fc.property(chain, fc.nat(7), (generatedBlocks, cut) => {
    const hashOf = (number: number) => `0x${word(number)}`;
    let timestampS = 0;
    const blocks = generatedBlocks.map(({ seconds: elapsed }, number) => {
      timestampS += elapsed;
      return { number, hash: hashOf(number), parentHash: hashOf(number), timestampS, logsBloom: Buffer.alloc(0) };
    });
    const logs = generatedBlocks.flatMap(({ logSpecs: specsOfBlock }, number) =>
      specsOfBlock.map(({ contractNumber, tokens }, at) => ({
        ...range(at, contract(contractNumber), [1, tokens]),
        blockNumber: number,
        blockHash: hashOf(number),
      })),
    );
    const readFrom = (from: number) => {
      const parentTimestampS = from === 0 ? null : blocks[from - 1]!.timestampS;
      const part = {
        blocks: blocks.slice(from),
        logs: logs.filter(({ blockNumber }) => blockNumber >= from),
        parentTimestampS,
      };
      return [...createReadActivities(settings, limits)(part)].map(({ log, reading }) => [
        log.blockNumber,
        reading.records.length,
      ]);
    };
    const from = Math.min(cut, generatedBlocks.length - 1);
    expect(readFrom(from)).toEqual(readFrom(0).filter(([number]) => number! >= from));
  });
  fc.assert(property);
});

const item = (kind: number, token: string, [id, amount]: readonly [number, number]) => [kind, token, id, amount];
function orderLog(
  [offerer, recipient]: readonly [number, number],
  offer: readonly (number | string)[][],
  consideration: readonly (number | string)[][],
): ChainLog {
  const offerData = [offer.length, ...offer.flat()];
  const head = [topic(77), accountAt(recipient), 128, 128 + 32 * offerData.length];
  const all = [...head, ...offerData, consideration.length, ...consideration.flat()];
  return logOf({ address: MARKET, topics: [ORDER_FULFILLED, topic(offerer), topic(0)], data: data(...all) });
}

const nft = item(2, TOKEN, [9, 1]);
const soldNft = { contract_type: 'ERC721', contract_address: TOKEN, token_id: '9', amount: '1' };
const coin = (kind: number, token: string, [amount, to]: readonly [number, number]) => [
  ...item(kind, token, [0, amount]),
  accountAt(to),
];

it('an order that offers an NFT is a sale to the fulfiller, and payments to third parties are its fees', () => {
  const native = accountAt(0);
  const log = orderLog([1, 2], [nft], [coin(0, native, [900, 1]), coin(0, native, [75, 3]), coin(0, native, [25, 4])]);
  const fees = [3, 4].map((to, index) => ({ amount: ['75', '25'][index], type: 'ROYALTY', recipient: accountAt(to) }));
  expect(detailsIn(log)).toEqual([
    {
      type: 'sale',
      order_id: topic(77),
      to: accountAt(2),
      from: accountAt(1),
      asset: [soldNft],
      payment: {
        token: { contract_type: 'NATIVE', symbol: 'ETH' },
        price_excluding_fees: '900',
        price_including_fees: '1000',
        fees,
      },
    },
  ]);
});

it('an order that offers a currency is a sale by the fulfiller, and its fees are deducted from the offer', () => {
  const money = accountAt(500);
  const log = orderLog([1, 2], [item(1, money, [0, 1_000])], [[...nft, accountAt(1)], coin(1, money, [30, 3])]);
  expect(detailsIn(log)).toMatchObject([
    {
      type: 'sale',
      to: accountAt(1),
      from: accountAt(2),
      asset: [soldNft],
      payment: {
        token: { contract_type: 'ERC20', contract_address: money },
        price_excluding_fees: '970',
        price_including_fees: '1000',
      },
    },
  ]);
});

it('an order is not a sale outside a marketplace, with several contracts or currencies, or without a fulfiller', () => {
  const paid = coin(0, accountAt(0), [9, 1]);
  const good = orderLog([1, 2], [nft], [paid]);
  expect(detailsIn(good)).toHaveLength(1);
  expect(detailsIn({ ...good, address: TOKEN })).toEqual([]);
  expect(read(orderLog([1, 2], [nft, item(2, MARKET, [1, 1])], [paid]), 0).unread).toBe('several-contracts');
  expect(read(orderLog([1, 2], [nft], [paid, coin(1, TOKEN, [9, 1])]), 0).unread).toBe('several-currencies');
  expect(read(orderLog([1, 0], [nft], [paid]), 0).unread).toBe('no-party');
  const many = Array.from({ length: 1_000 }, (_, id) => item(2, TOKEN, [id, 1]));
  expect(read(orderLog([1, 2], many, [paid]), 0).unread).toBe('too-long');
});

const deposited = eventTopicOf('Deposited(address,address,address,uint256)');
const withdrawn = eventTopicOf('Withdrawn(address,address,uint256)');

it('a configured bridge event is a deposit or withdrawal only if the configured contract emits it', () => {
  const asset = { contract_type: 'ERC20', contract_address: TOKEN };
  const log = logOf({ address: BRIDGE, topics: [deposited, topic(TOKEN), topic(2)], data: data(1, 60) });
  expect(detailsIn(log)).toEqual([{ type: 'deposit', to: accountAt(2), amount: '60', asset }]);
  expect(detailsIn({ ...log, address: TOKEN })).toEqual([]);
  const withdrawal = logOf({ address: BRIDGE, topics: [withdrawn, topic(2)], data: data(TOKEN, 61) });
  expect(detailsIn(withdrawal)).toEqual([{ type: 'withdrawal', from: accountAt(2), amount: '61', asset }]);
  expect(read({ ...log, data: '0x' }, 0).unread).toBe('malformed');
});

it('parsing the bridge settings fails for an event that could not be decoded', () => {
  const contract = BRIDGE;
  expect(() => parseBridge({ contract })).toThrow('needs a deposit or a withdrawal');
  expect(() => parseBridge({ contract, deposit: 'Deposited' })).toThrow('Name(type [indexed] [name], …)');
  expect(() => parseBridge({ contract, deposit: 'D(address who)' })).toThrow('lacks amount and token');
  expect(() => parseBridge({ contract, deposit: 'D(string who, uint256 amount, address token)' })).toThrow('32 bytes');
});
