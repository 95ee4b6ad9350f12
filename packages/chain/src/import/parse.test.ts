import { ACTIVITY_TYPES, activityCodec, toTimestamp } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MICROSECONDS_MAX } from '../cursor.ts';
import { toActivityRow } from '../rows.ts';
import { activityLines, type Line, tokenLines } from '../test/lines.ts';
import { addressOf, NOON_US } from '../test/rows.ts';
import { toActivityJson } from '../wire.ts';
import { createParseActivity, createParseToken } from './parse-activity.ts';

const CHAIN = { id: 'eip155:13371', name: 'game-chain' };
const context = { chain: CHAIN.name, traceId: 'ab'.repeat(16) };
const parseActivity = createParseActivity(context);
const parseToken = createParseToken(context);
const version = { updatedAt: NOON_US, partition: 1, offset: 2, loggedAtMs: NOON_US / 1_000 };

/** Parses a line, encodes and decodes its record, and converts the record to a row and then to the API's JSON. */
function toApiJson(line: unknown): unknown {
  const parsed = parseActivity(line);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return toActivityJson(toActivityRow(activityCodec.decode(activityCodec.encode(parsed.record)), version), CHAIN);
}
const errorsOf = (line: unknown, parse: typeof parseActivity | typeof parseToken = parseActivity) => {
  const parsed = parse(line);
  return parsed.ok ? [] : parsed.errors.map(({ field, code }) => `${field} ${code}`);
};

const nft = { contract_type: 'ERC721', contract_address: addressOf(7), token_id: '12', amount: '1' };
const base = {
  id: '7f3f1a5e-1c1d-4b7e-9f1e-0a4f5a2b6c7d',
  chain: CHAIN.name,
  indexed_at: '2026-11-21T08:13:36.000123Z',
  blockchain_metadata: {
    transaction_hash: `0x${'1f'.repeat(32)}`,
    block_number: '5',
    transaction_index: '0',
    log_index: null,
  },
};
const mint: Line = { ...base, type: 'mint', details: { to: addressOf(1), amount: '1', asset: nft } };
const payment = {
  token: { contract_type: 'NATIVE', symbol: 'ETH' },
  price_excluding_fees: '10',
  price_including_fees: '11',
  fees: [{ amount: '1', type: 'ROYALTY', recipient: addressOf(3) }],
};
const saleDetails = { order_id: 'o-1', to: addressOf(1), from: addressOf(2), asset: [nft, nft], payment };
const sale: Line = { ...base, type: 'sale', details: saleDetails };
const mintWith = (details: Line): Line => ({ ...mint, details: { ...(mint.details as Line), ...details } });
const saleWith = (details: Line): Line => ({ ...sale, details: { ...saleDetails, ...details } });

it('the import accepts the latest indexed_at that the log can represent, and rejects the next microsecond', () => {
  const last = toTimestamp(MICROSECONDS_MAX);
  expect(toApiJson({ ...mint, indexed_at: last })).toMatchObject({ indexed_at: last });
  expect(errorsOf({ ...mint, indexed_at: toTimestamp(MICROSECONDS_MAX + 1) })).toEqual(['indexed_at INVALID_VALUE']);
});

it('an import without a fixed chain uses the chain name from each activity', () => {
  const parseAny = createParseActivity({ ...context, chain: null });
  expect(parseAny({ ...mint, chain: 'some-chain' })).toMatchObject({ ok: true, record: { chain: 'some-chain' } });
  expect(errorsOf({ ...mint, chain: 'Some Chain' }, parseAny)).toEqual(['chain INVALID_FORMAT']);
  expect(errorsOf({ ...mint, chain: undefined }, parseAny)).toEqual(['chain MISSING_REQUIRED_FIELD']);
  expect(errorsOf({ ...mint, chain: 'some-chain' })).toEqual(['chain INVALID_VALUE']);
});

