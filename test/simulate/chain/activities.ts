import type { ActivityType } from '@playline/contracts';
import type { Random } from '@playline/testkit/random';

export interface Nft {
  contract_type: 'ERC721' | 'ERC1155';
  contract_address: string;
  token_id: string;
  amount: string;
}
export interface Fungible {
  contract_type: 'ERC20';
  contract_address: string;
}
export interface Payment {
  token: Fungible | { contract_type: 'NATIVE'; symbol: string };
  price_excluding_fees: string;
  price_including_fees: string;
  fees: { amount: string; type: 'ROYALTY'; recipient: string }[];
}
export interface Details {
  order_id?: string;
  from?: string;
  to?: string;
  amount?: string;
  asset: Nft | Fungible | Nft[];
  payment?: Payment;
}
export interface Metadata {
  transaction_hash: string;
  block_number: string;
  transaction_index: string;
  log_index: string | null;
}

/** An activity as a line of the import, with addresses in lower case. */
export interface MadeActivity {
  id: string;
  chain: string;
  type: ActivityType;
  indexed_at: string;
  blockchain_metadata: Metadata | null;
  details: Details;
}

export function contractAddressOf({ details: { asset } }: Pick<MadeActivity, 'details'>): string {
  return (Array.isArray(asset) ? asset[0]! : asset).contract_address;
}

export interface Contract {
  readonly kind: 'ERC20' | 'ERC721' | 'ERC1155';
  readonly address: string;
}

export type Contracts = ReturnType<typeof createContracts>;

/** By activity, as on a game's chain: first a collection that everyone trades, its currency, its consumables. */
const KINDS: readonly Contract['kind'][] = [
  ...(['ERC721', 'ERC20', 'ERC1155', 'ERC721', 'ERC721', 'ERC1155'] as const),
  ...(['ERC20', 'ERC721', 'ERC721', 'ERC20', 'ERC1155', 'ERC721'] as const),
  ...(['ERC721', 'ERC20', 'ERC721', 'ERC1155', 'ERC20', 'ERC721'] as const),
];
/** Zipf's law: the second contract gets half of the first one's activities, the tenth a thirteenth. */
const ZIPF_EXPONENT = 1.1;

/** The contracts of a run, the most active first. */
export function createContracts(random: Random, addressOf: () => string) {
  const all = KINDS.map((kind): Contract => ({ kind, address: addressOf() }));
  const heatOf = all.map((_, rank) => 1 / (rank + 1) ** ZIPF_EXPONENT);
  /** Draws a contract of some kinds, active ones far more often. */
  const draw = (kinds: readonly Contract['kind'][]): Contract => {
    const ranks = all.flatMap(({ kind }, rank) => (kinds.includes(kind) ? [rank] : []));
    let left = random.next() * ranks.reduce((sum, rank) => sum + heatOf[rank]!, 0);
    for (const rank of ranks) {
      left -= heatOf[rank]!;
      if (left <= 0) return all[rank]!;
    }
    return all[ranks[0]!]!;
  };
  return { all, draw };
}

/** Shares of the activities that start a new transaction, and a new block. */
const TRANSACTION_SHARE = 0.5;
const BLOCK_SHARE = 0.12;

export function createBlocks(random: Random) {
  let block = random.integer(15_000_000, 20_000_000);
  let [transaction, log, hash] = [0, -1, random.hex(64)];
  return {
    next: (): Metadata => {
      if (random.chance(BLOCK_SHARE)) {
        block += random.integer(1, 3);
        [transaction, log, hash] = [0, -1, random.hex(64)];
      } else if (random.chance(TRANSACTION_SHARE)) {
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

export interface Lot {
  readonly contract: Contract;
  /** Null for an ERC-20. */
  readonly tokenId: string | null;
  readonly holder: string;
  readonly amount: bigint;
}

export type Holdings = ReturnType<typeof createHoldings>;

const SEARCHED_MAX = 200;

/** Who has what, so that every transfer is possible. */
export function createHoldings(random: Random) {
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
    /** @throws RangeError when the holder does not have that much */
    take: (lot: Lot): void => {
      const lots = lotsOf(lot.contract);
      const index = indexes.get(keyOf(lot));
      const held = index === undefined ? 0n : lots[index]!.amount;
      if (index === undefined || held < lot.amount) throw new RangeError('the holder does not have that much');
      if (held === lot.amount) remove(lots, index);
      else lots[index] = { ...lot, amount: held - lot.amount };
    },
    draw: (contract: Contract): Lot | null => {
      const lots = lotsOf(contract);
      return lots.length === 0 ? null : random.pick(lots);
    },
    /** Lots of one holder among those of a contract, at most `max`, in no order. */
    ofHolder: (contract: Contract, holder: string, max: number): Lot[] =>
      lotsOf(contract)
        .slice(-SEARCHED_MAX)
        .filter((lot) => lot.holder === holder)
        .slice(0, max),
  };
}

const NATIVE_SHARE = 0.6;
/** Royalties of a sale, in percent of the price. */
const ROYALTIES = [[], [5], [5], [2, 5]] as const;

/** Prices with royalties, in the chain's coin or in a token. The buyer's balance is not modelled. */
export function createPayments(random: Random, contracts: Contracts, drawPerson: () => string): () => Payment {
  return () => {
    const price = BigInt(random.integer(1, 1_000_000)) * 10n ** 12n;
    const token: Payment['token'] = random.chance(NATIVE_SHARE)
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

export function correctPayment(payment: Payment, more: bigint): Payment {
  const add = (text: string) => String(BigInt(text) + more);
  return {
    ...payment,
    price_excluding_fees: add(payment.price_excluding_fees),
    price_including_fees: add(payment.price_including_fees),
  };
}
