import { type Bench, type Row, scaled, toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { withOpened } from '../opened.ts';
import { memoryPeakMibOf, waitFor, watchCpu } from '../processes.ts';
import { FINAL_DEPTH, type MeasuredIndexer, openReplayer, type Replayer, startIndexer } from './open-replayer.ts';

const BLOCKS = 100_000;
const BLOCKS_MIN = 1_000;
const LOGS_PER_BLOCK = 10;
/** After the warm-up, the code is compiled and the name of every token has been read. */
const WARM_UP_SHARE = 0.05;
const RANGE_BLOCKS = 1_000;
/** Short, so that the wait for the first poll does not count. */
const POLL_MS = 50;
const INDEXED_MAX_MS = 1_800_000;

/** Blocks and logs that the indexer publishes from a long chain. The floor only sends the same requests. */
export const measureBackfill = (bench: Bench): Promise<Row[]> =>
  withOpened(async (keep) => {
    const blocks = scaled(bench, BLOCKS, BLOCKS_MIN);
    const logs = blocks * LOGS_PER_BLOCK;
    const warmUp = Math.round(blocks * WARM_UP_SHARE);
    const node = keep(await openReplayer(bench, { logsPerBlock: LOGS_PER_BLOCK, head: 0 }));
    const name = `${bench.environmentId}-backfill`;
    const indexer = keep(await startIndexer(bench, node, { name, pollMs: POLL_MS }));
    await index(node, indexer, warmUp);
    const [spent, nodeSpent, startMs] = [watchCpu(indexer.pid), watchCpu(node.pid), performance.now()];
    await index(node, indexer, warmUp + blocks);
    const [seconds, cpuSeconds] = [(performance.now() - startMs) / 1_000, spent()];
    const notes = `${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} CPU-s, ${nodeSpent().toFixed(1)} of the node; peak ${memoryPeakMibOf(indexer.pid)} MiB`;
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
      { peer: 'floor: and their answers parsed', floor: parsed },
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

/** Makes this many blocks final, and waits until all of their content is published. */
async function index(node: Replayer, indexer: MeasuredIndexer, blocks: number): Promise<void> {
  const logs = blocks * LOGS_PER_BLOCK;
  await node.setHead(blocks - 1 + FINAL_DEPTH);
  const isPublished = async () => (await indexer.countPublished()) >= logs;
  await waitFor(`${blocks} blocks are published`, isPublished, { measured: indexer, maxMs: INDEXED_MAX_MS });
  const count = await indexer.countPublished();
  if (count !== logs) throw new Error(`${count} activities of ${logs} logs`);
}
