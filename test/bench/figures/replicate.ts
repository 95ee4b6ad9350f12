import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEngine } from '../clickhouse.ts';
import { openChainApi } from '../feed/chain-api.ts';
import { type Compared, compareCopy } from '../feed/compare-copy.ts';
import { copyKilled } from '../feed/copy-killed.ts';
import { BUSY, fillFeed, mergeAgain } from '../feed/fill.ts';
import { type Figure, type Row, toRow } from '../figure.ts';

const KILLS = 3;

/**
 * Copies a year of history into a file with `operator replicate`, in pages of 200. The command is killed three times at
 * random and run again. Then every member of every activity in the file is compared with its last version in the table.
 */
export const replicate: Figure = {
  name: 'replicate',
  optional: true,
  async measure(bench) {
    const filled = await fillFeed(bench);
    await mergeAgain(bench);
    const server = await openChainApi(bench);
    const folder = mkdtempSync(join(tmpdir(), 'playline-bench-copy-'));
    const file = join(folder, 'copy.ndjson');
    try {
      const url = `http://127.0.0.1:${server.port}`;
      const copied = await copyKilled(bench, { url, chain: BUSY, file, kills: KILLS, activities: filled.rows });
      const compared = await compareCopy(createEngine(bench), { chain: BUSY, file, endUs: filled.endUs });
      return [toCopyRow(copied.seconds, compared)];
    } finally {
      await server.close();
      rmSync(folder, { recursive: true });
    }
  },
};

function toCopyRow(seconds: number, { activities, lines, differences }: Compared): Row {
  if (differences > 0)
    throw new Error(`${differences} of ${activities} activities are not in the copy as they are in the table`);
  return toRow({
    figure: 'replicate',
    case: `${activities} activities, killed ${KILLS} times`,
    unit: 'activities per second',
    ours: activities / seconds,
    beside: 'as they came, over the year',
    theirs: activities / (365 * 86_400),
    also: `${(seconds / 60).toFixed(1)} minutes in ${Math.ceil(lines / 200)} pages; every member of every activity the same as in the table`,
  });
}
