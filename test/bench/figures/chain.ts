import { measureAccepted } from '../chain/accept.ts';
import { measureBackfill } from '../chain/backfill.ts';
import { openChainApiOf } from '../chain/chain-api.ts';
import { lagChainOf, measureLag } from '../chain/lag.ts';
import { mintChainOf, openMintScene } from '../chain/mint-scene.ts';
import { measureMints } from '../chain/mints.ts';
import { CANNED_CHAIN_NUMBER } from '../chain/open-replayer.ts';
import { openConsumerService } from '../consumer-process.ts';
import type { Bench, Figure, Row } from '../figure.ts';

/** Minting, and what an indexer makes of a chain: rates beside the bare clients, and how far the history is behind. */
export const chain: Figure = {
  name: 'chain',
  optional: true,
  async measure(bench) {
    const served = await measureServed(bench);
    // Last, and without a writer: what it publishes is a hundred times what comes in otherwise.
    return [...served, ...(await measureBackfill(bench))];
  },
};

/** What needs the chain API and the activity writer. */
async function measureServed(bench: Bench): Promise<Row[]> {
  const scene = await openMintScene(bench);
  try {
    const api = await openChainApiOf(bench, [
      { name: mintChainOf(bench), id: `eip155:${scene.chain.id}` },
      { name: lagChainOf(bench), id: `eip155:${CANNED_CHAIN_NUMBER}` },
    ]);
    try {
      const writer = await openConsumerService(bench, 'activity-writer');
      try {
        console.error('history behind finality …');
        const lag = await measureLag(bench, api);
        console.error('mints …');
        const mints = await measureMints(bench, { scene, api, writer });
        console.error('accepted requests …');
        // Behind the mints, and with no minter left: what is accepted here is never minted.
        return [...(await measureAccepted(bench, { api, scene })), ...mints, ...lag];
      } finally {
        await writer.close();
      }
    } finally {
      await api.close();
    }
  } finally {
    await scene.close();
  }
}
