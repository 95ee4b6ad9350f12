import { createEventDays } from '@playline/events/clickhouse';
import { createEngine, type Engine } from '../clickhouse.ts';
import { type Bench, type Figure, type Row, scaled } from '../figure.ts';
import { operate } from '../open-bench.ts';
import {
  createGame,
  createPeerTables,
  DAYS,
  fillRows,
  type Game,
  linkPeople,
  mergePairs,
  pairsOf,
  waitUntilMerged,
} from '../queries/fill.ts';
import {
  type AnalystQuery,
  basicQueries,
  cookbookQueries,
  createScene,
  declareProperties,
  PROPERTY_COLUMNS,
  propertyQueries,
} from '../queries/queries.ts';
import {
  type DayCosts,
  type QueryResults,
  readDayCosts,
  runColdAndWarm,
  toGrowthRows,
  toMemoryRow,
  toPropertyRow,
  toQueryRows,
} from '../queries/results.ts';
import { measureWriteCost } from '../queries/write-cost.ts';

const ROWS = 20_000_000;
/** Fraction of the history that exists when the old day is first queried. */
const FIRST_FRACTION = 1 / 5;
const OLD_DAY = Math.floor((DAYS * FIRST_FRACTION) / 2);

// Runs analyst queries on the views, on raw rows, and on another product's schema in the same ClickHouse.
export const queries: Figure = {
  name: 'queries',
  optional: true,
  async measure(bench) {
    const engine = createEngine(bench);
    const writeCost = await measureWriteCost(bench);
    const game = createGame(bench.environmentId, bench.rows ?? scaled(bench, ROWS));
    const { before, after } = await fillInTwoSteps(engine, bench, game);
    const results: QueryResults[] = [];
    for (const query of await queriesOf(engine, game)) results.push(await run(engine, query));
    const properties = await measureProperties(bench, engine, game);
    return [
      ...[...results.flatMap(toQueryRows), toMemoryRow(results), ...toGrowthRows(before, after), writeCost],
      ...properties,
    ];
  },
};

async function queriesOf(engine: Engine, game: Game, day?: number): Promise<AnalystQuery[]> {
  const scene = await createScene(engine, game, day);
  return [...basicQueries(scene), ...cookbookQueries(scene)];
}

// Queries one old day before and after most of the history is added.
async function fillInTwoSteps(
  engine: Engine,
  bench: Bench,
  game: Game,
): Promise<{ before: DayCosts; after: DayCosts }> {
  const { database } = bench;
  const startMs = performance.now();
  await createPeerTables(engine);
  const [rows, people] = [Math.round(game.rows * FIRST_FRACTION), Math.round(game.people * FIRST_FRACTION)];
  await linkPeople(engine, game, { first: 0, count: people });
  await fillRows(engine, game, { first: 0, count: rows });
  await waitUntilMerged(engine, database);
  await mergePairs(engine, game, pairsOf(game).early);
  const read = async () => readDayCosts(engine, await queriesOf(engine, game, OLD_DAY));
  await countDays(bench);
  const before = await read();
  await linkPeople(engine, game, { first: people, count: game.people - people });
  await fillRows(engine, game, { first: rows, count: game.rows - rows });
  await waitUntilMerged(engine, database);
  await mergePairs(engine, game, pairsOf(game).late);
  await countDays(bench);
  console.error(`filled both schemas with ${game.rows} rows in ${Math.round((performance.now() - startMs) / 1_000)} s`);
  return { before, after: await read() };
}

/** Does what an event writer does while no events arrive. */
async function countDays({ stores, database }: Bench): Promise<void> {
  const engine = createEngine({ stores, database });
  let nowMs = 0;
  const days = createEventDays({ ...stores.clickhouse, database }, { nowMs: () => nowMs, settleS: 0 });
  const open =
    'SELECT count() FROM (SELECT 1 FROM counted_days GROUP BY environment_id, day HAVING max(stored_at) >= max(counted_at))';
  for (; (await engine.queryNumber(open)) > 0; nowMs += 600_000) await days.update();
}

/** Compares properties from the JSON text, and from `properties_between`, with the same properties as columns. */
async function measureProperties(bench: Bench, engine: Engine, game: Game): Promise<Row[]> {
  for (const options of PROPERTY_COLUMNS) await operate(bench, ['columns', 'add', ...options]);
  await engine.query(declareProperties(game));
  const { text, safe, column } = propertyQueries(await createScene(engine, game));
  const rows: Row[] = [];
  for (const name of Object.keys(text) as (keyof typeof text)[]) {
    const measured = await runColdAndWarm(engine, { text: text[name], safe: safe[name], column: column[name] });
    rows.push(toPropertyRow(`${name}, from the JSON text`, measured.text, measured.column));
    rows.push(toPropertyRow(`${name}, from properties_between`, measured.safe, measured.column));
  }
  return rows;
}

/** @throws Error if the result must equal the peer's result but differs */
async function run(engine: Engine, query: AnalystQuery): Promise<QueryResults> {
  const { raw, exact, identified, peer } = query;
  const sources = { raw, identified, peer };
  const measured = await runColdAndWarm(engine, exact === undefined ? sources : { ...sources, exact });
  const [own, other] = [measured.identified.warm.text, measured.peer.warm.text];
  if (query.mustEqualPeer && own !== other)
    throw new Error(`${query.name}: ${own.slice(0, 200)}\nbut the peer returns ${other.slice(0, 200)}`);
  return { query, ...measured };
}
