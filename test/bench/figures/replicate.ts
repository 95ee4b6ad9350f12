import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEngine } from '../clickhouse.ts';
import { compareCopy } from '../feed/compare-copy.ts';
import { copyKilled } from '../feed/copy-killed.ts';
import { FEED_CHAINS, fillFeed, mergeAgain } from '../feed/fill.ts';
import { type Figure, toRow } from '../figure.ts';
import { startChainApi } from '../services.ts';

const KILLS = 3;
const YEAR_S = 365 * 86_400;

/**
 * Copies a year of history into a file with `operator replicate`, which is killed at random and run again. Every member
 * of every activity in the file is compared with its last version in the table.
 */
export const replicate: Figure = {
  name: 'replicate',
  optional: true,
  async measure(bench) {
    const feed = await fillFeed(bench);
    await mergeAgain(bench);
    const server = await startChainApi(bench, FEED_CHAINS);
    const folder = mkdtempSync(join(tmpdir(), 'playline-bench-copy-'));
    const file = join(folder, 'copy.ndjson');
    try {
      const url = `http://127.0.0.1:${server.port}`;
      const seconds = await copyKilled(bench, { url, file, kills: KILLS, activities: feed.rows });
      const { activities, lines, differences } = await compareCopy(createEngine(bench), file, feed.endUs);
      if (differences > 0)
        throw new Error(`${differences} of ${activities} activities differ between the copy and the table`);
      return [
        toRow({
          case: `${activities} activities, killed ${KILLS} times`,
          unit: 'activities per second',
          value: activities / seconds,
          peer: 'the average rate of the year',
          peerValue: activities / YEAR_S,
          notes: `${(seconds / 60).toFixed(1)} minutes in ${Math.ceil(lines / 200)} pages; no activity differs`,
        }),
      ];
    } finally {
      await server.close();
      rmSync(folder, { recursive: true });
    }
  },
};
