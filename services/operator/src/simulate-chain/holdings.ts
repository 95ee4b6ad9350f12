import type { Random } from '../simulate/random.ts';
import type { Contract } from './contracts.ts';

/** The amount that one holder has of one asset. */
export interface Lot {
  readonly contract: Contract;
  /** Null for an ERC-20. */
  readonly tokenId: string | null;
  readonly holder: string;
  /** Above zero. */
  readonly amount: bigint;
}

/** Who has what, so that nobody gives what they do not have. */
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
      if (place === undefined || held < lot.amount) throw new RangeError('nobody gives what he does not have');
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
