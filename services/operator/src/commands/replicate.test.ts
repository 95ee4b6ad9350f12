import { describe, expect, it } from 'vitest';
import type { ChainApiAddress } from '../addresses.ts';
import { EXIT } from '../command.ts';
import { runHere } from '../test/run-here.ts';
import { createReplicateCommand } from './replicate.ts';

const STACK = { url: 'http://127.0.0.1:1', chains: [{ name: 'demo-chain', id: 'eip155:31337' }] };

async function run(...words: string[]) {
  return runBeside(STACK, ...words);
}

/** @param stack chain interface of the local stack; null: the environment configures another deployment */
async function runBeside(stack: ChainApiAddress | null, ...words: string[]) {
  const command = createReplicateCommand({
    clickhouse: () => {
      throw new Error('nobody asks');
    },
    chainApi: () => stack,
    writeOut: async () => {},
    folder: '/nowhere',
    stop: new AbortController().signal,
  });
  return runHere([command], ['replicate', ...words]);
}

describe('the arguments of replicate', () => {
  const whole = ['--chain', 'demo-chain', '--url', 'http://127.0.0.1:1', '--to', 'stdout'];

  it.each([
    ['no chain', ['--to', 'file'], '--chain: expected'],
    ['a chain that is no name', ['--chain', 'Démo'], '--chain: expected'],
    ['an address that is none', [...whole, '--url', 'over there'], '--url: expected'],
    ['a chain that the stack has not', ['--chain', 'other', '--to', 'stdout'], 'serves demo-chain, and no other'],
    ['an unknown target', [...whole, '--to', 'tape'], '--to: expected file or clickhouse or stdout'],
    ['a file for a table', [...whole, '--out', 'x'], '--out: only with --to file'],
    ['a table that is none', [...whole, '--to', 'clickhouse', '--table', 'a; DROP'], '--table: expected'],
    ['a page too large', [...whole, '--page-size', '201'], '--page-size: expected a number from 1 to 200'],
    ['an unknown option', [...whole, '--fast'], "Unknown option '--fast'"],
    ['a word too many', [...whole, 'now'], "unexpected word 'now'"],
  ])('%s: exit code 2, and nothing is asked for', async (_name, words, sentence) => {
    const { code, results, progress } = await run(...words);
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
    expect(progress).toContain('usage: operator replicate');
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

  it('--help lists every option', async () => {
    const { code, results } = await run('--help');
    expect(code).toBe(EXIT.ok);
    for (const name of [
      'chain',
      'url',
      'to',
      'out',
      'table',
      'state',
      'page-size',
      'follow',
      'patience-seconds',
      'json',
    ])
      expect(results[0]).toContain(`--${name}`);
  });
});
