import { ACTIVITY_TYPES, type ActivityType, toTimestamp, VERIFICATION_STATUSES } from '@playline/contracts';
import fc from 'fast-check';
import { MICROSECONDS_MAX } from '../cursor.ts';

export type Line = Record<string, unknown>;

const hex = (digits: number) =>
  fc
    .tuple(fc.uint8Array({ minLength: digits / 2, maxLength: digits / 2 }), fc.boolean())
    .map(([bytes, isUpper]) => Buffer.from(bytes).toString('hex')[isUpper ? 'toUpperCase' : 'toString']())
    .map((digitsText) => `0x${digitsText}`);
const address = hex(40);
const digits = (bits: bigint) => fc.bigInt({ min: 0n, max: 2n ** bits - 1n }).map(String);
const amount = digits(256n);
const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => text.trim() !== '');

const nftOf = (contract_address: string) =>
  fc.record({
    contract_type: fc.constantFrom('ERC721', 'ERC1155'),
    contract_address: fc.constant(contract_address),
    token_id: amount,
    amount,
  });
const erc20 = fc.record({ contract_type: fc.constant('ERC20'), contract_address: address });
const asset: fc.Arbitrary<Line> = fc.oneof(address.chain(nftOf), erc20);
const native = fc.record({ contract_type: fc.constant('NATIVE'), symbol: name });
const fee = fc.record({ amount, type: fc.constant('ROYALTY'), recipient: address });

const receivedDetails = fc.record({ to: address, amount, asset });
const sentDetails = fc.record({ from: address, amount, asset });
const DETAILS: Record<ActivityType, fc.Arbitrary<Line>> = {
  mint: receivedDetails,
  burn: sentDetails,
  transfer: fc.record({ from: address, to: address, amount, asset }),
  deposit: receivedDetails,
  withdrawal: sentDetails,
  sale: fc.record({
    order_id: name,
    to: address,
    from: address,
    asset: address.chain((contract) => fc.array(nftOf(contract), { minLength: 1, maxLength: 3 })),
    payment: fc.record({
      token: fc.oneof<fc.Arbitrary<Line>[]>(erc20, native),
      price_excluding_fees: amount,
      price_including_fees: amount,
      fees: fc.array(fee, { maxLength: 2 }),
    }),
  }),
};

const metadata = fc.record({
  transaction_hash: hex(64),
  block_number: digits(64n),
  transaction_index: digits(64n),
  log_index: fc.option(digits(64n)),
});

export const activityLines = (chain: string): fc.Arbitrary<Line> =>
  fc.constantFrom(...ACTIVITY_TYPES).chain((type) =>
    fc.record({
      id: fc.uuid(),
      chain: fc.constant(chain),
      type: fc.constant(type),
      details: DETAILS[type],
      indexed_at: fc.nat(MICROSECONDS_MAX).map(toTimestamp),
      blockchain_metadata: fc.option(metadata),
    }),
  );

export const tokenLines = (chain: string): fc.Arbitrary<Line> =>
  fc.record({
    chain: fc.constant(chain),
    contract_address: address,
    root_contract_address: fc.option(address),
    symbol: fc.option(name),
    decimals: fc.option(fc.nat(255)),
    image_url: fc.option(fc.webUrl()),
    name: fc.option(name),
    verification_status: fc.constantFrom(...VERIFICATION_STATUSES),
    is_canonical: fc.boolean(),
    root_chain_id: fc.option(fc.constant('eip155:1')),
    bridge_used: fc.option(name),
  });

export const inLowerCase = (value: unknown): Line =>
  JSON.parse(JSON.stringify(value).replace(/"0x[0-9a-fA-F]{40,64}"/g, (text) => text.toLowerCase())) as Line;
