import { measureAccepted } from '../chain/accept.ts';
import { measureBackfill } from '../chain/backfill.ts';
import { openChainApiOf } from '../chain/chain-api.ts';
import { lagChainOf, measureLag } from '../chain/lag.ts';
import { mintChainOf, openMintScene } from '../chain/mint-scene.ts';
import { measureMints } from '../chain/mints.ts';
import { openReady } from '../chain/open-ready.ts';
import { CANNED_CHAIN_NUMBER } from '../chain/open-replayer.ts';
import type { Bench, Figure, Row } from '../figure.ts';

/** Rates of minting and indexing beside bare clients, and the lag of the history behind finality. */
export const chain: Figure = {
  name: 'chain',
  optional: true,
  async measure(bench) {
    const served = await measureServed(bench);
    // Last and without a writer, because the backfill publishes a hundred times more than the other parts.
    return [...served, ...(await take('backfill', () => measureBackfill(bench)))];
  },
};

/** Each part takes minutes, so its rows are printed at once, in case the next part fails. */
async function take(name: string, measure: () => Promise<Row[]>): Promise<Row[]> {
  console.error(`${name} …`);
  const rows = await measure();
  for (const row of rows)
    console.error(
      `  ${row.case}: ${row.ours} ${row.unit}, ${row.beside} ${row.theirs}, ratio ${row.ratio}; ${row.also}`,
    );
  return rows;
}

/** The parts that need the chain API and the activity writer. */
async function measureServed(bench: Bench): Promise<Row[]> {
  const opened: { close(): Promise<void> }[] = [];
  const keep = <T extends { close(): Promise<void> }>(part: T): T => {
    opened.push(part);
    return part;
  };
  try {
    const scene = keep(await openMintScene(bench));
    // Starts before the chain API, which is ready only when a writer has published the watermark of the history.
    const writer = keep(await openReady(bench, 'activity-writer'));
    const chains = [
      { name: mintChainOf(bench), id: `eip155:${scene.chain.id}` },
      { name: lagChainOf(bench), id: `eip155:${CANNED_CHAIN_NUMBER}` },
    ];
    const api = keep(await openChainApiOf(bench, chains));
    const lag = await take('history behind finality', () => measureLag(bench, api));
    const mints = await take('mints', () => measureMints(bench, { scene, api, writer }));
    // After the mints and without a minter, so the requests accepted here are never minted.
    const accepted = await take('accepted requests', () => measureAccepted(bench, { api, scene }));
    return [...accepted, ...mints, ...lag];
  } finally {
    for (const part of opened.reverse()) await part.close();
  }
}
