import { describe, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runHere } from '../test/run-here.ts';
import { createColumnsCommand } from './columns.ts';

async function run(...words: string[]) {
  const clickhouse = () => {
    throw new Error('nobody asks');
  };
  const { signal: stop } = new AbortController();
  const command = createColumnsCommand({ clickhouse, wallClockMs: () => 0, stop });
  return runHere([command], ['columns', ...words]);
}

describe('the arguments of columns', () => {
  const [path, type] = [
    ['--path', 'coins'],
    ['--type', 'Int64'],
  ];
  const name = ['--name', 'coins'];

  it.each([
    ['no word', [], 'expected one of these words first: add, list, drop'],
    ['another word', ['alter'], 'expected one of these words first'],
    ['a word too many', ['list', 'coins'], "unexpected word 'coins'"],
    ['an option of another word', ['list', ...name], "Unknown option '--name'"],
    ['no name', ['add', ...path, ...type], '--name: expected a letter'],
    ['a name that is none', ['add', '--name', 'Coins', ...path, ...type], '--name: expected a letter'],
    ['a name that is too long', ['add', '--name', 'c'.repeat(65), ...path, ...type], '--name: expected a letter'],
    ['a name with the prefix', ['drop', '--name', 'property_coins'], '--name: expected it without property_'],
    ['no path', ['add', ...name, ...type], '--path: expected where the property stands'],
    ['a path with nothing between dots', ['add', ...name, '--path', 'a..b', ...type], '--path: expected names'],
    ['no type', ['add', ...name, ...path], '--type: expected Int64 or Float64 or'],
    ['a type of the engine', ['add', ...name, ...path, '--type', 'UInt8'], '--type: expected Int64'],
    [
      'a default of another type',
      ['add', ...name, ...path, ...type, '--default', 'none'],
      '--default: expected a whole',
    ],
  ])('%s: exit code 2, and nothing is asked', async (_what, words, sentence) => {
    const { code, results, progress } = await run(...words);
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
    expect(progress).toContain('usage: operator columns');
  });
});
