import { createEngine, type Engine } from '../clickhouse.ts';
import type { Figure } from '../figure.ts';
import { askColdAndWarm } from '../queries/ask.ts';
import { cookbookQuestions } from '../queries/cookbook.ts';
import { fillRows, linkPairs, linkPeople, pairsOf, settle } from '../queries/fill.ts';
import { createGame, DAYS, type Game } from '../queries/game.ts';
import { type ReadOfDay, readOfDay, toGrowthRows } from '../queries/growth.ts';
import { createPeerTables } from '../queries/peer.ts';
import { basicQuestions, type Question } from '../queries/questions.ts';
import { type Answered, toMemoryRow, toQuestionRows } from '../queries/result-rows.ts';
import { createScene, type Scene } from '../queries/scene.ts';
import { measureWriteCost } from '../queries/write-cost.ts';

const ROWS = 20_000_000;
/** The share of history that exists when a day is first queried. The day is in the middle of that share. */
const FIRST_SHARE = 1 / 5;
const OLD_DAY = Math.floor((DAYS * FIRST_SHARE) / 2);

/**
 * Queries of analysts: time, rows, bytes and memory over our views, beside raw rows and beside another product's schema
 * in the same ClickHouse.
 */
export const queries: Figure = {
  name: 'queries',
  optional: true,
  async measure(bench) {
    const engine = createEngine(bench);
    const written = await measureWriteCost(bench);
    const game = createGame(bench.environmentId, bench.rows ?? Math.round(ROWS * bench.scale));
    const { before, after } = await fillInTwo(engine, bench.database, game);
    const scene = await createScene(engine, game);
    const answered: Answered[] = [];
    for (const question of questionsOf(scene)) answered.push(await answer(engine, question));
    return [...answered.flatMap(toQuestionRows), toMemoryRow(answered), ...toGrowthRows(before, after), written];
  },
};

const questionsOf = (scene: Scene): Question[] => [...basicQuestions(scene), ...cookbookQuestions(scene)];

/** Fills a fifth, queries a day, fills the rest and queries it again. Some people are joined just before each round. */
async function fillInTwo(
  engine: Engine,
  database: string,
  game: Game,
): Promise<{ before: ReadOfDay; after: ReadOfDay }> {
  const startedAt = performance.now();
  await createPeerTables(engine);
  const [rows, people] = [Math.round(game.rows * FIRST_SHARE), Math.round(game.people * FIRST_SHARE)];
  await linkPeople(engine, game, { first: 0, count: people });
  await fillRows(engine, game, { first: 0, count: rows });
  await settle(engine, database);
  await linkPairs(engine, game, pairsOf(game).early);
  const ask = async () => readOfDay(engine, questionsOf(await createScene(engine, game, OLD_DAY)));
  const before = await ask();
  await linkPeople(engine, game, { first: people, count: game.people - people });
  await fillRows(engine, game, { first: rows, count: game.rows - rows });
  await settle(engine, database);
  await linkPairs(engine, game, pairsOf(game).late);
  console.error(`filled with ${game.rows} rows twice in ${Math.round((performance.now() - startedAt) / 1_000)} s`);
  return { before, after: await ask() };
}

/** @throws Error when our count of people differs from the peer's */
async function answer(engine: Engine, question: Question): Promise<Answered> {
  const ask = (sql: string) => askColdAndWarm(engine, sql);
  const [raw, identified, peer] = [await ask(question.raw), await ask(question.identified), await ask(question.peer)];
  if (question.agrees && identified.warm.text !== peer.warm.text)
    throw new Error(
      `${question.name}: ${identified.warm.text.slice(0, 200)}\nthe peer says ${peer.warm.text.slice(0, 200)}`,
    );
  return { question, raw, identified, peer, ...(question.exact !== undefined && { exact: await ask(question.exact) }) };
}
