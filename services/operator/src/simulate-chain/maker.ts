import { toTimestamp } from '@playline/contracts';
import { createRandom, type Random } from '../simulate/random.ts';
import { type Run, toMessageId } from '../simulate/run.ts';
import type { MadeActivity } from './activity.ts';
import { createBlocks } from './blocks.ts';
import { type Contract, createContracts } from './contracts.ts';
import { createCorrect } from './corrections.ts';
import { createDeeds } from './deeds.ts';
import { createHoldings } from './holdings.ts';

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
  const deeds = createDeeds({ random, contracts, holdings, addressOf });
  const correct = createCorrect({ random, blocks, contracts: contracts.all, holdings });
  let taken = 0;
  let lastUs = 0;
  return {
    contracts: contracts.all,
    random,
    make: () => {
      const { type, details } = deeds.next();
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
