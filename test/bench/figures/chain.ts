import { measureAccepted } from '../chain/accept.ts';
import { measureBackfill } from '../chain/backfill.ts';
import { openChainApiOf } from '../chain/chain-api.ts';
import { lagChainOf, measureLag } from '../chain/lag.ts';
import { mintChainOf, openMintScene } from '../chain/mint-scene.ts';
import { measureMints } from '../chain/mints.ts';
import { openReady } from '../chain/open-ready.ts';
import { CANNED_CHAIN_NUMBER } from '../chain/open-replayer.ts';
import type { Bench, Figure, Row } from '../figure.ts';

/** Minting, and what an indexer makes of a chain: rates beside bare clients, and how far the history is behind finality. */
export const chain: Figure = {
  name: 'chain',
  optional: true,
  async measure(bench) {
    const served = await measureServed(bench);
    // Last, and without a writer: what it publishes is a hundred times what comes in otherwise.
    return [...served, ...(await take('backfill', () => measureBackfill(bench)))];
  },
};

/** Each part takes minutes: what it saw is told at once, in case the next one fails. */
async function take(name: string, measure: () => Promise<Row[]>): Promise<Row[]> {
  console.error(`${name} …`);
  const rows = await measure();
  for (const row of rows)
    console.error(
      `  ${row.case}: ${row.ours} ${row.unit}, ${row.beside} ${row.theirs}, ratio ${row.ratio}; ${row.also}`,
    );
  return rows;
}

/** What needs the chain API and the activity writer. */
async function measureServed(bench: Bench): Promise<Row[]> {
  const opened: { close(): Promise<void> }[] = [];
  const keep = <T extends { close(): Promise<void> }>(part: T): T => {
    opened.push(part);
    return part;
  };
  try {
    const scene = keep(await openMintScene(bench));
    // Before the chain API, which is not ready until a writer has told how far the history reaches.
    const writer = keep(await openReady(bench, 'activity-writer'));
    const chains = [
      { name: mintChainOf(bench), id: `eip155:${scene.chain.id}` },
      { name: lagChainOf(bench), id: `eip155:${CANNED_CHAIN_NUMBER}` },
    ];
    const api = keep(await openChainApiOf(bench, chains));
    const lag = await take('history behind finality', () => measureLag(bench, api));
    const mints = await take('mints', () => measureMints(bench, { scene, api, writer }));
    // Behind the mints, and with no minter left: what is accepted here is never minted.
    const accepted = await take('accepted requests', () => measureAccepted(bench, { api, scene }));
    return [...accepted, ...mints, ...lag];
  } finally {
    for (const part of opened.reverse()) await part.close();
  }
}
