import { setTimeout as delay } from 'node:timers/promises';
import { callRpc } from '@playline/infra/chain';
import { type Bench, type Row, scaled, toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { withOpened } from '../opened.ts';
import { memoryPeakMibOf, waitFor, watchCpu } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import { repeatEvery } from '../repeat.ts';
import { type Server, startPeer, startService } from '../services.ts';

export const CANNED_CHAIN_ID = 987_654_321;
const FINALITY_DEPTH = 4;

interface Replayer extends Server {
  readonly url: string;
  setHead(number: number): Promise<void>;
}

async function openReplayer(
  bench: Bench,
  { logsPerBlock, head }: { logsPerBlock: number; head: number },
): Promise<Replayer> {
  const replayer = await startPeer(bench, 'chain/replayer', {
    environment: {
      HEAD: String(head),
      LOGS_PER_BLOCK: String(logsPerBlock),
      FINALITY_DEPTH: String(FINALITY_DEPTH),
      CHAIN_ID: String(CANNED_CHAIN_ID),
    },
  });
  const url = `http://127.0.0.1:${replayer.port}`;
  return { ...replayer, url, setHead: async (number) => void (await callRpc(url, 'bench_setHead', [number])) };
}

interface MeasuredIndexer extends Server {
  /** @returns the number of activities that brokers have acknowledged since the indexer started */
  countPublished(): Promise<number>;
}

const COUNT = /^playline_chain_indexer_activities_total\{[^}]*\} (\d+)/gm;

