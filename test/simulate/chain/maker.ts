import { type ActivityType, toTimestamp } from '@playline/contracts';
import { createRandom, type Random } from '@playline/testkit/random';
import { type Run, toMessageId } from '../run.ts';
import {
  type Blocks,
  type Contract,
  type Contracts,
  correctPayment,
  createBlocks,
  createContracts,
  createHoldings,
  createPayments,
  type Details,
  type Holdings,
  type Lot,
  type MadeActivity,
  type Nft,
} from './activities.ts';

/** What somebody does: the type and the details of an activity. */
export interface Action {
  readonly type: ActivityType;
  readonly details: Details;
}

export interface Actions {
  /** Makes the next action, and moves its assets between holders. */
  next(): Action;
}

export interface ActionsOptions {
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

/** Actions of holders who give only what they have. Withdrawals leave the chain; deposits bring new assets. */
export function createActions({ random, contracts, holdings, addressOf }: ActionsOptions): Actions {
  const people = Array.from({ length: HOLDERS }, addressOf);
  // Few people are involved in most actions.
  const drawPerson = () => people[Math.floor(HOLDERS * random.next() ** 2)]!;
  const paymentOf = createPayments({ random, contracts, drawPerson });
  const makeLot = createMakeLot(random, drawPerson);
  const receive = (type: 'mint' | 'deposit'): Action => {
    const lot = makeLot(contracts.draw(ALL));
    holdings.add(lot);
    return { type, details: { to: lot.holder, ...thingOf(lot) } };
  };
  const partOf = (lot: Lot): Lot =>
    lot.amount === 1n || random.chance(0.3)
      ? lot
      : { ...lot, amount: 1n + (lot.amount * BigInt(random.integer(0, 999))) / 1000n };
  const send = (type: 'burn' | 'withdrawal' | 'transfer'): Action => {
    const held = holdings.draw(contracts.draw(ALL));
    if (held === null) return receive('mint');
    const lot = partOf(held);
    holdings.take(lot);
    if (type !== 'transfer') return { type, details: { from: lot.holder, ...thingOf(lot) } };
    const to = drawPerson();
    holdings.add({ ...lot, holder: to });
    return { type, details: { from: lot.holder, to, ...thingOf(lot) } };
  };
  const sell = (): Action => {
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

export interface CorrectionsOptions {
  readonly random: Random;
  readonly blocks: Blocks;
  readonly contracts: readonly Contract[];
  readonly holdings: Holdings;
}

/**
 * Creates the function that makes a later version of an activity. It differs from every earlier one: prices and amounts
 * only rise, a place in a block is added or moves on. Chain, type, contract and `indexed_at` stay.
 */
export function createCorrect(options: CorrectionsOptions): (activity: MadeActivity) => MadeActivity {
  const { random, blocks } = options;
  return (activity) => {
    const { blockchain_metadata: place, details } = activity;
    if (place === null) return { ...activity, blockchain_metadata: blocks.next() };
    const raised = random.chance(0.7) ? raiseAmount(activity, options) : null;
    if (raised !== null) return raised;
    if (details.payment !== undefined && random.chance(0.8)) {
      const payment = correctPayment(details.payment, BigInt(random.integer(1, 1_000)) * 10n ** 12n);
      return { ...activity, details: { ...details, payment } };
    }
    const log = String(Number(place.log_index ?? '0') + random.integer(1, 3));
    return { ...activity, blockchain_metadata: { ...place, log_index: log } };
  };
}

/** Raises the amount of a mint; the extra tokens go to its holder. */
function raiseAmount(activity: MadeActivity, options: CorrectionsOptions): MadeActivity | null {
  const { type, details } = activity;
  const { asset, to, amount } = details;
  if (type !== 'mint' || Array.isArray(asset) || asset.contract_type !== 'ERC20') return null;
  const contract = options.contracts.find(({ address }) => address === asset.contract_address);
  if (contract === undefined || to === undefined || amount === undefined) return null;
  const more = BigInt(options.random.integer(1, 1_000)) * 10n ** 15n;
  options.holdings.add({ contract, tokenId: null, holder: to, amount: more });
  return { ...activity, details: { ...details, amount: String(BigInt(amount) + more) } };
}

/** An activity and its number in the run, which is part of its id. */
export interface Made {
  readonly sequence: number;
  readonly activity: MadeActivity;
}

/** Makes the activities of a chain, in the order of its blocks. */
export interface Maker {
  /** The most active first. */
  readonly contracts: readonly Contract[];
  readonly random: Random;
  /** The next activity, not indexed yet. */
  make(): Made;
  /** The activity as indexed now: in microseconds close to the clock, each later than the one before. */
  index(made: Made, nowMs: number): Made;
  /** A later version of it. */
  correct(made: Made): Made;
  /** The same with another number and id, for an activity that never happened. */
  toStranger(made: Made): Made;
}

/** Share of deposits and withdrawals by an exchange, which have no place in a block. */
const OFF_CHAIN_SHARE = 0.3;
const ADDRESS_DIGITS = 40;

/** Depends only on the seed, except for ids, addresses and times. @param chain its name */
export function createMaker(run: Run, chain: string): Maker {
  const random = createRandom(run.seed);
  // Contains the run's tag, so that runs with the same seed share no contract.
  const addressOf = () => `0x${run.tag}${random.hex(ADDRESS_DIGITS - run.tag.length)}`;
  const [contracts, holdings] = [createContracts(random, addressOf), createHoldings(random)];
  const blocks = createBlocks(random);
  const actions = createActions({ random, contracts, holdings, addressOf });
  const correct = createCorrect({ random, blocks, contracts: contracts.all, holdings });
  let taken = 0;
  let lastUs = 0;
  return {
    contracts: contracts.all,
    random,
    make: () => {
      const { type, details } = actions.next();
      const place = blocks.next();
      const isOffChain = (type === 'deposit' || type === 'withdrawal') && random.chance(OFF_CHAIN_SHARE);
      const sequence = taken++;
      const blockchain_metadata = isOffChain ? null : place;
      const id = toMessageId(run, sequence);
      return { sequence, activity: { id, chain, type, indexed_at: '', blockchain_metadata, details } };
    },
    index: ({ sequence, activity }, nowMs) => {
      lastUs = Math.max(lastUs + 1, nowMs * 1_000 + random.integer(0, 999));
      return { sequence, activity: { ...activity, indexed_at: toTimestamp(lastUs) } };
    },
    correct: ({ sequence, activity }) => ({ sequence, activity: correct(activity) }),
    toStranger: ({ activity }) => {
      const sequence = taken++;
      return { sequence, activity: { ...activity, id: toMessageId(run, sequence) } };
    },
  };
}
