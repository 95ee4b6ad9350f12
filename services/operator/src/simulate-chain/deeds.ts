import type { ActivityType } from '@playline/contracts';
import type { Random } from '../simulate/random.ts';
import type { Details, Nft } from './activity.ts';
import type { Contract, Contracts } from './contracts.ts';
import type { Holdings, Lot } from './holdings.ts';
import { createPayments } from './payments.ts';

/** What somebody does: the type and the details of an activity. */
export interface Deed {
  readonly type: ActivityType;
  readonly details: Details;
}

export interface Deeds {
  /** Makes the next deed, and moves its assets between holders. */
  next(): Deed;
}

export interface DeedsOptions {
  readonly random: Random;
  readonly contracts: Contracts;
  readonly holdings: Holdings;
  readonly addressOf: () => string;
}

const NFTS = ['ERC721', 'ERC1155'] as const;
const ALL = ['ERC20', ...NFTS] as const;

/** As on chains of games: many mints and transfers, a fifth are sales, few burns. */
const SHARES: readonly (readonly [ActivityType, number])[] = [
  ['mint', 0.26],
  ['transfer', 0.3],
  ['sale', 0.2],
  ['deposit', 0.09],
  ['withdrawal', 0.09],
  ['burn', 0.06],
];
const HOLDERS = 400;
/** Tokens of an ERC-1155 contract, each with many holders. */
const STACKS = 12;
/** Share of ERC-721 tokens with the longest id that a contract can store. */
const LONG_ID_SHARE = 0.02;
const BUNDLE_SHARE = 0.15;
const BUNDLE_MAX = 3;

/** Deeds of holders who give only what they have. Withdrawals leave the chain; deposits bring new assets. */
export function createDeeds({ random, contracts, holdings, addressOf }: DeedsOptions): Deeds {
  const people = Array.from({ length: HOLDERS }, addressOf);
  // Few people are involved in most deeds.
  const drawPerson = () => people[Math.floor(HOLDERS * random.next() ** 2)]!;
  const paymentOf = createPayments({ random, contracts, drawPerson });
  const makeLot = createMakeLot(random, drawPerson);
  const receive = (type: 'mint' | 'deposit'): Deed => {
    const lot = makeLot(contracts.draw(ALL));
    holdings.add(lot);
    return { type, details: { to: lot.holder, ...thingOf(lot) } };
  };
  const partOf = (lot: Lot): Lot =>
    lot.amount === 1n || random.chance(0.3)
      ? lot
      : { ...lot, amount: 1n + (lot.amount * BigInt(random.integer(0, 999))) / 1000n };
  const send = (type: 'burn' | 'withdrawal' | 'transfer'): Deed => {
    const held = holdings.draw(contracts.draw(ALL));
    if (held === null) return receive('mint');
    const lot = partOf(held);
    holdings.take(lot);
    if (type !== 'transfer') return { type, details: { from: lot.holder, ...thingOf(lot) } };
    const to = drawPerson();
    holdings.add({ ...lot, holder: to });
    return { type, details: { from: lot.holder, to, ...thingOf(lot) } };
  };
  const sell = (): Deed => {
    const contract = contracts.draw(NFTS);
    const first = holdings.draw(contract);
    if (first === null) return receive('mint');
    const bundle = random.chance(BUNDLE_SHARE) ? holdings.ofHolder(contract, first.holder, BUNDLE_MAX) : [];
    const lots = (bundle.length > 0 ? bundle : [first]).map(partOf);
    const to = drawPerson();
    for (const lot of lots) {
      holdings.take(lot);
      holdings.add({ ...lot, holder: to });
    }
    const details = { order_id: random.hex(32), to, from: first.holder, asset: lots.map(toNft), payment: paymentOf() };
    return { type: 'sale', details };
  };
  return {
    next: () => {
      const type = drawType(random.next());
      if (type === 'mint' || type === 'deposit') return receive(type);
      return type === 'sale' ? sell() : send(type);
    },
  };
}

/** Creates the maker of new assets, each with a holder. */
function createMakeLot(random: Random, drawPerson: () => string): (contract: Contract) => Lot {
  const numbers = new Map<Contract, number>();
  return (contract) => {
    const holder = drawPerson();
    if (contract.kind === 'ERC20')
      return { contract, tokenId: null, holder, amount: BigInt(random.integer(1, 1_000_000)) * 10n ** 18n };
    if (contract.kind === 'ERC1155')
      return { contract, tokenId: String(random.integer(1, STACKS)), holder, amount: BigInt(random.integer(1, 500)) };
    const number = (numbers.get(contract) ?? 0) + 1;
    numbers.set(contract, number);
    const tokenId = random.chance(LONG_ID_SHARE) ? BigInt(`0x${random.hex(63)}`) * 10_000n : 0n;
    return { contract, tokenId: String((tokenId % 2n ** 255n) + BigInt(number)), holder, amount: 1n };
  };
}

/** @param drawn in [0, 1) */
function drawType(drawn: number): ActivityType {
  let left = drawn;
  for (const [type, share] of SHARES) {
    left -= share;
    if (left < 0) return type;
  }
  return 'transfer';
}

const toNft = ({ contract, tokenId, amount }: Lot): Nft => ({
  contract_type: contract.kind as Nft['contract_type'],
  contract_address: contract.address,
  token_id: tokenId ?? '0',
  amount: String(amount),
});

function thingOf(lot: Lot): Pick<Details, 'amount' | 'asset'> {
  const { contract, amount } = lot;
  const asset =
    contract.kind === 'ERC20' ? { contract_type: contract.kind, contract_address: contract.address } : toNft(lot);
  return { amount: String(amount), asset };
}
