import type { Stores } from '@playline/testkit';
import { runCampaign } from '../../services/minter/src/test/campaign.ts';
import { runStorm } from '../../services/minter/src/test/mint-storm.ts';
import { openMinting } from '../../services/minter/src/test/open-minting.ts';
import { createRow, type FaultTrial, type Row, runSeed, type SeedEnd } from './world/report.ts';

/** Minter faults. `sent` counts requests, `acknowledged` counts final states, `rows` counts tokens on the chain. */
export const MINT_FAULTS = [
  {
    fault: 17,
    tried: 'mint lanes in memory: killed at any step, run twice, disconnected, on a chain with reorganisations',
  },
  { fault: 18, tried: 'minter processes SIGKILL, SIGSTOP, run twice; node SIGKILL, chain blocks replaced' },
] as const satisfies readonly Pick<Row, 'fault' | 'tried'>[];

async function tryInMemory(seed: number): Promise<SeedEnd> {
  const { injected, references, succeeded, failed, tokens } = await runCampaign(seed);
  const count = (pattern: RegExp) =>
    [...injected].reduce((sum, [name, count]) => (pattern.test(name) ? sum + count : sum), 0);
  const effects = {
    kills: count(/^killed/),
    'takeovers of running minters': count(/^takeover/),
    reorganisations: count(/^reorg/),
  };
  return { effects, sent: references, acknowledged: succeeded + failed, published: succeeded, rows: tokens };
}

/** @param stores starts the stores on first use @param options.isChosen selects the `MINT_FAULTS` to run */
export function createMintTrials(
  stores: () => Promise<Stores>,
  { isChosen, seeds }: { readonly isChosen: (fault: Pick<Row, 'fault' | 'tried'>) => boolean; readonly seeds: number },
): FaultTrial[] {
  const tryOnBrokers = async (seed: number): Promise<SeedEnd> => {
    // Opened for each seed, because other faults delete the data in Redis.
    const minting = await openMinting({ stores: await stores() });
    try {
      const { injected: effects, requests, succeeded, failed } = await runStorm(minting, seed);
      return { effects, sent: requests, acknowledged: succeeded + failed, published: succeeded, rows: succeeded };
    } finally {
      await minting.close();
    }
  };
  return MINT_FAULTS.filter(isChosen).map((fault) => {
    const row = createRow(fault, seeds);
    const run = fault.fault === 17 ? tryInMemory : tryOnBrokers;
    return { row, trySeed: (seed) => runSeed(row, seed, () => run(seed)), close: async () => {} };
  });
}
