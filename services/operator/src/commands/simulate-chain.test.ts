import { describe, expect, it } from 'vitest';
import type { ChainApiAddress } from '../addresses.ts';
import { EXIT, UnreachableError } from '../command.ts';
import { runHere } from '../test/run-here.ts';
import { createSimulateCommand } from './simulate.ts';

const DEMO = { name: 'demo-chain', id: 'eip155:31337' };
const STACK: ChainApiAddress = { url: 'http://127.0.0.1:1', chains: [DEMO] };

/** @param stack chain interface of the local stack; null: the environment configures another deployment */
async function runBeside(stack: ChainApiAddress | null, ...words: string[]) {
  const opened = () => {
    throw new UnreachableError('the import was opened');
  };
  const sources = {
    openLog: opened,
    openProducer: async () => opened(),
    openStore: opened,
    topicPrefix: '',
    schemas: { idOf: opened, schemaOf: opened },
  };
  const command = createSimulateCommand({
    headerPrefix: 'x-service',
    folder: '/nowhere',
    stop: new AbortController().signal,
    chain: { sources, chainApi: () => stack },
    mint: { indexedChains: opened, createNode: opened, createAskNode: opened, clickhouse: opened },
  });
  return runHere([command], ['simulate', ...words]);
}

describe('the arguments of simulate --chain', () => {
  it.each([
    [
      'messages of the game',
      ['--chain', '--messages', '5'],
      '--messages: not with --chain, which plays no game; say --activities',
    ],
    ['players', ['--chain', 'demo-chain', '--players', '5'], '--players: not with --chain'],
    ['a gateway', ['--chain', '--gateway', 'http://x'], '--gateway: not with --chain'],
    ['activities of the game', ['--activities', '5'], '--activities: only with --chain'],
    ['an address of the game', ['--url', 'http://x'], '--url: only with --chain'],
    ['a chain that the stack has not', ['--chain', 'other'], 'serves demo-chain, and no other'],
    ['a chain that is no name', ['--chain', 'Démo'], '--chain: expected the name of a chain'],
    ['an address that is none', ['--chain', '--url', 'over there'], '--url: expected'],
    ['too many activities', ['--chain', '--activities', '200001'], '--activities: expected a number from 1 to 200000'],
    ['a share that is none', ['--chain', '--broken', '1'], '--broken: expected'],
    ['a word too many', ['--chain', 'demo-chain', 'now'], "unexpected word 'now'"],
    ['assets of a game that mints', ['--chain', '--assets', '50'], '--assets: not with --chain'],
  ])('%s: exit code 2, and nothing is opened', async (_name, words, sentence) => {
    const { code, results, progress } = await runBeside(STACK, ...words);
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
  });

  it.each([
    ['at the end', ['--rate', '0', '--chain']],
    ['in front of an option', ['--chain', '--rate', '0']],
    ['by its name', ['--chain', 'demo-chain']],
  ])('the only chain of the stack is used %s', async (_where, words) => {
    const { code, progress } = await runBeside(STACK, ...words);
    expect({ code, progress }).toEqual({ code: EXIT.unreachable, progress: 'simulate: the import was opened' });
  });

  it('one of several chains must be named', async () => {
    const two = { ...STACK, chains: [DEMO, { name: 'other', id: 'eip155:1' }] };
    const { code, progress } = await runBeside(two, '--chain');
    expect(code).toBe(EXIT.usage);
    expect(progress).toContain('--chain: which one? demo-chain, other');
    expect(await runBeside(two, '--chain', 'other')).toMatchObject({ code: EXIT.unreachable });
  });

  it('writes to another deployment only after confirmation', async () => {
    const words = ['--chain', 'some-chain', '--url', 'http://127.0.0.1:1'];
    const { code, progress } = await runBeside(null, ...words);
    expect(code).toBe(EXIT.usage);
    expect(progress).toContain('into the history of some-chain, where they stay for ever');
    expect(progress).toContain('say --yes');
    expect(await runBeside(null, ...words, '--yes')).toMatchObject({ code: EXIT.unreachable });
    expect(await runBeside(null, '--chain', 'some-chain')).toMatchObject({ code: EXIT.usage });
  });
});
