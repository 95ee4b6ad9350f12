import { CANNED_CHAIN_ID, lagChainOf, measureBackfill, measureLag } from '../chain/indexing.ts';
import { measureAccepted, measureMints, mintChainOf, openMintScene } from '../chain/minting.ts';
import type { Bench, Figure, Row } from '../figure.ts';
import { withOpened } from '../opened.ts';
import { startChainApi, startService } from '../services.ts';

export const chain: Figure = {
  name: 'chain',
  optional: true,
  async measure(bench) {
    const serviceRows = await measureServices(bench);
    // Runs last and without a writer, because the backfill publishes 100 times as many records as all other parts.
    return [...serviceRows, ...(await report('backfill', () => measureBackfill(bench)))];
  },
};

/** Prints rows immediately, because each measurement takes minutes and a later one may fail. */
async function report(name: string, measure: () => Promise<Row[]>): Promise<Row[]> {
  console.error(`${name} …`);
  const rows = await measure();
  for (const row of rows)
    console.error(
      `  ${row.case}: ${row.value} ${row.unit}, ${row.peer} ${row.peerValue}, ratio ${row.ratio}; ${row.notes}`,
    );
  return rows;
}

const measureServices = (bench: Bench): Promise<Row[]> =>
  withOpened(async (keep) => {
    const scene = await openMintScene(bench, keep);
    // Starts before the chain API, which is not ready until a writer has published the watermark.
    const writer = keep(await startService(bench, 'activity-writer'));
    const chains = [
      { name: mintChainOf(bench), id: `eip155:${scene.chain.id}` },
      { name: lagChainOf(bench), id: `eip155:${CANNED_CHAIN_ID}` },
    ];
    const api = keep(await startChainApi(bench, chains));
    const lag = await report('lag behind finality', () => measureLag(bench, api));
    const mints = await report('mints', () => measureMints(bench, { scene, api, writer }));
    // Runs without a minter, so that these requests stay pending.
    const accepted = await report('accepted requests', () => measureAccepted(bench, { api, scene }));
    return [...accepted, ...mints, ...lag];
  });