it('an imported activity yields the same record in any member order, and its unknown members are ignored', () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed);
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.entries(value).reverse();
    return Object.fromEntries([['unknown', 1], ...members.map(([name, member]) => [name, reversed(member)])]);
  };
  fc.assert(
    fc.property(activityLines(CHAIN.name), (line) => {
      expect(parseActivity(reversed(line))).toEqual(parseActivity(line));
    }),
  );
  const parsed = parseActivity(reversed(sale));
  if (!parsed.ok) throw new Error('rejected');
  expect(Object.keys(JSON.parse(parsed.record.details))).toEqual(['order_id', 'to', 'from', 'asset', 'payment']);
  expect(parsed.record.contractAddress).toEqual(Buffer.from(addressOf(7).slice(2), 'hex'));
});

it.each([
  ['that is not an object', null, ['message INVALID_FORMAT']],
  ['that is a list', [], ['message INVALID_FORMAT']],
  ['with an unknown type', { ...mint, type: 'gift' }, ['type UNSUPPORTED_TYPE']],
  ['from another chain', { ...mint, chain: 'other' }, ['chain INVALID_VALUE']],
  ['with a chain object', { ...mint, chain: CHAIN }, ['chain INVALID_FORMAT']],
  ['without an id', { ...mint, id: undefined }, ['id MISSING_REQUIRED_FIELD']],
  ['with a blank id', { ...mint, id: ' ' }, ['id MISSING_REQUIRED_FIELD']],
  ['with an id that is not a UUID', { ...mint, id: '5' }, ['id INVALID_FORMAT']],
  ['with a day that does not exist', { ...mint, indexed_at: '2026-02-30T00:00:00Z' }, ['indexed_at INVALID_FORMAT']],
  ['with a time before 1970', { ...mint, indexed_at: '1969-12-31T23:59:59Z' }, ['indexed_at INVALID_VALUE']],
  ['with a time after 2255', { ...mint, indexed_at: '2256-01-01T00:00:00Z' }, ['indexed_at INVALID_VALUE']],
  ['without details', { ...mint, details: null }, ['details MISSING_REQUIRED_FIELD']],
  ['without metadata', { ...mint, blockchain_metadata: undefined }, ['blockchain_metadata MISSING_REQUIRED_FIELD']],
  [
    'with incomplete metadata',
    { ...mint, blockchain_metadata: { ...base.blockchain_metadata, block_number: null } },
    ['blockchain_metadata.block_number MISSING_REQUIRED_FIELD'],
  ],
  [
    'with numbers that are not in canonical form',
    {
      ...mint,
      blockchain_metadata: { ...base.blockchain_metadata, block_number: '007', log_index: String(2n ** 64n) },
    },
    ['blockchain_metadata.block_number INVALID_FORMAT', 'blockchain_metadata.log_index INVALID_FORMAT'],
  ],
  ['with an invalid address', mintWith({ to: '0x12' }), ['details.to INVALID_FORMAT']],
  ['with a missing member', mintWith({ amount: undefined }), ['details.amount MISSING_REQUIRED_FIELD']],
  ['with a negative amount', mintWith({ amount: '-1' }), ['details.amount INVALID_FORMAT']],
  ['with a number instead of a string', mintWith({ amount: 1 }), ['details.amount INVALID_FORMAT']],
  [
    'with an unknown asset type',
    mintWith({ asset: { ...nft, contract_type: 'ERC404' } }),
    ['details.asset.contract_type INVALID_ENUM'],
  ],
  [
    'with a missing asset type',
    mintWith({ asset: { ...nft, contract_type: undefined } }),
    ['details.asset.contract_type MISSING_REQUIRED_FIELD'],
  ],
  ['with a string as its asset', mintWith({ asset: 'ERC721' }), ['details.asset INVALID_FORMAT']],
  [
    'that is a sale of assets from two contracts',
    saleWith({ asset: [nft, { ...nft, contract_address: addressOf(8) }] }),
    ['details.asset INVALID_VALUE'],
  ],
  ['that is a sale without assets', saleWith({ asset: [] }), ['details.asset INVALID_VALUE']],
  [
    'that is a sale of an ERC-20 token',
    saleWith({ asset: [{ contract_type: 'ERC20', contract_address: addressOf(8) }] }),
    ['details.asset.0.contract_type INVALID_ENUM'],
  ],
  [
    'that is a sale paid for with an NFT',
    saleWith({ payment: { ...payment, token: nft } }),
    ['details.payment.token.contract_type INVALID_ENUM'],
  ],
  [
    'that has a fee other than a royalty',
    saleWith({ payment: { ...payment, fees: [{ ...payment.fees[0], type: 'TIP' }] } }),
    ['details.payment.fees.0.type INVALID_ENUM'],
  ],
  ['with a lone surrogate', saleWith({ order_id: 'a\ud83d' }), ['details.order_id INVALID_FORMAT']],
])('the import rejects an activity %s, and each error names its field', (_what, line, errors) => {
  expect(errorsOf(line)).toEqual(errors);
});

