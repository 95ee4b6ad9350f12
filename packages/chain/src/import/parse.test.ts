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

/** The interface's form of a line, after it was encoded for the log, decoded, and made a row. */
function served(line: unknown): unknown {
  const parsed = parseActivity(line);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return toActivityJson(toActivityRow(activityCodec.decode(activityCodec.encode(parsed.record)), version), CHAIN);
}
const faultsOf = (line: unknown, parse: typeof parseActivity | typeof parseToken = parseActivity) => {
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
const ofMint = (details: Line): Line => ({ ...mint, details: { ...(mint.details as Line), ...details } });
const ofSale = (details: Line): Line => ({ ...sale, details: { ...saleDetails, ...details } });

it('an imported activity may have the latest indexed_at that the log can represent', () => {
  const last = toTimestamp(MICROSECONDS_MAX);
  expect(served({ ...mint, indexed_at: last })).toMatchObject({ indexed_at: last });
  expect(faultsOf({ ...mint, indexed_at: toTimestamp(MICROSECONDS_MAX + 1) })).toEqual(['indexed_at INVALID_VALUE']);
});

it('an imported activity belongs to the chain that it names when any chain is accepted', () => {
  const parseAny = createParseActivity({ ...context, chain: null });
  expect(parseAny({ ...mint, chain: 'some-chain' })).toMatchObject({ ok: true, record: { chain: 'some-chain' } });
  expect(faultsOf({ ...mint, chain: 'Some Chain' }, parseAny)).toEqual(['chain INVALID_FORMAT']);
  expect(faultsOf({ ...mint, chain: undefined }, parseAny)).toEqual(['chain MISSING_REQUIRED_FIELD']);
  expect(faultsOf({ ...mint, chain: 'some-chain' })).toEqual(['chain INVALID_VALUE']);
});

it('an imported activity gives the same text whatever the order of its members and with unknown ones', () => {
  const turned = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(turned);
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.entries(value).reverse();
    return Object.fromEntries([['stranger', 1], ...members.map(([name, member]) => [name, turned(member)])]);
  };
  fc.assert(
    fc.property(activityLines(CHAIN.name), (line) => {
      expect(parseActivity(turned(line))).toEqual(parseActivity(line));
    }),
  );
  const parsed = parseActivity(turned(sale));
  if (!parsed.ok) throw new Error('refused');
  expect(Object.keys(JSON.parse(parsed.record.details))).toEqual(['order_id', 'to', 'from', 'asset', 'payment']);
  expect(parsed.record.contractAddress).toEqual(Buffer.from(addressOf(7).slice(2), 'hex'));
});

it.each([
  ['no object', null, ['message INVALID_FORMAT']],
  ['no object but a list', [], ['message INVALID_FORMAT']],
  ['of no known type', { ...mint, type: 'gift' }, ['type UNSUPPORTED_TYPE']],
  ['of another chain', { ...mint, chain: 'other' }, ['chain INVALID_VALUE']],
  ['with the chain of the interface', { ...mint, chain: CHAIN }, ['chain INVALID_FORMAT']],
  ['without an id', { ...mint, id: undefined }, ['id MISSING_REQUIRED_FIELD']],
  ['with a blank id', { ...mint, id: ' ' }, ['id MISSING_REQUIRED_FIELD']],
  ['with an id that is no UUID', { ...mint, id: '5' }, ['id INVALID_FORMAT']],
  ['with a day that does not exist', { ...mint, indexed_at: '2026-02-30T00:00:00Z' }, ['indexed_at INVALID_FORMAT']],
  ['from before 1970', { ...mint, indexed_at: '1969-12-31T23:59:59Z' }, ['indexed_at INVALID_VALUE']],
  ['from a time that is not exact', { ...mint, indexed_at: '2256-01-01T00:00:00Z' }, ['indexed_at INVALID_VALUE']],
  ['without details', { ...mint, details: null }, ['details MISSING_REQUIRED_FIELD']],
  ['without its metadata', { ...mint, blockchain_metadata: undefined }, ['blockchain_metadata MISSING_REQUIRED_FIELD']],
  [
    'with half of its metadata',
    { ...mint, blockchain_metadata: { ...base.blockchain_metadata, block_number: null } },
    ['blockchain_metadata.block_number MISSING_REQUIRED_FIELD'],
  ],
  [
    'with numbers that another text would be served for',
    {
      ...mint,
      blockchain_metadata: { ...base.blockchain_metadata, block_number: '007', log_index: String(2n ** 64n) },
    },
    ['blockchain_metadata.block_number INVALID_FORMAT', 'blockchain_metadata.log_index INVALID_FORMAT'],
  ],
  ['with an address that is none', ofMint({ to: '0x12' }), ['details.to INVALID_FORMAT']],
  ['with a member missing', ofMint({ amount: undefined }), ['details.amount MISSING_REQUIRED_FIELD']],
  ['with a negative amount', ofMint({ amount: '-1' }), ['details.amount INVALID_FORMAT']],
  ['with a number for a text', ofMint({ amount: 1 }), ['details.amount INVALID_FORMAT']],
  [
    'with an asset of no known kind',
    ofMint({ asset: { ...nft, contract_type: 'ERC404' } }),
    ['details.asset.contract_type INVALID_ENUM'],
  ],
  [
    'with an asset without its kind',
    ofMint({ asset: { ...nft, contract_type: undefined } }),
    ['details.asset.contract_type MISSING_REQUIRED_FIELD'],
  ],
  ['with an asset that is a text', ofMint({ asset: 'ERC721' }), ['details.asset INVALID_FORMAT']],
  [
    'of two contracts in one sale',
    ofSale({ asset: [nft, { ...nft, contract_address: addressOf(8) }] }),
    ['details.asset INVALID_VALUE'],
  ],
  ['of a sale of nothing', ofSale({ asset: [] }), ['details.asset INVALID_VALUE']],
  [
    'of a sale of a token',
    ofSale({ asset: [{ contract_type: 'ERC20', contract_address: addressOf(8) }] }),
    ['details.asset.0.contract_type INVALID_ENUM'],
  ],
  [
    'paid with an NFT',
    ofSale({ payment: { ...payment, token: nft } }),
    ['details.payment.token.contract_type INVALID_ENUM'],
  ],
  [
    'with a fee that is no royalty',
    ofSale({ payment: { ...payment, fees: [{ ...payment.fees[0], type: 'TIP' }] } }),
    ['details.payment.fees.0.type INVALID_ENUM'],
  ],
  ['with half a character', ofSale({ order_id: 'a\ud83d' }), ['details.order_id INVALID_FORMAT']],
])('an imported activity is refused with the path of the field: %s', (_what, line, faults) => {
  expect(faultsOf(line)).toEqual(faults);
});

