import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, type Row, toRow } from '../figure.ts';
import { type FloorFigure, runFloor } from '../floors/run.ts';
import type { Server } from '../gateway-servers.ts';
import { type Measured, memoryPeakMibOf, waitFor, watchCpu } from '../processes.ts';
import { medianOf } from '../quantile.ts';
import { sendFirstOrder, sendOrder, waitUntilMinted } from './mint-orders.ts';
import { BLOCK_MS, type MintScene, POLL_MS } from './mint-scene.ts';

const ASSETS_OF_AN_ORDER = 100;
const ORDERS = 50;
const ORDERS_MIN = 5;
const SINGLES = 5;
const SINGLES_MIN = 2;
/** Shifts each request, so that requests arrive at different moments relative to blocks and polls. */
const SINGLE_SHIFT_MS = 230;
/** A fifth of the duration of one poll of the minter. */
const SINGLE_LOOK_MS = 25;
/** The minter's limit of open nonces: its default, and the highest value that the setting allows. */
const USUAL_OPEN = 8;
const MOST_OPEN = 64;
const TOKENS_MAX_MS = 60_000;

export interface MintParts {
  readonly scene: MintScene;
  readonly api: Server;
  readonly writer: Measured;
}

interface Minted {
  readonly seconds: number;
  readonly minterCpuSeconds: number;
  readonly apiCpuSeconds: number;
  readonly writerCpuSeconds: number;
  readonly memoryPeakMib: number;
}

/**
 * Time and rate of mints from POST to `succeeded`, for many at once and for single ones. The floor is viem alone on the
 * same chain.
 */
export async function measureMints(bench: Bench, parts: MintParts): Promise<Row[]> {
  const orders = Math.max(ORDERS_MIN, Math.round(ORDERS * bench.scale));
  const singles = Math.max(SINGLES_MIN, Math.round(SINGLES * bench.scale));
  const rows: Row[] = [];
  const first = await sendFirstOrder(bench, parts);
  for (const open of [USUAL_OPEN, MOST_OPEN]) {
    const minter = await parts.scene.openMinter(open);
    try {
      await waitUntilMinted(bench, parts, first);
      await mintOrders(bench, parts, 1);
      const ours = await measureOrders(bench, { ...parts, minter }, orders);
      const floor = await runMintFloor(bench, parts, { batches: orders, assets: ASSETS_OF_AN_ORDER, open });
      rows.push(...toRows({ mints: orders * ASSETS_OF_AN_ORDER, open }, ours, floor));
      if (open !== USUAL_OPEN) continue;
      const alone = await measureSingles(bench, parts, singles);
      const { seconds = Number.NaN } = await runMintFloor(bench, parts, { batches: singles, assets: 1, open: 1 });
      rows.push(toSingleRow(alone, seconds / singles));
    } finally {
      await minter.close();
    }
  }
  return rows;
}

/** Sends all requests one after the other, and waits for the last asset of each. */
async function mintOrders(bench: Bench, parts: MintParts, orders: number): Promise<void> {
  const before = await parts.scene.countTokens();
  const sent = [];
  for (let order = 0; order < orders; order++) sent.push(await sendOrder(bench, parts, ASSETS_OF_AN_ORDER));
  for (const { referenceId } of sent) await waitUntilMinted(bench, parts, { referenceId });
  const isMade = async () => (await parts.scene.countTokens()) === before + orders * ASSETS_OF_AN_ORDER;
  await waitFor('the contract has a token for each asset', isMade, { maxMs: TOKENS_MAX_MS });
}

async function measureOrders(bench: Bench, parts: MintParts & { minter: Measured }, orders: number): Promise<Minted> {
  const { minter, api, writer } = parts;
  const [ofMinter, ofApi, ofWriter] = [minter, api, writer].map(({ pid }) => watchCpu(pid));
  const startMs = performance.now();
  await mintOrders(bench, parts, orders);
  const seconds = (performance.now() - startMs) / 1_000;
  return {
    seconds,
    minterCpuSeconds: ofMinter!(),
    apiCpuSeconds: ofApi!(),
    writerCpuSeconds: ofWriter!(),
    memoryPeakMib: memoryPeakMibOf(minter.pid),
  };
}

/** Milliseconds of single assets, one after the other. */
async function measureSingles(bench: Bench, parts: MintParts, count: number): Promise<readonly number[]> {
  const ms: number[] = [];
  for (let single = 0; single < count; single++) {
    await delay(SINGLE_SHIFT_MS);
    const { referenceId, sentAtMs } = await sendOrder(bench, parts, 1);
    await waitUntilMinted(bench, parts, { referenceId, lookEveryMs: SINGLE_LOOK_MS });
    ms.push(performance.now() - sentAtMs);
  }
  return ms;
}

function runMintFloor(
  { environment }: Bench,
  { scene: { chain } }: MintParts,
  { batches, assets, open }: Readonly<Record<'batches' | 'assets' | 'open', number>>,
): Promise<FloorFigure> {
  return runFloor('../chain/floor-mints', {
    ...environment,
    NODE_URL: chain.rpc,
    CHAIN_ID: String(chain.id),
    POLL_MS: String(POLL_MS),
    BATCHES: String(batches),
    ASSETS: String(assets),
    OPEN: String(open),
  });
}

const CHAIN = `a block each ${BLOCK_MS / 1_000} s`;

function toRows({ mints, open }: { mints: number; open: number }, ours: Minted, floor: FloorFigure): Row[] {
  const names = {
    figure: 'chain',
    case: `${mints} mints in orders of ${ASSETS_OF_AN_ORDER}, ${CHAIN}, ${open} open nonces`,
    beside: 'floor: viem alone, the same batches',
  };
  const { seconds = Number.NaN } = floor;
  const per = (cpuSeconds: number) => `${((cpuSeconds * 1_000) / mints).toFixed(2)}`;
  return [
    toRow({
      ...names,
      unit: 'mints per second',
      ours: mints / ours.seconds,
      theirs: mints / seconds,
      also: `${ours.seconds.toFixed(1)} s, floor ${seconds.toFixed(1)} s`,
    }),
    toRow({
      ...names,
      unit: 'mints per CPU-second',
      ours: mints / ours.minterCpuSeconds,
      theirs: mints / floor.cpuSeconds,
      also: `CPU-ms a mint: minter ${per(ours.minterCpuSeconds)}, chain API ${per(ours.apiCpuSeconds)}, activity writer ${per(ours.writerCpuSeconds)}, viem ${per(floor.cpuSeconds)}; peak ${ours.memoryPeakMib} MiB`,
    }),
  ];
}

function toSingleRow(ms: readonly number[], floorSeconds: number): Row {
  return toRow({
    figure: 'chain',
    case: `one asset from POST to succeeded, ${CHAIN}`,
    unit: 'ms, median',
    ours: medianOf(ms),
    beside: 'floor: viem alone',
    theirs: floorSeconds * 1_000,
    also: `${ms.map((each) => Math.round(each)).join(', ')}; the floor's mean`,
  });
}
