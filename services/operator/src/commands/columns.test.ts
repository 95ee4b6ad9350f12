import { describe, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createColumnsCommand } from './columns.ts';

async function run(...words: string[]) {
  const clickhouse = () => {
    throw new Error('ClickHouse was queried');
  };
  const { signal: stop } = new AbortController();
  const command = createColumnsCommand({ clickhouse, wallClockMs: () => 0, stop });
  return runInProcess([command], ['columns', ...words]);
}

describe('the arguments of columns', () => {
  const [path, type] = [
    ['--path', 'coins'],
    ['--type', 'Int64'],
  ];
  const name = ['--name', 'coins'];

  it.each([
    ['no subcommand', [], 'Usage: npm run columns'],
    ['an unknown subcommand', ['alter'], "unknown command 'alter'"],
    ['an argument too many', ['list', 'coins'], 'too many arguments'],
    ['an option of another subcommand', ['list', ...name], "unknown option '--name'"],
    ['no name', ['add', ...path, ...type], "required option '--name <name>'"],
    ['an invalid name', ['add', '--name', 'Coins', ...path, ...type], 'Expected a letter'],
    ['a name that is too long', ['add', '--name', 'c'.repeat(65), ...path, ...type], 'Expected a letter'],
    ['a name with the prefix', ['drop', '--name', 'property_coins'], 'Expected the name without property_'],
    ['no path', ['add', ...name, ...type], "required option '--path <path>'"],
    ['a path with nothing between dots', ['add', ...name, '--path', 'a..b', ...type], 'Expected names'],
    ['no type', ['add', ...name, ...path], "required option '--type <type>'"],
    ['a type of the engine', ['add', ...name, ...path, '--type', 'UInt8'], 'Allowed choices are Int64, Float64,'],
    [
      'a default of another type',
      ['add', ...name, ...path, ...type, '--default', 'none'],
      '--default: expected a whole',
    ],
  ])('refuse %s with exit code 2, before ClickHouse is queried', async (_what, words, sentence) => {
    const { code, results, progress } = await run(...words);
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
  });
});
