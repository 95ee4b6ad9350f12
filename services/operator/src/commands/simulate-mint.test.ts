import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IndexedChain } from '@playline/chain';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../app.ts';
import { EXIT, UnreachableError } from '../command.ts';
import { createSimulateCommand } from './simulate.ts';

const API = { url: 'http://127.0.0.1:1', chains: [{ name: 'demo-chain', id: 'eip155:31337' }] };
const CONTRACTS = { erc721: '0x71', erc1155: '0x55', erc20: '0x20' };
const KEYS = { publishable: 'p', secret: 's' };
const STACK = {
  chain: { rpc: 'http://127.0.0.1:1', contracts: CONTRACTS, signer: `0x${'51'.repeat(20)}` },
  keys: { production: KEYS, development: KEYS },
};

/** @param stack its file; null: the environment configures another deployment */
async function runBeside(stack: object | null, ...words: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'operator-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, '.playline'));
  writeFileSync(join(folder, '.playline', 'stack.json'), JSON.stringify(stack ?? {}));
  const progress: string[] = [];
  const opened = () => {
    throw new UnreachableError('something was asked');
  };
  const sources = { openLog: opened, openProducer: async () => opened(), openStore: opened, topicPrefix: '' };
  const command = createSimulateCommand({
    headerPrefix: 'x-service',
    folder,
    stop: new AbortController().signal,
    chain: {
      sources: { ...sources, schemas: { idOf: opened, schemaOf: opened } },
      chainApi: () => (stack === null ? null : API),
    },
    mint: {
      indexedChains: () => [{ name: 'demo-chain', urls: [] as readonly string[] } as IndexedChain],
      createNode: opened,
      createAskNode: opened,
      clickhouse: () => ({ url: 'http://127.0.0.1:1', user: '', password: '', database: '' }),
    },
  });
  const code = await runCommand([command], ['simulate', ...words], {
    result: () => {},
    progress: (line) => void progress.push(line),
    isInteractive: false,
  });
  return { code, progress: progress.join('\n') };
}

describe('the arguments of simulate --mint', () => {
  it.each([
    ['messages of the game', ['--messages', '5'], '--messages: not with --mint; say --assets'],
    ['players', ['--players', '5'], '--players: not with --mint'],
    ['an environment', ['--environment', 'production'], '--environment: not with --mint'],
    ['activities of a chain', ['--activities', '5'], '--activities: not with --mint'],
    ['too few assets', ['--assets', '3'], '--assets: expected a number from 10 to 2000'],
    ['too many assets', ['--assets', '2001'], '--assets: expected a number from 10 to 2000'],
    ['a rate beyond all quotas', ['--rate', '1001'], '--rate: expected a number from 0 to 1000'],
    ['a day', ['--minutes', '1440'], '--minutes: expected a number from 0.01 to 60'],
  ])('%s: exit code 2, and nothing is asked', async (_name, words, sentence) => {
    const { code, progress } = await runBeside(STACK, '--mint', ...words);
    expect({ code, isSaid: progress.includes(sentence) }, progress).toEqual({ code: EXIT.usage, isSaid: true });
  });

  it('are refused without --mint', async () => {
    const { code, progress } = await runBeside(STACK, '--assets', '50');
    expect([code, progress]).toEqual([EXIT.usage, expect.stringContaining('--assets: only with --mint')]);
  });

  it('only the local stack is allowed: roles of another deployment must not be changed', async () => {
    const { code, progress } = await runBeside(null, '--mint');
    expect([code, progress]).toEqual([EXIT.usage, expect.stringContaining('the stores of another deployment')]);
  });

  it('a stack without a chain is reported as such', async () => {
    const { code, progress } = await runBeside({}, '--mint');
    expect([code, progress]).toEqual([EXIT.unreachable, expect.stringContaining('no stack with a chain runs here')]);
    expect(await runBeside(STACK, '--mint')).toEqual({
      code: EXIT.unreachable,
      progress: 'simulate: something was asked',
    });
  });
});
