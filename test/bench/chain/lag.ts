import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, type Row, toRow } from '../figure.ts';
import type { Server } from '../gateway-servers.ts';
import { waitFor } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import { openHistoryReader } from './history-reader.ts';
import { openIndexer } from './indexer.ts';
import { openNodeReader } from './node-reader.ts';
import { FINAL_DEPTH, openReplayer, type Replayer } from './open-replayer.ts';

const LOGS_A_BLOCK = 100;
const BLOCK_MS = 1_000;
const BLOCKS = 60;
const BLOCKS_MIN = 10;
/** Warm-up blocks, final from the beginning. */
const FIRST_BLOCKS = 20;
const WARM_UP_BLOCKS = 10;
/** The indexer's interval of polls. */
const POLL_MS = 1_000;
const SEEN_MAX_MS = 60_000;

/** Name, in the topics of a bench, of the chain whose blocks come at a steady rate. */
export const lagChainOf = ({ environmentId }: Bench): string => `${environmentId}-pace`;

/**
 * Time from when a block is final at the node until the history has its activities, with one block a second. The
 * activity writer runs.
 */
export async function measureLag(bench: Bench, api: Server): Promise<Row[]> {
  const blocks = Math.max(BLOCKS_MIN, Math.round(BLOCKS * bench.scale));
  const chain = lagChainOf(bench);
  const node = await openReplayer(bench, { logsABlock: LOGS_A_BLOCK, head: FIRST_BLOCKS - 1 + FINAL_DEPTH });
  try {
    const indexer = await openIndexer(bench, node, { name: chain, pollMs: POLL_MS });
    const history = openHistoryReader(api, chain, LOGS_A_BLOCK);
    const floor = openNodeReader(node, POLL_MS);
    try {
      const isSeen = (number: number) => async () => history.seenAtMs.has(number);
      const first = FIRST_BLOCKS + WARM_UP_BLOCKS;
      await waitFor('the first blocks are seen', isSeen(FIRST_BLOCKS - 1), { measured: indexer, maxMs: SEEN_MAX_MS });
      const finalAtMs = await finish(node, FIRST_BLOCKS, first + blocks);
      const last = first + blocks - 1;
      await waitFor('the last block is seen', isSeen(last), { measured: indexer, maxMs: SEEN_MAX_MS });
      const lagsOf = (seenAtMs: ReadonlyMap<number, number>) =>
        Array.from({ length: blocks }, (_, at) => seenAtMs.get(first + at)! - finalAtMs.get(first + at)!);
      return toRows(lagsOf(history.seenAtMs), lagsOf(floor.seenAtMs));
    } finally {
      await Promise.all([history.close(), floor.close()]).finally(() => indexer.close());
    }
  } finally {
    await node.close();
  }
}

/** Makes blocks final at a steady rate. @returns the time of each */
async function finish(node: Replayer, from: number, to: number): Promise<ReadonlyMap<number, number>> {
  const finalAtMs = new Map<number, number>();
  const startMs = performance.now();
  for (let number = from; number < to; number++) {
    const early = startMs + (number - from) * BLOCK_MS - performance.now();
    if (early > 0) await delay(early);
    finalAtMs.set(number, performance.now());
    await node.setHead(number + FINAL_DEPTH);
  }
  return finalAtMs;
}

function toRows(ours: readonly number[], floor: readonly number[]): Row[] {
  const names = {
    figure: 'chain',
    case: `history behind finality, ${LOGS_A_BLOCK} logs a block, a block a second`,
    beside: 'floor: asks the node for the logs as often',
  };
  const most = `most ${Math.round(Math.max(...ours))} ms of ${ours.length} blocks`;
  return [0.5, 0.99].map((q) =>
    toRow({
      ...names,
      unit: `ms, p${q * 100}`,
      ours: quantileOf(ours, q),
      theirs: quantileOf(floor, q),
      also:
        q === 0.5
          ? `of it waits by its settings: up to ${POLL_MS} ms until it looks, and 1 s the age of a block of rows`
          : most,
    }),
  );
}
