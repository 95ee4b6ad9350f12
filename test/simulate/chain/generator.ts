import { type ActivityType, toTimestamp } from '@playline/contracts';
import { createRandom, type Random } from '@playline/testkit/random';
import { type Run, toMessageId } from '../run.ts';

interface Nft {
  contract_type: 'ERC721' | 'ERC1155';
  contract_address: string;
  token_id: string;
  amount: string;
}
interface Fungible {
  contract_type: 'ERC20';
  contract_address: string;
}
interface Payment {
  token: Fungible | { contract_type: 'NATIVE'; symbol: string };
  price_excluding_fees: string;
  price_including_fees: string;
  fees: { amount: string; type: 'ROYALTY'; recipient: string }[];
}
interface Details {
  order_id?: string;
  from?: string;
  to?: string;
  amount?: string;
  asset: Nft | Fungible | Nft[];
  payment?: Payment;
}
interface Metadata {
  transaction_hash: string;
  block_number: string;
  transaction_index: string;
  log_index: string | null;
}

export interface GeneratedActivity {
  id: string;
  chain: string;
  type: ActivityType;
  indexed_at: string;
  blockchain_metadata: Metadata | null;
  details: Details;
}

export function contractAddressOf({ details: { asset } }: Pick<GeneratedActivity, 'details'>): string {
  return (Array.isArray(asset) ? asset[0]! : asset).contract_address;
}

export interface Contract {
  readonly kind: 'ERC20' | 'ERC721' | 'ERC1155';
  readonly address: string;
}

type Contracts = ReturnType<typeof createContracts>;

/** The most active contracts first: a widely traded collection, its currency, consumables, and so on. */
const KINDS: readonly Contract['kind'][] = [
  ...(['ERC721', 'ERC20', 'ERC1155', 'ERC721', 'ERC721', 'ERC1155'] as const),
  ...(['ERC20', 'ERC721', 'ERC721', 'ERC20', 'ERC1155', 'ERC721'] as const),
  ...(['ERC721', 'ERC20', 'ERC721', 'ERC1155', 'ERC20', 'ERC721'] as const),
];
/** Zipf's law: the second contract has half as many activities as the first, and the tenth a thirteenth. */
const ZIPF_EXPONENT = 1.1;

function createContracts(random: Random, addressOf: () => string) {
  const all = KINDS.map((kind): Contract => ({ kind, address: addressOf() }));
  const weightOf = all.map((_, rank) => 1 / (rank + 1) ** ZIPF_EXPONENT);
  const draw = (kinds: readonly Contract['kind'][]): Contract => {
    const ranks = all.flatMap(({ kind }, rank) => (kinds.includes(kind) ? [rank] : []));
    let remaining = random.next() * ranks.reduce((sum, rank) => sum + weightOf[rank]!, 0);
    for (const rank of ranks) {
      remaining -= weightOf[rank]!;
      if (remaining <= 0) return all[rank]!;
    }
    return all[ranks[0]!]!;
  };
  return { all, draw };
}

/** Probability that an activity starts a new transaction or a new block. */
const TRANSACTION_CHANCE = 0.5;
const BLOCK_CHANCE = 0.12;

function createBlocks(random: Random) {
  let block = random.integer(15_000_000, 20_000_000);
  let [transaction, log, hash] = [0, -1, random.hex(64)];
  return {
    next: (): Metadata => {
      if (random.chance(BLOCK_CHANCE)) {
        block += random.integer(1, 3);
        [transaction, log, hash] = [0, -1, random.hex(64)];
      } else if (random.chance(TRANSACTION_CHANCE)) {
        transaction++;
        hash = random.hex(64);
      }
      log += random.integer(1, 3);
      return {
        transaction_hash: `0x${hash}`,
        block_number: String(block),
        transaction_index: String(transaction),
        log_index: String(log),
      };
    },
  };
}

