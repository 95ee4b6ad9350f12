import { describe, expect, it } from 'vitest';
import type { ChainApiAddress } from '../addresses.ts';
import { EXIT } from '../command.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createReplicateCommand } from './replicate.ts';

const STACK = { url: 'http://127.0.0.1:1', chains: [{ name: 'demo-chain', id: 'eip155:31337' }] };

async function run(...words: string[]) {
  return runBeside(STACK, ...words);
}

/** @param stack chain interface of the local stack; null: the environment configures another deployment */
async function runBeside(stack: ChainApiAddress | null, ...words: string[]) {
  const command = createReplicateCommand({
    clickhouse: () => {
      throw new Error('not opened in this test');
    },
    chainApi: () => stack,
    writeOut: async () => {},
    folder: '/nowhere',
    stop: new AbortController().signal,
  });
  return runInProcess([command], ['replicate', ...words]);
}

describe('the arguments of replicate', () => {
  const whole = ['--chain', 'demo-chain', '--url', 'http://127.0.0.1:1', '--to', 'stdout'];

  it.each([
    ['no chain', ['--to', 'file'], "required option '--chain <name>' not specified"],
    ['a chain that is no name', [...whole, '--chain', 'Démo'], '--chain: expected'],
    ['an address that is none', [...whole, '--url', 'over there'], '--url: expected'],
    ['a chain that the stack has not', ['--chain', 'other', '--to', 'stdout'], 'serves demo-chain, and no other'],
    ['an unknown target', [...whole, '--to', 'tape'], 'Allowed choices are file, clickhouse, stdout'],
    ['a file for a table', [...whole, '--out', 'x'], '--out: only with --to file'],
    ['a table that is none', [...whole, '--to', 'clickhouse', '--table', 'a; DROP'], '--table: expected'],
    ['a page too large', [...whole, '--page-size', '201'], 'Expected a number from 1 to 200'],
    ['an unknown option', [...whole, '--fast'], "unknown option '--fast'"],
    ['a surplus argument', [...whole, 'now'], 'too many arguments'],
  ])('%s: exit code 2, and nothing is asked for', async (_name, words, sentence) => {
    const { code, results, progress } = await run(...words);
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
    expect(progress).toContain('(see npm run replicate -- --help)');
  });

  it('without --url the stack is used, but never together with the stores of another deployment', async () => {
    const words = ['--chain', 'demo-chain', '--to', 'stdout', '--patience-seconds', '0'];
    const { code, progress } = await run(...words);
    expect({ code, progress }).toMatchObject({ code: EXIT.unreachable });
    expect(progress).toContain('http://127.0.0.1:1 does not answer');
    const other = await runBeside(null, ...words);
    expect(other.code).toBe(EXIT.usage);
    expect(other.progress).toContain('--url: expected');
  });
});
