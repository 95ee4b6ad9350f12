import { type Bench, type Row, toRow } from '../figure.ts';
import { type FloorFigure, runFloor } from '../floors/run.ts';
import { memoryPeakMibOf, waitFor, watchCpu } from '../processes.ts';
import { type MeasuredIndexer, openIndexer } from './indexer.ts';
import { FINAL_DEPTH, openReplayer, type Replayer } from './open-replayer.ts';

const BLOCKS = 100_000;
const BLOCKS_MIN = 1_000;
const LOGS_A_BLOCK = 10;
/** Warm-up. After it, the code is compiled and the name of every token has been read. */
const WARM_UP_SHARE = 0.05;
/** The default of the service. */
const RANGE_BLOCKS = 1_000;
/** Short, so that the wait for the first poll does not count. */
const POLL_MS = 50;
/** Twenty times the usual duration. */
const INDEXED_MAX_MS = 1_800_000;

interface Backfilled {
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** CPU-seconds of the process that answers as a node. */
  readonly nodeCpuSeconds: number;
  readonly memoryPeakMib: number;
}

/**
 * Blocks and logs per CPU-second that the indexer publishes from a long chain. The floor only sends the same requests.
 */
export async function measureBackfill(bench: Bench): Promise<Row[]> {
  const blocks = Math.max(BLOCKS_MIN, Math.round(BLOCKS * bench.scale));
  const warmUp = Math.round(blocks * WARM_UP_SHARE);
  const node = await openReplayer(bench, { logsABlock: LOGS_A_BLOCK, head: 0 });
  try {
    const indexer = await openIndexer(bench, node, { name: `${bench.environmentId}-backfill`, pollMs: POLL_MS });
    try {
      await index(node, indexer, warmUp);
      const ours = await measureIndexing(node, indexer, warmUp + blocks);
      const environment = { ...bench.environment, NODE_URL: node.url, RANGE_BLOCKS: String(RANGE_BLOCKS) };
      const asked = { ...environment, FROM: String(warmUp), TO: String(warmUp + blocks - 1) };
      const read = await runFloor('../chain/floor-backfill', asked);
      const parsed = await runFloor('../chain/floor-backfill', { ...asked, PARSE: '1' });
      return toRows(blocks, { ours, read, parsed });
    } finally {
      await indexer.close();
    }
  } finally {
    await node.close();
  }
}

/** Makes this many blocks final, and waits until all of their content is published. */
async function index(node: Replayer, indexer: MeasuredIndexer, blocks: number): Promise<void> {
  await node.setHead(blocks - 1 + FINAL_DEPTH);
  const isPublished = async () => (await indexer.countPublished()) >= blocks * LOGS_A_BLOCK;
  await waitFor(`${blocks} blocks are published`, isPublished, { measured: indexer, maxMs: INDEXED_MAX_MS });
  const count = await indexer.countPublished();
  if (count !== blocks * LOGS_A_BLOCK) throw new Error(`${count} activities of ${blocks * LOGS_A_BLOCK} logs`);
}

async function measureIndexing(node: Replayer, indexer: MeasuredIndexer, blocks: number): Promise<Backfilled> {
  const [spent, nodeSpent, startMs] = [watchCpu(indexer.pid), watchCpu(node.pid), performance.now()];
  await index(node, indexer, blocks);
  const seconds = (performance.now() - startMs) / 1_000;
  return { seconds, cpuSeconds: spent(), nodeCpuSeconds: nodeSpent(), memoryPeakMib: memoryPeakMibOf(indexer.pid) };
}

interface Seen {
  readonly ours: Backfilled;
  readonly read: FloorFigure;
  readonly parsed: FloorFigure;
}

function toRows(blocks: number, { ours, read, parsed }: Seen): Row[] {
  const logs = blocks * LOGS_A_BLOCK;
  const figure = 'chain';
  const name = `backfill, ${blocks} blocks with ${logs} logs`;
  const secondsOf = ({ seconds = Number.NaN }: FloorFigure) => seconds;
  const floors = [
    { beside: 'floor: the same questions alone', floor: read },
    { beside: 'floor: and their answers parsed', floor: parsed },
  ];
  const also = `${ours.seconds.toFixed(1)} s, ${ours.cpuSeconds.toFixed(1)} CPU-s, ${ours.nodeCpuSeconds.toFixed(1)} of the node; peak ${ours.memoryPeakMib} MiB; answers of ${Math.round(read.events / 1_000_000)} MB`;
  const ofFloor = (floor: FloorFigure) =>
    `floor: ${secondsOf(floor).toFixed(1)} s, ${floor.cpuSeconds.toFixed(1)} CPU-s`;
  return [
    toRow({
      figure,
      case: name,
      unit: 'blocks per second',
      ours: blocks / ours.seconds,
      also,
      beside: floors[0]!.beside,
      theirs: blocks / secondsOf(read),
    }),
    ...floors.flatMap(({ beside, floor }) => [
      toRow({
        figure,
        case: name,
        unit: 'logs per second',
        ours: logs / ours.seconds,
        also: ofFloor(floor),
        beside,
        theirs: logs / secondsOf(floor),
      }),
      toRow({
        figure,
        case: name,
        unit: 'logs per CPU-second',
        ours: logs / ours.cpuSeconds,
        also: '',
        beside,
        theirs: logs / floor.cpuSeconds,
      }),
    ]),
  ];
}