interface Lot {
  readonly contract: Contract;
  /** Null for ERC-20. */
  readonly tokenId: string | null;
  readonly holder: string;
  readonly amount: bigint;
}

type Holdings = ReturnType<typeof createHoldings>;

const SEARCHED_LOTS_MAX = 200;

/** Tracks which holder has which assets, so that every transfer is possible. */
function createHoldings(random: Random) {
  const listOf = new Map<Contract, Lot[]>();
  const indexes = new Map<string, number>();
  const keyOf = ({ contract, tokenId, holder }: Lot) => `${contract.address} ${tokenId ?? ''} ${holder}`;
  const lotsOf = (contract: Contract) => {
    const lots = listOf.get(contract) ?? [];
    listOf.set(contract, lots);
    return lots;
  };
  const remove = (lots: Lot[], index: number) => {
    indexes.delete(keyOf(lots[index]!));
    const last = lots.pop()!;
    if (index === lots.length) return;
    lots[index] = last;
    indexes.set(keyOf(last), index);
  };
  return {
    add: (lot: Lot): void => {
      const lots = lotsOf(lot.contract);
      const index = indexes.get(keyOf(lot));
      if (index !== undefined) lots[index] = { ...lot, amount: lots[index]!.amount + lot.amount };
      else indexes.set(keyOf(lot), lots.push(lot) - 1);
    },
    /** @throws RangeError if the holder's balance is too low */
    take: (lot: Lot): void => {
      const lots = lotsOf(lot.contract);
      const index = indexes.get(keyOf(lot));
      const held = index === undefined ? 0n : lots[index]!.amount;
      if (index === undefined || held < lot.amount) throw new RangeError('the holder’s balance is too low');
      if (held === lot.amount) remove(lots, index);
      else lots[index] = { ...lot, amount: held - lot.amount };
    },
    draw: (contract: Contract): Lot | null => {
      const lots = lotsOf(contract);
      return lots.length === 0 ? null : random.pick(lots);
    },
    ofHolder: (contract: Contract, holder: string, max: number): Lot[] =>
      lotsOf(contract)
        .slice(-SEARCHED_LOTS_MAX)
        .filter((lot) => lot.holder === holder)
        .slice(0, max),
  };
}

const NATIVE_FRACTION = 0.6;
const ROYALTIES = [[], [5], [5], [2, 5]] as const;

/** @returns a function that generates a price with royalties, in the native coin or a token */
function createPayments(random: Random, contracts: Contracts, drawPerson: () => string): () => Payment {
  return () => {
    const price = BigInt(random.integer(1, 1_000_000)) * 10n ** 12n;
    const token: Payment['token'] = random.chance(NATIVE_FRACTION)
      ? { contract_type: 'NATIVE', symbol: 'ETH' }
      : { contract_type: 'ERC20', contract_address: contracts.draw(['ERC20']).address };
    const amounts = random.pick<readonly number[]>(ROYALTIES).map((percent) => (price * BigInt(percent)) / 100n);
    return {
      token,
      price_excluding_fees: String(price),
      price_including_fees: String(amounts.reduce((sum, amount) => sum + amount, price)),
      fees: amounts.map((amount) => ({ amount: String(amount), type: 'ROYALTY', recipient: drawPerson() })),
    };
  };
}

function correctPayment(payment: Payment, more: bigint): Payment {
  const add = (text: string) => String(BigInt(text) + more);
  return {
    ...payment,
    price_excluding_fees: add(payment.price_excluding_fees),
    price_including_fees: add(payment.price_including_fees),
  };
}

type Action = Pick<GeneratedActivity, 'type' | 'details'>;

interface World {
  readonly random: Random;
  readonly blocks: ReturnType<typeof createBlocks>;
  readonly contracts: Contracts;
  readonly holdings: Holdings;
  readonly newAddress: () => string;
}

const NFTS = ['ERC721', 'ERC1155'] as const;
const ALL = ['ERC20', ...NFTS] as const;