/** @param chain.name must be unique per measurement */
async function startIndexer(
  bench: Bench,
  node: Replayer,
  chain: { name: string; pollMs: number },
): Promise<MeasuredIndexer> {
  const indexer = await startService(bench, 'chain-indexer', {
    CHAIN_NODES: JSON.stringify([{ ...chain, id: `eip155:${CANNED_CHAIN_ID}`, urls: [node.url] }]),
  });
  const countPublished = async () => {
    const text = await (await fetch(`http://127.0.0.1:${indexer.adminPort}/metrics`)).text();
    return [...text.matchAll(COUNT)].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  return { ...indexer, countPublished };
}

const BLOCKS = 100_000;
const BLOCKS_MIN = 1_000;
const LOGS_PER_BLOCK = 10;
/** Enough to compile the code and read all token names. */
const WARM_UP_FRACTION = 0.05;
const RANGE_BLOCKS = 1_000;
/** Short, so that the delay before the first poll is negligible. */
const POLL_MS = 50;
const INDEXED_MAX_MS = 1_800_000;

/** Measures how fast the indexer backfills a long chain. The floor only sends the same requests. */
export const measureBackfill = (bench: Bench): Promise<Row[]> =>
  withOpened(async (keep) => {
    const blocks = scaled(bench, BLOCKS, BLOCKS_MIN);
    const logs = blocks * LOGS_PER_BLOCK;
    const warmUp = Math.round(blocks * WARM_UP_FRACTION);
    const node = keep(await openReplayer(bench, { logsPerBlock: LOGS_PER_BLOCK, head: 0 }));
    const name = `${bench.environmentId}-backfill`;
    const indexer = keep(await startIndexer(bench, node, { name, pollMs: POLL_MS }));
    await index(node, indexer, warmUp);
    const [spent, nodeSpent, startMs] = [watchCpu(indexer.pid), watchCpu(node.pid), performance.now()];
    await index(node, indexer, warmUp + blocks);
    const [seconds, cpuSeconds] = [(performance.now() - startMs) / 1_000, spent()];
    const notes = `${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} CPU-s, node ${nodeSpent().toFixed(1)} CPU-s; peak ${memoryPeakMibOf(indexer.pid)} MiB`;
    const environment = {
      ...bench.environment,
      NODE_URL: node.url,
      RANGE_BLOCKS: String(RANGE_BLOCKS),
      FROM: String(warmUp),
      TO: String(warmUp + blocks - 1),
    };
    const read = await runFloor('chain/floor-backfill', environment);
    const parsed = await runFloor('chain/floor-backfill', { ...environment, PARSE: '1' });
    const row = { case: `backfill, ${blocks} blocks with ${logs} logs`, notes };
    const floors = [
      { peer: 'floor: the same requests alone', floor: read },
      { peer: 'floor: the same requests, responses parsed', floor: parsed },
    ];
    return [
      toRow({
        ...row,
        unit: 'blocks per second',
        value: blocks / seconds,
        peer: floors[0]!.peer,
        peerValue: blocks / read.seconds,
      }),
      ...floors.flatMap(({ peer, floor }) => [
        toRow({ ...row, unit: 'logs per second', value: logs / seconds, peer, peerValue: logs / floor.seconds }),
        toRow({
          ...row,
          unit: 'logs per CPU-second',
          value: logs / cpuSeconds,
          peer,
          peerValue: logs / floor.cpuSeconds,
        }),
      ]),
    ];
  });

async function index(node: Replayer, indexer: MeasuredIndexer, blocks: number): Promise<void> {
  const logs = blocks * LOGS_PER_BLOCK;
  await node.setHead(blocks - 1 + FINALITY_DEPTH);
  const isPublished = async () => (await indexer.countPublished()) >= logs;
  await waitFor(`${blocks} blocks are published`, isPublished, { measured: indexer, maxMs: INDEXED_MAX_MS });
  const count = await indexer.countPublished();
  if (count !== logs) throw new Error(`${count} activities were published instead of ${logs}`);
}

const LAG_LOGS_PER_BLOCK = 100;
const BLOCK_MS = 1_000;
const LAG_BLOCKS = 60;
const LAG_BLOCKS_MIN = 10;
const FIRST_BLOCKS = 20;
const WARM_UP_BLOCKS = 10;
const LAG_POLL_MS = 1_000;
/** Poll interval for the history, which limits the precision of the measurement. */
const HISTORY_POLL_MS = 20;
const VISIBLE_MAX_MS = 60_000;

export const lagChainOf = ({ environmentId }: Bench): string => `${environmentId}-lag`;

// Measures the time from a block's finality until the history contains its activities, at one block per second.
export const measureLag = (bench: Bench, api: Server): Promise<Row[]> =>
  withOpened(async (keep) => {
    const blocks = scaled(bench, LAG_BLOCKS, LAG_BLOCKS_MIN);
    const name = lagChainOf(bench);
    const node = keep(
      await openReplayer(bench, { logsPerBlock: LAG_LOGS_PER_BLOCK, head: FIRST_BLOCKS - 1 + FINALITY_DEPTH }),
    );
    const indexer = keep(await startIndexer(bench, node, { name, pollMs: LAG_POLL_MS }));
    const history = keep(watchHistory(api, name));
    const floor = keep(watchNode(node));
    const waitUntilVisible = (number: number) =>
      waitFor(`block ${number} is visible`, async () => history.visibleAtMs.has(number), {
        measured: indexer,
        maxMs: VISIBLE_MAX_MS,
      });
    const first = FIRST_BLOCKS + WARM_UP_BLOCKS;
    await waitUntilVisible(FIRST_BLOCKS - 1);
    const finalAtMs = await finalizeBlocks(node, FIRST_BLOCKS, first + blocks);
    await waitUntilVisible(first + blocks - 1);
    const lagsOf = (visibleAtMs: ReadonlyMap<number, number>) =>
      Array.from({ length: blocks }, (_, index) => visibleAtMs.get(first + index)! - finalAtMs.get(first + index)!);
    const [lags, floorLags] = [lagsOf(history.visibleAtMs), lagsOf(floor.visibleAtMs)];
    return [0.5, 0.99].map((q) =>
      toRow({
        case: `lag of the history behind finality, ${LAG_LOGS_PER_BLOCK} logs per block, one block per second`,
        unit: `ms, p${q * 100}`,
        value: quantileOf(lags, q),
        peer: 'floor: polls a node for logs at the same interval',
        peerValue: quantileOf(floorLags, q),
        notes: `${lags.length} blocks; includes up to ${LAG_POLL_MS} ms between polls and the block age of 1 s`,
      }),
    );
  });

async function finalizeBlocks(node: Replayer, from: number, to: number): Promise<ReadonlyMap<number, number>> {
  const finalAtMs = new Map<number, number>();
  const startMs = performance.now();
  for (let number = from; number < to; number++) {
    const waitMs = startMs + (number - from) * BLOCK_MS - performance.now();
    if (waitMs > 0) await delay(waitMs);
    finalAtMs.set(number, performance.now());
    await node.setHead(number + FINALITY_DEPTH);
  }
  return finalAtMs;
}

interface HistoryPage {
  readonly result: readonly { readonly blockchain_metadata: { readonly block_number: string } }[];
  readonly page: { readonly next_cursor: string };
}

/** Polls the history like a replica. `visibleAtMs`: when all activities of a block were visible, by block number. */
function watchHistory(api: Server, chain: string) {
  const [counts, visibleAtMs] = [new Map<number, number>(), new Map<number, number>()];
  let cursor: string | null = null;
  const readPage = async () => {
    const query = new URLSearchParams({ page_size: '200', ...(cursor !== null && { page_cursor: cursor }) });
    const response = await fetch(`http://127.0.0.1:${api.port}/v1/chains/${chain}/activity-history?${query}`);
    if (!response.ok) throw new Error(`a page request failed with status ${response.status}: ${await response.text()}`);
    const { result, page } = (await response.json()) as HistoryPage;
    cursor = page.next_cursor;
    for (const { blockchain_metadata: metadata } of result) {
      const block = Number(metadata.block_number);
      const count = (counts.get(block) ?? 0) + 1;
      counts.set(block, count);
      if (count === LAG_LOGS_PER_BLOCK) visibleAtMs.set(block, performance.now());
    }
    return result.length;
  };
  const readToEnd = async () => {
    while ((await readPage()) > 0);
  };
  return { ...repeatEvery(HISTORY_POLL_MS, readToEnd), visibleAtMs };
}

interface NodeBlock {
  readonly number: string;
  readonly hash: string;
}

/** Floor: polls the node at the indexer's interval and reads the logs in new final blocks. */
function watchNode({ url }: Replayer) {
  const visibleAtMs = new Map<number, number>();
  let next: number | null = null;
  const poll = async () => {
    const final = await callRpc<NodeBlock>(url, 'eth_getBlockByNumber', ['finalized', false]);
    for (let number = next ?? Number(final.number); number <= Number(final.number); number++) {
      const block = await callRpc<NodeBlock>(url, 'eth_getBlockByNumber', [`0x${number.toString(16)}`, false]);
      await callRpc(url, 'eth_getLogs', [{ blockHash: block.hash }]);
      visibleAtMs.set(number, performance.now());
      next = number + 1;
    }
  };
  return { ...repeatEvery(LAG_POLL_MS, poll), visibleAtMs };
}
