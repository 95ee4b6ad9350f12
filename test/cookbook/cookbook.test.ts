import { type Recipe, readRecipes } from '@playline/events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { occurredIn, toTime } from './expected/facts.ts';
import { EXPECTED_ROWS, type RecipeParams, type Row } from './expected/index.ts';
import { fill } from './fill.ts';
import { type OwnDatabase, openOwnDatabase } from './own-database.ts';
import { createWorld, ENVIRONMENT } from './world.ts';

const recipes = readRecipes();
const world = createWorld();
const formatOf = ({ query }: Recipe) => /\bFORMAT (\w+)$/.exec(query)?.[1] ?? null;
const queries = recipes.filter((recipe) => formatOf(recipe) === null);
const exports = recipes.filter((recipe) => formatOf(recipe) !== null);

// Returns the person with the most ids among those with test events, for whom a wrong query would most likely lose or
// duplicate rows.
function findComplexPerson(): string {
  const testers = new Set(world.facts.map(({ person, message }) => (message.test === true ? person : null)));
  const members = Map.groupBy(world.linked, ({ person }) => person);
  const [largest] = [...members].filter(([person]) => testers.has(person)).sort(([, a], [, b]) => b.length - a.length);
  return largest![0];
}

/** Additional parameters to test, besides those in a recipe's commands. */
const EXTRA_PARAMS: Readonly<Record<string, readonly RecipeParams[]>> = {
  '01-active-people.sql': [{ period: 'day' }, { period: 'month' }],
  '04-funnel-in-order.sql': [{ seconds: '60' }, { first: 'purchase', third: 'player_died' }],
  '05-funnel-in-any-order.sql': [{ first: 'purchase', third: 'session_started' }],
  '06-paths.sql': [{ steps: '2', paths: '100' }],
  '11-person-timeline.sql': [{ person: findComplexPerson() }],
};

/** Returns the parameter sets for a recipe: first those in its command, then `EXTRA_PARAMS`. */
function paramsOf({ commands, file }: Recipe): RecipeParams[] {
  const values = [...commands[0]!.matchAll(/param_(\w+)=([^&"]*)/g)].map(([, name, value]) => [name, value]);
  return [{}, ...(EXTRA_PARAMS[file] ?? [])].map((extra) => ({ ...Object.fromEntries(values), ...extra }));
}

const toSearch = (params: RecipeParams) =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [`param_${name}`, value]));
const toRows = (text: string) => text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Row]));
const AS_JSON = { default_format: 'JSONEachRow', output_format_json_quote_64bit_integers: '0' };

const FILL_SCRIPT = '../../packages/api-docs/src/assets/fill-recipe.js';
interface PageScript {
  readParams(command: string): Record<string, string>;
  fillQuery(query: string, params: RecipeParams): string;
}

describe('the cookbook with simulated game traffic', () => {
  let database: OwnDatabase;
  beforeAll(async () => {
    database = await openOwnDatabase();
    await fill(database, world);
  });
  afterAll(() => database.close());

  const rowsOf = async (sql: string, params: RecipeParams = {}) =>
    toRows(await (await database.query(sql, { ...toSearch(params), ...AS_JSON })).text());

  it('has expected rows for every recipe', () => {
    expect(queries.map(({ file }) => file)).toEqual(Object.keys(EXPECTED_ROWS));
    expect(exports.map(formatOf)).toEqual(['Parquet', 'CSVWithNames']);
  });

  it('is tested with copies, reused ids, test events, links, and sessions shared by two people', async () => {
    const where = `WHERE environment_id = '${ENVIRONMENT}'`;
    const counts = `SELECT count() AS copies, uniqExact(message_id) AS ids, countIf(test) AS tests FROM events ${where}`;
    const [{ ids, tests, ...stored } = {}] = await rowsOf(counts);
    expect(stored).toEqual({ copies: world.copies.length });
    expect(await rowsOf(`SELECT count() AS facts FROM events_exact ${where}`)).toEqual([{ facts: world.facts.length }]);
    expect(world.copies.length - world.facts.length).toBeGreaterThan(100);
    expect(world.facts.length - Number(ids)).toBeGreaterThan(50);
    expect(Number(tests)).toBeGreaterThan(50);
    expect(world.linked.length).toBeGreaterThan(60);
    const inSession = world.facts.filter(({ person, message }) => person !== null && message.sessionId !== undefined);
    const sessions = [...Map.groupBy(inSession, ({ message }) => message.sessionId).values()];
    const shared = sessions.filter((facts) => new Set(facts.map(({ person }) => person)).size > 1);
    expect(shared.length).toBeGreaterThan(3);
  });

  it.each(queries)('$file returns the expected rows', async (recipe) => {
    const expected = paramsOf(recipe).map((params) => EXPECTED_ROWS[recipe.file]!(world, params));
    expect(expected.flat().length).toBeGreaterThan(1);
    for (const [index, params] of paramsOf(recipe).entries())
      expect(await rowsOf(recipe.text, params), JSON.stringify(params)).toEqual(expected[index]);
  });

  it.each(queries)('$file returns the same rows if the page fills in the parameters', async (recipe) => {
    const page = (await import(FILL_SCRIPT)) as PageScript;
    const [params = {}] = paramsOf(recipe);
    expect(page.readParams(recipe.commands[0]!)).toEqual(params);
    const filled = page.fillQuery(recipe.query, params);
    expect(filled).not.toMatch(/\{\w+: \w+\}/);
    expect(await rowsOf(filled)).toEqual(EXPECTED_ROWS[recipe.file]!(world, params));
  });

  it('returns the same rows after the dictionary has loaded the persons of new links', async () => {
    const readAll = async () => {
      const results: Row[][] = [];
      for (const recipe of queries) results.push(await rowsOf(recipe.text, paramsOf(recipe).at(-1)));
      return results;
    };
    const before = await readAll();
    await database.command('SYSTEM RELOAD DICTIONARY identity_persons');
    expect(await readAll()).toEqual(before);
  });

  it.each(exports)('$file exports every event of the time range to a file that ClickHouse can read', async (recipe) => {
    const [params = {}] = paramsOf(recipe);
    const exported = await (await database.query(recipe.text, toSearch(params))).blob();
    const form = new FormData();
    form.append('exported', exported);
    const structure =
      "message_id UUID, event_name String, event_time DateTime64(3, 'UTC'), person_id Nullable(String), property_price Nullable(Float64)";
    const search = { exported_format: formatOf(recipe)!, exported_structure: structure, ...AS_JSON };
    const response = await database.query(form, { ...search, query: 'SELECT * FROM exported' });
    const expected = occurredIn(world, params).map(({ id, person, message }) => ({
      message_id: id,
      event_name: message.eventName ?? '',
      event_time: toTime(message.eventTime),
      person_id: person,
      property_price: message.properties?.price ?? null,
    }));
    const sorted = (rows: readonly Row[]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(sorted(toRows(await response.text()))).toEqual(sorted(expected));
  });

  it.each(exports)('$file exports no raw ids, and no properties that are neither safe nor a column', async (recipe) => {
    const [params = {}] = paramsOf(recipe);
    const text = await (await database.query(recipe.text, toSearch(params))).text();
    const { anonymousId, deviceId } = world.facts
      .map(({ message }) => message)
      .find((sent) => sent.anonymousId && sent.deviceId)!;
    // The world declares only price and currency safe.
    const raw = [anonymousId!, deviceId!, 'anonymous_id', 'device_id', 'user_agent', 'page_url', 'traits', 'match_id'];
    expect([...raw, 'property_currency'].filter((name) => text.includes(name))).toEqual(['property_currency']);
  });
});
