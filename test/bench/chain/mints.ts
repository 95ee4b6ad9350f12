import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, type Row, scaled, toRow } from '../figure.ts';
import { type FloorFigure, runFloor } from '../floors/run.ts';
import { withOpened } from '../opened.ts';
import { type Measured, memoryPeakMibOf, waitFor, watchCpu } from '../processes.ts';
import { medianOf } from '../quantile.ts';
import { type MintServers, sendFirstOrder, sendOrder, waitUntilMinted } from './mint-orders.ts';
import { BLOCK_MS, POLL_MS } from './mint-scene.ts';

const ASSETS_PER_ORDER = 100;
const ORDERS = 50;
const SINGLES = 5;
/** Shifts each request, so that requests arrive at different moments relative to blocks and polls. */
const SINGLE_SHIFT_MS = 230;
const SINGLE_POLL_MS = 25;
/** The minter's limit of open nonces: its default, and the highest value that the setting allows. */
const [USUAL_OPEN, MOST_OPEN] = [8, 64];
const TOKENS_MAX_MS = 60_000;

interface MintParts extends MintServers {
  readonly writer: Measured;
}

/** Time and rate of mints from POST to `succeeded`, for many and for single ones. The floor is viem on the same chain. */
export async function measureMints(bench: Bench, parts: MintParts): Promise<Row[]> {
  const orders = scaled(bench, ORDERS, 5);
  const first = await sendFirstOrder(bench, parts);
  const rows: Row[] = [];
  for (const open of [USUAL_OPEN, MOST_OPEN])
    await withOpened(async (keep) => {
      const minter = keep(await parts.scene.startMinter(open));
      await waitUntilMinted(bench, parts, first);
      await mintOrders(bench, parts, 1);
      rows.push(...(await measureOrders(bench, { ...parts, minter }, { orders, open })));
      if (open === USUAL_OPEN) rows.push(await measureSingles(bench, parts));
    });
  return rows;
}

async function mintOrders(bench: Bench, parts: MintParts, orders: number): Promise<void> {
  const before = await parts.scene.countTokens();
  const sent = [];
  for (let order = 0; order < orders; order++) sent.push(await sendOrder(bench, parts, ASSETS_PER_ORDER));
  for (const referenceId of sent) await waitUntilMinted(bench, parts, referenceId);
  const isComplete = async () => (await parts.scene.countTokens()) === before + orders * ASSETS_PER_ORDER;
  await waitFor('the contract has a token for each asset', isComplete, { maxMs: TOKENS_MAX_MS });
}

async function measureOrders(
  bench: Bench,
  parts: MintParts & { minter: Measured },
  { orders, open }: { orders: number; open: number },
): Promise<Row[]> {
  const { minter, api, writer } = parts;
  const watches = [minter, api, writer].map(({ pid }) => watchCpu(pid));
  const startMs = performance.now();
  await mintOrders(bench, parts, orders);
  const seconds = (performance.now() - startMs) / 1_000;
  const [minterS = 0, apiS = 0, writerS = 0] = watches.map((spent) => spent());
  const peak = memoryPeakMibOf(minter.pid);
  const floor = await runMintFloor(bench, parts, { batches: orders, assets: ASSETS_PER_ORDER, open });
  const mints = orders * ASSETS_PER_ORDER;
  const per = (cpuSeconds: number) => ((cpuSeconds * 1_000) / mints).toFixed(2);
  const names = {
    case: `${mints} mints in orders of ${ASSETS_PER_ORDER}, ${INTERVAL}, ${open} open nonces`,
    peer: 'floor: viem alone, the same batches',
  };
  return [
    toRow({
      ...names,
      unit: 'mints per second',
      value: mints / seconds,
      peerValue: mints / floor.seconds,
      notes: `${seconds.toFixed(1)} s, floor ${floor.seconds.toFixed(1)} s`,
    }),
    toRow({
      ...names,
      unit: 'mints per CPU-second',
      value: mints / minterS,
      peerValue: mints / floor.cpuSeconds,
      notes: `CPU-ms per mint: minter ${per(minterS)}, chain API ${per(apiS)}, activity writer ${per(writerS)}, viem ${per(floor.cpuSeconds)}; peak ${peak} MiB`,
    }),
  ];
}

const INTERVAL = `a block each ${BLOCK_MS / 1_000} s`;

async function measureSingles(bench: Bench, parts: MintParts): Promise<Row> {
  const count = scaled(bench, SINGLES, 2);
  const ms: number[] = [];
  for (let single = 0; single < count; single++) {
    await delay(SINGLE_SHIFT_MS);
    const startMs = performance.now();
    await waitUntilMinted(bench, parts, await sendOrder(bench, parts, 1), SINGLE_POLL_MS);
    ms.push(performance.now() - startMs);
  }
  const { seconds } = await runMintFloor(bench, parts, { batches: count, assets: 1, open: 1 });
  return toRow({
    case: `one asset from POST to succeeded, ${INTERVAL}`,
    unit: 'ms, median',
    value: medianOf(ms),
    peer: 'floor: viem alone',
    peerValue: (seconds / count) * 1_000,
    notes: `${ms.map((each) => Math.round(each)).join(', ')}; the floor's mean`,
  });
}

const runMintFloor = (
  { environment }: Bench,
  { scene: { chain } }: MintParts,
  { batches, assets, open }: Readonly<Record<'batches' | 'assets' | 'open', number>>,
): Promise<FloorFigure> =>
  runFloor('chain/floor-mints', {
    ...environment,
    NODE_URL: chain.rpc,
    CHAIN_ID: String(chain.id),
    POLL_MS: String(POLL_MS),
    BATCHES: String(batches),
    ASSETS: String(assets),
    OPEN: String(open),
  });