const FRACTIONS: readonly (readonly [ActivityType, number])[] = [
  ['mint', 0.26],
  ['transfer', 0.3],
  ['sale', 0.2],
  ['deposit', 0.09],
  ['withdrawal', 0.09],
  ['burn', 0.06],
];
const HOLDERS = 400;
const STACKS = 12;
/** Fraction of ERC-721 tokens whose id has the maximum length. */
const LONG_ID_FRACTION = 0.02;
const BUNDLE_FRACTION = 0.15;
const BUNDLE_MAX = 3;

// Returns a function that generates the next action. Holders send only assets that they hold.
function createActions({ random, contracts, holdings, newAddress }: World): () => Action {
  const people = Array.from({ length: HOLDERS }, newAddress);
  // A few people perform most actions.
  const drawPerson = () => people[Math.floor(HOLDERS * random.next() ** 2)]!;
  const paymentOf = createPayments(random, contracts, drawPerson);
  const generateLot = createGenerateLot(random, drawPerson);
  const receive = (type: 'mint' | 'deposit'): Action => {
    const lot = generateLot(contracts.draw(ALL));
    holdings.add(lot);
    return { type, details: { to: lot.holder, ...amountOf(lot) } };
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
    if (type !== 'transfer') return { type, details: { from: lot.holder, ...amountOf(lot) } };
    const to = drawPerson();
    holdings.add({ ...lot, holder: to });
    return { type, details: { from: lot.holder, to, ...amountOf(lot) } };
  };
  const sell = (): Action => {
    const contract = contracts.draw(NFTS);
    const first = holdings.draw(contract);
    if (first === null) return receive('mint');
    const bundle = random.chance(BUNDLE_FRACTION) ? holdings.ofHolder(contract, first.holder, BUNDLE_MAX) : [];
    const lots = (bundle.length > 0 ? bundle : [first]).map(partOf);
    const to = drawPerson();
    for (const lot of lots) {
      holdings.take(lot);
      holdings.add({ ...lot, holder: to });
    }
    const details = { order_id: random.hex(32), to, from: first.holder, asset: lots.map(toNft), payment: paymentOf() };
    return { type: 'sale', details };
  };
  return () => {
    const type = drawType(random.next());
    if (type === 'mint' || type === 'deposit') return receive(type);
    return type === 'sale' ? sell() : send(type);
  };
}

/** @returns a function that generates a new asset and its holder */
function createGenerateLot(random: Random, drawPerson: () => string): (contract: Contract) => Lot {
  const numbers = new Map<Contract, number>();
  return (contract) => {
    const holder = drawPerson();
    if (contract.kind === 'ERC20')
      return { contract, tokenId: null, holder, amount: BigInt(random.integer(1, 1_000_000)) * 10n ** 18n };
    if (contract.kind === 'ERC1155')
      return { contract, tokenId: String(random.integer(1, STACKS)), holder, amount: BigInt(random.integer(1, 500)) };
    const number = (numbers.get(contract) ?? 0) + 1;
    numbers.set(contract, number);
    const tokenId = random.chance(LONG_ID_FRACTION) ? BigInt(`0x${random.hex(63)}`) * 10_000n : 0n;
    return { contract, tokenId: String((tokenId % 2n ** 255n) + BigInt(number)), holder, amount: 1n };
  };
}

function drawType(drawn: number): ActivityType {
  let remaining = drawn;
  for (const [type, fraction] of FRACTIONS) {
    remaining -= fraction;
    if (remaining < 0) return type;
  }
  return 'transfer';
}

const toNft = ({ contract, tokenId, amount }: Lot): Nft => ({
  contract_type: contract.kind as Nft['contract_type'],
  contract_address: contract.address,
  token_id: tokenId ?? '0',
  amount: String(amount),
});

function amountOf(lot: Lot): Pick<Details, 'amount' | 'asset'> {
  const { contract, amount } = lot;
  const asset =
    contract.kind === 'ERC20' ? { contract_type: contract.kind, contract_address: contract.address } : toNft(lot);
  return { amount: String(amount), asset };
}

