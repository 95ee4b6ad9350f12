import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { parseRecipe, type Recipe, readRecipes } from './index.ts';

const recipes = readRecipes();
const unique = (names: Iterable<string>) => [...new Set(names)].sort();
const findNames = (text: string, pattern: RegExp) => unique([...text.matchAll(pattern)].map(([, name = '']) => name));

const findValues = (command = '', pattern = /./) =>
  Object.fromEntries([...command.matchAll(pattern)].map(([, name, value]) => [name, value]));

it.each(recipes)('the recipe $file has a title, a description, parameters, a cost and commands', (recipe) => {
  const { file, title, about, cost, parameters, commands, query } = recipe;
  expect(file).toMatch(/^\d\d-[a-z-]+\.sql$/);
  expect(title).toMatch(/^[A-Z].{5,80}[^.]$/);
  expect(about.join(' ').length).toBeGreaterThan(80);
  expect(cost).toMatch(/^\w.{20,}\.$/);
  expect(parameters[0]?.names).toEqual(['environment']);
  for (const { description } of parameters) expect(description).toMatch(/^\S.{5,}$/);
  expect(commands.map((command) => command.split(' ')[0])).toEqual(['curl', 'clickhouse-client']);
  for (const command of commands) expect(command).toMatch(new RegExp(`[@ ]${file.replace('.', '[.]')}$`));
  expect(query).toMatch(/^(WITH|SELECT)\b/);
});

it.each(recipes)('the recipe $file documents and sets exactly the parameters of its query', (recipe: Recipe) => {
  const expected = findNames(recipe.query, /\{(\w+): \w+\}/g);
  const [overHttp, withClient] = recipe.commands;
  expect(unique(recipe.parameters.flatMap(({ names }) => names))).toEqual(expected);
  const values = findValues(overHttp, /[?&]param_(\w+)=([^&"]*)/g);
  expect(Object.keys(values).sort()).toEqual(expected);
  expect(findValues(withClient, /--param_(\w+)=(\S*)/g)).toEqual(values);
});

it.each(recipes)('a shell passes the arguments of the curl command in $file unchanged', ({ file, commands }) => {
  const script = `curl() { printf '%s\\n' "$@"; }\n${commands[0]}`;
  const env = { CLICKHOUSE_URL: 'https://clickhouse.test:8443', CLICKHOUSE_PASSWORD: "it's $HOME" };
  const { stdout, stderr } = spawnSync('sh', ['-c', script], { env, encoding: 'utf8' });
  const [quiet, user, account, address = '', ...rest] = stdout.trim().split('\n');
  expect([stderr, quiet, user, account, ...rest]).toEqual([
    ...['', '-sS', '-u', "analyst:it's $HOME", '--data-binary', `@${file}`],
  ]);
  expect(new URL(address).origin).toBe(env.CLICKHOUSE_URL);
  expect(new URL(address).searchParams.get('param_environment')).toBe('production');
});

it('parseRecipe reports the section that is missing from a comment', () => {
  const { text } = recipes[0]!;
  expect(() => parseRecipe('01-a.sql', text.replace('-- Cost:', '-- Price:'))).toThrow(
    '01-a.sql: add a "Cost:" section to the comment',
  );
});
