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

/** An activity of the model, with the members of an import line; addresses in lower case. */
export interface MadeActivity {
  id: string;
  chain: string;
  type: ActivityType;
  indexed_at: string;
  blockchain_metadata: Metadata | null;
  details: Details;
}

/** The contract under which readers find it. */
export function contractAddressOf({ details: { asset } }: Pick<MadeActivity, 'details'>): string {
  return (Array.isArray(asset) ? asset[0]! : asset).contract_address;
}

/** A contract with assets that are traded. */
export interface Contract {
  readonly kind: 'ERC20' | 'ERC721' | 'ERC1155';
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
}

/** The contracts of a run, the most active first. */
export interface Contracts {
  readonly all: readonly Contract[];
  /** Draws a contract, active ones far more often. @param kinds only of these kinds */
  draw(kinds: readonly Contract['kind'][]): Contract;
}

/** By activity, as on a game's chain: first one collection that everybody trades, its currency, its consumables. */
const KINDS: readonly Contract['kind'][] = [
  ...(['ERC721', 'ERC20', 'ERC1155', 'ERC721', 'ERC721', 'ERC1155'] as const),
  ...(['ERC20', 'ERC721', 'ERC721', 'ERC20', 'ERC1155', 'ERC721'] as const),
  ...(['ERC721', 'ERC20', 'ERC721', 'ERC1155', 'ERC20', 'ERC721'] as const),
];
/** Zipf's law: the second contract gets half of the first one's activities, the tenth a thirteenth. */
const ZIPF_EXPONENT = 1.1;

export function createContracts(random: Random, addressOf: () => string): Contracts {
  const all = KINDS.map((kind): Contract => ({ kind, address: addressOf() }));
  const heatOf = all.map((_, rank) => 1 / (rank + 1) ** ZIPF_EXPONENT);
  const draw = (kinds: readonly Contract['kind'][]) => {
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

/** Generates places in blocks, in ascending order. */
export interface Blocks {
  next(): Metadata;
}

/** Shares of the activities that start a new transaction, and a new block. */
const TRANSACTION_SHARE = 0.5;
const BLOCK_SHARE = 0.12;

/** Ascending blocks with several transactions each, with several logs each. */
export function createBlocks(random: Random): Blocks {
  let block = random.integer(15_000_000, 20_000_000);
  let [transaction, log, hash] = [0, -1, random.hex(64)];
  return {
    next: () => {
      if (random.chance(BLOCK_SHARE)) {
        block += random.integer(1, 3);
        [transaction, log, hash] = [0, -1, random.hex(64)];
      } else if (random.chance(TRANSACTION_SHARE)) {
        transaction++;
        hash = random.hex(64);
      }
      // Leaves room for logs of other kinds.
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

/** The amount that one holder has of one asset. */
export interface Lot {
  readonly contract: Contract;
  /** Null for an ERC-20. */
  readonly tokenId: string | null;
  readonly holder: string;
  /** Above zero. */
  readonly amount: bigint;
}

/** Who has what, so that every transfer is possible. */
export interface Holdings {
  /** Adds to what the holder already has of this asset. */
  add(lot: Lot): void;
  /** @throws RangeError when the holder does not have that much */
  take(lot: Lot): void;
  /** Any lot of the contract; null when there is none. */
  draw(contract: Contract): Lot | null;
  /** Lots of one holder among those of a contract, at most `max`, in no order. */
  ofHolder(contract: Contract, holder: string, max: number): Lot[];
}

/** Maximum number of lots to search for those of one holder: a run may have thousands. */
const LOOKED_AT_MAX = 200;

export function createHoldings(random: Random): Holdings {
  const listOf = new Map<Contract, Lot[]>();
  /** Index of a lot in its list, by contract, asset and holder. */
  const places = new Map<string, number>();
  const keyOf = ({ contract, tokenId, holder }: Lot) => `${contract.address} ${tokenId ?? ''} ${holder}`;
  const lotsOf = (contract: Contract) => {
    const lots = listOf.get(contract) ?? [];
    listOf.set(contract, lots);
    return lots;
  };
  const remove = (lots: Lot[], place: number) => {
    places.delete(keyOf(lots[place]!));
    const last = lots.pop()!;
    if (place === lots.length) return;
    lots[place] = last;
    places.set(keyOf(last), place);
  };
  return {
    add: (lot) => {
      const lots = lotsOf(lot.contract);
      const place = places.get(keyOf(lot));
      if (place !== undefined) lots[place] = { ...lot, amount: lots[place]!.amount + lot.amount };
      else places.set(keyOf(lot), lots.push(lot) - 1);
    },
    take: (lot) => {
      const lots = lotsOf(lot.contract);
      const place = places.get(keyOf(lot));
      const held = place === undefined ? 0n : lots[place]!.amount;
      if (place === undefined || held < lot.amount) throw new RangeError('the holder does not have that much');
      if (held === lot.amount) remove(lots, place);
      else lots[place] = { ...lot, amount: held - lot.amount };
    },
    draw: (contract) => {
      const lots = lotsOf(contract);
      return lots.length === 0 ? null : random.pick(lots);
    },
    ofHolder: (contract, holder, max) =>
      lotsOf(contract)
        .slice(-LOOKED_AT_MAX)
        .filter((lot) => lot.holder === holder)
        .slice(0, max),
  };
}

export interface PaymentsOptions {
  readonly random: Random;
  readonly contracts: Contracts;
  readonly drawPerson: () => string;
}

const NATIVE_SHARE = 0.6;
/** Royalties of a sale, in percent of the price. */
const ROYALTIES = [[], [5], [5], [2, 5]] as const;

/** Prices with royalties, in the chain's coin or in a token. The buyer's balance is not modelled. */
export function createPayments({ random, contracts, drawPerson }: PaymentsOptions): () => Payment {
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

/** The same payment with a higher price, as after an indexer has read the logs again. */
export function correctPayment(payment: Payment, more: bigint): Payment {
  const add = (text: string) => String(BigInt(text) + more);
  return {
    ...payment,
    price_excluding_fees: add(payment.price_excluding_fees),
    price_including_fees: add(payment.price_including_fees),
  };
}
