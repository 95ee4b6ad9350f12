import { setTimeout as delay } from 'node:timers/promises';
import { callRpc } from '@playline/infra/chain';
import { type Bench, type Row, scaled, toRow } from '../figure.ts';
import { withOpened } from '../opened.ts';
import { waitFor } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import { repeatEvery } from '../repeat.ts';
import type { Server } from '../services.ts';
import { FINAL_DEPTH, openReplayer, type Replayer, startIndexer } from './open-replayer.ts';

const LOGS_PER_BLOCK = 100;
const BLOCK_MS = 1_000;
const BLOCKS = 60;
const BLOCKS_MIN = 10;
/** Blocks that are final from the beginning, and further blocks to warm up. */
const FIRST_BLOCKS = 20;
const WARM_UP_BLOCKS = 10;
const POLL_MS = 1_000;
/** Interval of polls of the history: the precision of every measured moment. */
const HISTORY_POLL_MS = 20;
const SEEN_MAX_MS = 60_000;

/** Name, in the topics of a bench, of the chain whose blocks become final at a steady rate. */
export const lagChainOf = ({ environmentId }: Bench): string => `${environmentId}-pace`;

/** Time from when a block is final at the node until the history has its activities, with one block a second. */
export const measureLag = (bench: Bench, api: Server): Promise<Row[]> =>
  withOpened(async (keep) => {
    const blocks = scaled(bench, BLOCKS, BLOCKS_MIN);
    const name = lagChainOf(bench);
    const node = keep(
      await openReplayer(bench, { logsPerBlock: LOGS_PER_BLOCK, head: FIRST_BLOCKS - 1 + FINAL_DEPTH }),
    );
    const indexer = keep(await startIndexer(bench, node, { name, pollMs: POLL_MS }));
    const history = keep(watchHistory(api, name));
    const floor = keep(watchNode(node));
    const waitUntilSeen = (number: number) =>
      waitFor(`block ${number} is seen`, async () => history.seenAtMs.has(number), {
        measured: indexer,
        maxMs: SEEN_MAX_MS,
      });
    const first = FIRST_BLOCKS + WARM_UP_BLOCKS;
    await waitUntilSeen(FIRST_BLOCKS - 1);
    const finalAtMs = await makeFinal(node, FIRST_BLOCKS, first + blocks);
    await waitUntilSeen(first + blocks - 1);
    const lagsOf = (seenAtMs: ReadonlyMap<number, number>) =>
      Array.from({ length: blocks }, (_, index) => seenAtMs.get(first + index)! - finalAtMs.get(first + index)!);
    const [own, peer] = [lagsOf(history.seenAtMs), lagsOf(floor.seenAtMs)];
    return [0.5, 0.99].map((q) =>
      toRow({
        case: `history behind finality, ${LOGS_PER_BLOCK} logs per block, a block per second`,
        unit: `ms, p${q * 100}`,
        value: quantileOf(own, q),
        peer: 'floor: polls the logs of the node as often',
        peerValue: quantileOf(peer, q),
        notes: `of ${own.length} blocks; includes up to ${POLL_MS} ms between polls and 1 s age of a block of rows`,
      }),
    );
  });

async function makeFinal(node: Replayer, from: number, to: number): Promise<ReadonlyMap<number, number>> {
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

interface HistoryPage {
  readonly result: readonly { readonly blockchain_metadata: { readonly block_number: string } }[];
  readonly page: { readonly next_cursor: string };
}

/** Follows the history as a replica does. `seenAtMs`: when all activities of a block were visible, by block. */
function watchHistory(api: Server, chain: string) {
  const [counts, seenAtMs] = [new Map<number, number>(), new Map<number, number>()];
  let cursor: string | null = null;
  const readPage = async () => {
    const query = new URLSearchParams({ page_size: '200', ...(cursor !== null && { page_cursor: cursor }) });
    const answer = await fetch(`http://127.0.0.1:${api.port}/v1/chains/${chain}/activity-history?${query}`);
    if (!answer.ok) throw new Error(`a page was answered with ${answer.status}: ${await answer.text()}`);
    const { result, page } = (await answer.json()) as HistoryPage;
    cursor = page.next_cursor;
    for (const { blockchain_metadata: metadata } of result) {
      const block = Number(metadata.block_number);
      const count = (counts.get(block) ?? 0) + 1;
      counts.set(block, count);
      if (count === LOGS_PER_BLOCK) seenAtMs.set(block, performance.now());
    }
    return result.length;
  };
  const readToEnd = async () => {
    while ((await readPage()) > 0);
  };
  return { ...repeatEvery(HISTORY_POLL_MS, readToEnd), seenAtMs };
}

interface NodeBlock {
  readonly number: string;
  readonly hash: string;
}

/** Floor: polls the node as often as the indexer does, and reads the logs of new final blocks. */
function watchNode({ url }: Replayer) {
  const seenAtMs = new Map<number, number>();
  let next: number | null = null;
  const poll = async () => {
    const final = await callRpc<NodeBlock>(url, 'eth_getBlockByNumber', ['finalized', false]);
    for (let number = next ?? Number(final.number); number <= Number(final.number); number++) {
      const block = await callRpc<NodeBlock>(url, 'eth_getBlockByNumber', [`0x${number.toString(16)}`, false]);
      await callRpc(url, 'eth_getLogs', [{ blockHash: block.hash }]);
      seenAtMs.set(number, performance.now());
      next = number + 1;
    }
  };
  return { ...repeatEvery(POLL_MS, poll), seenAtMs };
}