// Generates a later version of an activity that differs from all earlier versions: it adds or increases the position in
// a block, or raises a price or an amount. Chain, type, contract and `indexed_at` never change.
function correct(activity: GeneratedActivity, world: World): GeneratedActivity {
  const { random, blocks } = world;
  const { blockchain_metadata: position, details } = activity;
  if (position === null) return { ...activity, blockchain_metadata: blocks.next() };
  const raised = random.chance(0.7) ? raiseAmount(activity, world) : null;
  if (raised !== null) return raised;
  if (details.payment !== undefined && random.chance(0.8)) {
    const payment = correctPayment(details.payment, BigInt(random.integer(1, 1_000)) * 10n ** 12n);
    return { ...activity, details: { ...details, payment } };
  }
  const log = String(Number(position.log_index ?? '0') + random.integer(1, 3));
  return { ...activity, blockchain_metadata: { ...position, log_index: log } };
}

function raiseAmount(activity: GeneratedActivity, { random, contracts, holdings }: World): GeneratedActivity | null {
  const { type, details } = activity;
  const { asset, to, amount } = details;
  if (type !== 'mint' || Array.isArray(asset) || asset.contract_type !== 'ERC20') return null;
  const contract = contracts.all.find(({ address }) => address === asset.contract_address);
  if (contract === undefined || to === undefined || amount === undefined) return null;
  const more = BigInt(random.integer(1, 1_000)) * 10n ** 15n;
  holdings.add({ contract, tokenId: null, holder: to, amount: more });
  return { ...activity, details: { ...details, amount: String(BigInt(amount) + more) } };
}

export interface SequencedActivity {
  readonly sequence: number;
  readonly activity: GeneratedActivity;
}

export type Generator = ReturnType<typeof createGenerator>;

/** Fraction of deposits and withdrawals through an exchange, which have no position in a block. */
const OFF_CHAIN_FRACTION = 0.3;
const ADDRESS_DIGITS = 40;

/**
 * Generates activities that depend only on the seed, except for ids, addresses and timestamps.
 * @param chain the chain's name
 */
export function createGenerator(run: Run, chain: string) {
  const random = createRandom(run.seed);
  // Starts with the run's tag, so that runs with the same seed have different contracts.
  const newAddress = () => `0x${run.tag}${random.hex(ADDRESS_DIGITS - run.tag.length)}`;
  const [contracts, holdings] = [createContracts(random, newAddress), createHoldings(random)];
  const world: World = { random, contracts, holdings, blocks: createBlocks(random), newAddress };
  const nextAction = createActions(world);
  let taken = 0;
  let lastUs = 0;
  return {
    contracts: contracts.all,
    random,
    generate: (): SequencedActivity => {
      const { type, details } = nextAction();
      const position = world.blocks.next();
      const isOffChain = (type === 'deposit' || type === 'withdrawal') && random.chance(OFF_CHAIN_FRACTION);
      const sequence = taken++;
      const blockchain_metadata = isOffChain ? null : position;
      const id = toMessageId(run, sequence);
      return { sequence, activity: { id, chain, type, indexed_at: '', blockchain_metadata, details } };
    },
    index: ({ sequence, activity }: SequencedActivity, nowMs: number): SequencedActivity => {
      lastUs = Math.max(lastUs + 1, nowMs * 1_000 + random.integer(0, 999));
      return { sequence, activity: { ...activity, indexed_at: toTimestamp(lastUs) } };
    },
    correct: ({ sequence, activity }: SequencedActivity): SequencedActivity => ({
      sequence,
      activity: correct(activity, world),
    }),
    /** Copies an activity with a new sequence number and id, for use in an activity that is never published. */
    toUnpublished: ({ activity }: SequencedActivity): SequencedActivity => {
      const sequence = taken++;
      return { sequence, activity: { ...activity, id: toMessageId(run, sequence) } };
    },
  };
}
