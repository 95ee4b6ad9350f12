import type { Random } from '../simulate/random.ts';
import type { MadeActivity } from './activity.ts';
import type { Blocks } from './blocks.ts';
import type { Contract } from './contracts.ts';
import type { Holdings } from './holdings.ts';
import { correctPayment } from './payments.ts';

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