it('the import reports all errors in an activity together', () => {
  const wrong = { ...mintWith({ to: 'x', amount: '' }), id: 'x', chain: 'other' };
  expect(errorsOf(wrong)).toEqual([
    'id INVALID_FORMAT',
    'chain INVALID_VALUE',
    'details.to INVALID_FORMAT',
    'details.amount MISSING_REQUIRED_FIELD',
  ]);
});

it('the import accepts a sale whose contract addresses differ only in case', () => {
  const contract = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const assets = [contract, contract.toLowerCase()].map((each) => ({ ...nft, contract_address: each }));
  expect(errorsOf(saleWith({ asset: assets }))).toEqual([]);
});

it('the import parses or rejects any line without throwing', () => {
  const paths = fc.array(
    fc.constantFrom('details', 'asset', 'payment', 'fees', 'blockchain_metadata', '0', 'type', 'id'),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(activityLines(CHAIN.name), paths, fc.anything(), (line, path, value) => {
      const invalidLine = structuredClone(line);
      let at: Line = invalidLine;
      for (const name of path.slice(0, -1)) {
        const next = at[name];
        if (typeof next !== 'object' || next === null) break;
        at = next as Line;
      }
      at[path.at(-1)!] = value;
      const parsed = parseActivity(invalidLine);
      if (parsed.ok) toActivityRow(parsed.record, version);
      else expect(parsed.errors.length).toBeGreaterThan(0);
    }),
    { numRuns: 500 },
  );
});

it('the import requires the details that the activity type defines', () => {
  for (const type of ACTIVITY_TYPES) expect(errorsOf({ ...mint, type, details: {} }).length).toBeGreaterThan(1);
});

it.each([
  ['that is not an object', 'token', ['message INVALID_FORMAT']],
  ['with an unknown status', { verification_status: 'maybe' }, ['verification_status INVALID_ENUM']],
  ['with an invalid contract address', { contract_address: '0x' }, ['contract_address INVALID_FORMAT']],
  ['with more than 255 decimals', { decimals: 256 }, ['decimals INVALID_VALUE']],
  ['with fractional decimals', { decimals: 0.5 }, ['decimals INVALID_FORMAT']],
  ['with a name that is too long', { name: 'x'.repeat(257) }, ['name INVALID_VALUE']],
  ['without a nullable member', { symbol: undefined }, ['symbol MISSING_REQUIRED_FIELD']],
])('the import rejects a token %s, and each error names its field', (_what, overrides, errors) => {
  const [line] = fc.sample(tokenLines(CHAIN.name), { numRuns: 1, seed: 1 });
  expect(errorsOf(typeof overrides === 'string' ? overrides : { ...line, ...overrides }, parseToken)).toEqual(errors);
});
