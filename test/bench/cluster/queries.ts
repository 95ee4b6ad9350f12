// The CPU time of analysts' queries on one ClickHouse node and on several.

import { type Engine, waitForMerges } from '../clickhouse.ts';
import { atMost, type Row, toRow } from '../figure.ts';
import { createGame, createPeerTables, eventsStatement, linkPeople, rowsOf } from '../queries/fill.ts';
import { basicQueries, cookbookQueries, createScene } from '../queries/queries.ts';
import { engineOf, type MeasuredStack } from './measured-stack.ts';

const ENVIRONMENT = 'test-bench-queries';
const CHUNK_ROWS = 500_000;
const MERGES_MAX_MS = 600_000;

/** @param rows number of events that both stacks get */
export async function measureQueries(
  one: MeasuredStack,
  two: MeasuredStack,
  { rows, seconds }: { rows: number; seconds: number },
): Promise<Row[]> {
  const game = createGame(ENVIRONMENT, rows);
  for (const stack of [one, two]) await fill(stack, game);
  const scene = await createScene(writersOf(one), game);
  const measured: Row[] = [];
  for (const { name, identified } of [...basicQueries(scene), ...cookbookQueries(scene)]) {
    const [value, peerValue] = [await cpuMsOf(two, identified, seconds), await cpuMsOf(one, identified, seconds)];
    measured.push(toQueryRow(name, { value, peerValue }));
  }
  const sum = (of: 'value' | 'peerValue') => measured.reduce((total, row) => total + row[of], 0);
  return [...measured, toQueryRow('all these queries once', { value: sum('value'), peerValue: sum('peerValue') })];
}

const toQueryRow = (name: string, values: { value: number; peerValue: number }): Row =>
  toRow({
    case: `${name}, on two ClickHouse nodes`,
    unit: 'CPU-milliseconds',
    ...values,
    peer: 'on one',
    bars: [atMost('ratio', 2)],
  });

/** The engine that services use: in a cluster, its tables are those over all nodes. */
function writersOf({ file }: MeasuredStack): Engine {
  const { url, database, cluster } = file.clickhouse;
  return engineOf(file, { url, database: cluster === undefined ? database : `${database}_all` });
}

async function fill(stack: MeasuredStack, game: ReturnType<typeof createGame>): Promise<void> {
  const engine = writersOf(stack);
  // Every node has all links.
  for (const node of stack.engines) {
    await createPeerTables(node);
    await linkPeople(node, game, { first: 0, count: game.people });
  }
  for (let first = 0; first < game.rows; first += CHUNK_ROWS) {
    const chunk = { first, count: Math.min(CHUNK_ROWS, game.rows - first) };
    const settings = `max_insert_block_size = ${CHUNK_ROWS}, min_insert_block_size_rows = ${CHUNK_ROWS}`;
    await engine.query(
      `${eventsStatement(game, rowsOf(game, chunk))} SETTINGS distributed_foreground_insert = 1, max_partitions_per_insert_block = 100, ${settings}`,
    );
  }
  for (const node of stack.engines) {
    await waitForMerges(node, stack.file.clickhouse.database, MERGES_MAX_MS);
    await node.query('SYSTEM RELOAD DICTIONARY identity_persons');
  }
}

/** Repeats a query for some seconds. @returns the CPU time of all nodes for one query */
async function cpuMsOf({ watch, engines: [home] }: MeasuredStack, sql: string, seconds: number): Promise<number> {
  const statement = `${sql} SETTINGS use_query_condition_cache = 0`;
  await home!.query(statement);
  let runs = 0;
  const { cpu } = await watch(async () => {
    for (const endMs = performance.now() + seconds * 1000; runs === 0 || performance.now() < endMs; runs++)
      await home!.query(statement);
  });
  return ((cpu.clickhouse ?? 0) / runs) * 1000;
}
