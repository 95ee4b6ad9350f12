import type { Random } from '../simulate/random.ts';
import type { Payment } from './activity.ts';
import type { Contracts } from './contracts.ts';

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