it('an imported activity reports all errors together', () => {
  const wrong = { ...ofMint({ to: 'x', amount: '' }), id: 'x', chain: 'other' };
  expect(faultsOf(wrong)).toEqual([
    'id INVALID_FORMAT',
    'chain INVALID_VALUE',
    'details.to INVALID_FORMAT',
    'details.amount MISSING_REQUIRED_FIELD',
  ]);
});

it('an imported sale may spell its contract in two ways', () => {
  const contract = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const assets = [contract, contract.toLowerCase()].map((each) => ({ ...nft, contract_address: each }));
  expect(faultsOf(ofSale({ asset: assets }))).toEqual([]);
});

it('any line is parsed or refused without a throw', () => {
  const paths = fc.array(
    fc.constantFrom('details', 'asset', 'payment', 'fees', 'blockchain_metadata', '0', 'type', 'id'),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(activityLines(CHAIN.name), paths, fc.anything(), (line, path, value) => {
      const damaged = structuredClone(line);
      let at: Line = damaged;
      for (const name of path.slice(0, -1)) {
        const next = at[name];
        if (typeof next !== 'object' || next === null) break;
        at = next as Line;
      }
      at[path.at(-1)!] = value;
      const parsed = parseActivity(damaged);
      if (parsed.ok) toActivityRow(parsed.record, version);
      else expect(parsed.errors.length).toBeGreaterThan(0);
    }),
    { numRuns: 500 },
  );
});

it('an imported activity has only the details of its type', () => {
  for (const type of ACTIVITY_TYPES) expect(faultsOf({ ...mint, type, details: {} }).length).toBeGreaterThan(1);
});

it.each([
  ['no object', 'token', ['message INVALID_FORMAT']],
  ['of no known status', { verification_status: 'maybe' }, ['verification_status INVALID_ENUM']],
  ['with a contract that is none', { contract_address: '0x' }, ['contract_address INVALID_FORMAT']],
  ['with more decimals than a contract has', { decimals: 256 }, ['decimals INVALID_VALUE']],
  ['with half a decimal', { decimals: 0.5 }, ['decimals INVALID_FORMAT']],
  ['with a name that is too long', { name: 'x'.repeat(257) }, ['name INVALID_VALUE']],
  ['without a member that may be null', { symbol: undefined }, ['symbol MISSING_REQUIRED_FIELD']],
])('an imported token is refused with the path of the field: %s', (_what, over, faults) => {
  const [line] = fc.sample(tokenLines(CHAIN.name), { numRuns: 1, seed: 1 });
  expect(faultsOf(typeof over === 'string' ? over : { ...line, ...over }, parseToken)).toEqual(faults);
});
