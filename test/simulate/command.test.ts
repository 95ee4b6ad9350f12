import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IndexedChain } from '@playline/chain';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ChainApiAddress } from '../../services/operator/src/addresses.ts';
import { EXIT, UnreachableError } from '../../services/operator/src/command.ts';
import { runInProcess } from '../../services/operator/src/test/run-in-process.ts';
import { createSimulateCommand } from './command.ts';

const DEMO = { name: 'demo-chain', id: 'eip155:31337' };
const API: ChainApiAddress = { url: 'http://127.0.0.1:1', chains: [DEMO] };
const KEYS = { publishable: 'p', secret: 's' };
const STACK = {
  chain: {
    rpc: 'http://127.0.0.1:1',
    contracts: { erc721: '0x71', erc1155: '0x55', erc20: '0x20' },
    signer: `0x${'51'.repeat(20)}`,
  },
  keys: { production: KEYS, development: KEYS },
};

interface Surroundings {
  /** Chain interface of the local stack; null when the environment configures another deployment. */
  readonly chainApi?: ChainApiAddress | null;
  /** Contents of the stack's file. */
  readonly stack?: object;
  /** Typed at the terminal; without it there is no terminal. */
  readonly answer?: string;
}

async function run(args: readonly string[], { chainApi = API, stack = {}, answer }: Surroundings = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'simulate-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, '.playline'));
  writeFileSync(join(folder, '.playline', 'stack.json'), JSON.stringify(stack));
  const opened = () => {
    throw new UnreachableError('a store was opened');
  };
  const questions: string[] = [];
  const command = createSimulateCommand({
    headerPrefix: 'x-service',
    folder,
    stop: new AbortController().signal,
    chainApi: () => chainApi,
    indexedChains: () => [{ name: 'demo-chain', urls: [] as readonly string[] } as IndexedChain],
    clickhouse: () => ({ url: 'http://127.0.0.1:1', user: '', password: '', database: '' }),
    hasOwnClickHouse: false,
    imports: {
      openLog: opened,
      openProducer: async () => opened(),
      openStore: opened,
      topicPrefix: '',
      schemas: { idOf: opened, schemaOf: opened },
    },
    createNode: opened,
    createAskNode: opened,
  });
  const ask = async (question: string) => {
    questions.push(question);
    return answer ?? '';
  };
  const result = await runInProcess([command], ['simulate', ...args], answer === undefined ? {} : { prompt: ask });
  return { ...result, questions };
}

/** The command got past its arguments. */
const OPENED = { code: EXIT.unreachable, progress: 'simulate: a store was opened' };

describe('the options of simulate', () => {
  it.each([
    ['an option without its value', ['--rate'], "'--rate <number>' argument missing"],
    ['a number out of bounds', ['--broken', '2'], 'Expected a number from 0 to 0.9.'],
    ['activities without a chain', ['--activities', '5'], '--activities: only with --chain'],
    ['an address of a chain without one', ['--url', 'http://x'], '--url: only with --chain'],
    ['assets without mints', ['--assets', '50'], '--assets: only with --mint'],
    ['messages of the game', ['--chain', '--messages', '5'], '--messages: not with --chain; use --activities'],
    ['players', ['--chain', 'demo-chain', '--players', '5'], '--players: not with --chain'],
    ['a gateway', ['--chain', '--gateway', 'http://x'], '--gateway: not with --chain'],
    ['a chain that the stack has not', ['--chain', 'other'], 'serves demo-chain, not other'],
    ['a chain that is no name', ['--chain', 'Démo'], '--chain: expected the name of a chain'],
    ['an address that is none', ['--chain', '--url', 'over there'], '--url: expected'],
    ['too many activities', ['--chain', '--activities', '200001'], 'Expected a number from 1 to 200000.'],
    ['a share that is none', ['--chain', '--broken', '1'], 'Expected a number from 0 to 0.9.'],
    ['a word too many', ['--chain', 'demo-chain', 'now'], 'too many arguments'],
    ['assets of a game that mints', ['--chain', '--assets', '50'], '--assets: not with --chain'],
    ['messages beside mints', ['--mint', '--messages', '5'], '--messages: not with --mint; use --assets'],
    ['players beside mints', ['--mint', '--players', '5'], '--players: not with --mint'],
    ['an environment of mints', ['--mint', '--environment', 'production'], '--environment: not with --mint'],
    ['activities beside mints', ['--mint', '--activities', '5'], '--activities: not with --mint'],
    ['too few assets', ['--mint', '--assets', '3'], 'Expected a number from 10 to 2000.'],
    ['too many assets', ['--mint', '--assets', '2001'], 'Expected a number from 10 to 2000.'],
    ['a rate beyond all quotas', ['--mint', '--rate', '1001'], '--rate: expected a number from 0 to 1000'],
    ['a day', ['--mint', '--minutes', '1440'], '--minutes: expected a number from 0.01 to 60'],
  ])('refuse %s with exit code 2 before anything is opened', async (_name, args, sentence) => {
    const { code, results, progress } = await run(args, { stack: STACK });
    expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
    expect(progress).toContain(sentence);
  });

  it('are explained by --help', async () => {
    const { code, results } = await run(['--help']);
    expect([code, results[0]]).toEqual([EXIT.ok, expect.stringContaining('Usage: npm run simulate -- [options]')]);
  });
});

describe('a simulation of a game', () => {
  const silent = 'http://127.0.0.1:1';
  const args = ['--gateway', silent, '--key', 'pk_test-key', '--clickhouse-url', silent];
  const production = [...args, '--environment', 'production'];

  it('without a stack says how to start one, with exit code 3', async () => {
    const { code, progress } = await run([]);
    expect([code, progress]).toEqual([EXIT.unreachable, expect.stringContaining('npm run up')]);
  });

  it('writes to production only after a confirmation', async () => {
    const unconfirmed = await run(production);
    expect(unconfirmed).toMatchObject({ code: EXIT.usage, progress: expect.stringContaining('demo-production') });
    expect(unconfirmed.progress).toContain('use --yes');
    const refused = await run(production, { answer: 'no' });
    expect(refused).toMatchObject({ code: EXIT.failed, progress: 'nothing was sent' });
    expect(refused.questions).toHaveLength(1);
    // After a confirmation it gets as far as the gateway, which does not answer.
    expect(await run(production, { answer: 'yes' })).toMatchObject({ code: EXIT.unreachable });
    expect(await run([...production, '--yes'])).toMatchObject({ code: EXIT.unreachable });
  });

  it('writes to development without a confirmation, and reports a gateway that does not answer', async () => {
    const { code, progress, questions } = await run(args, { answer: 'no' });
    expect({ code, questions }).toEqual({ code: EXIT.unreachable, questions: [] });
    expect(progress).toContain(`the gateway at ${silent} does not answer`);
  });
});

describe('a simulation of a chain', () => {
  it.each([
    ['at the end', ['--rate', '0', '--chain']],
    ['in front of an option', ['--chain', '--rate', '0']],
    ['by its name', ['--chain', 'demo-chain']],
  ])('uses the only chain of the stack %s', async (_where, args) => {
    expect(await run(args)).toMatchObject(OPENED);
  });

  it('of one of several chains needs its name', async () => {
    const chainApi = { ...API, chains: [DEMO, { name: 'other', id: 'eip155:1' }] };
    const { code, progress } = await run(['--chain'], { chainApi });
    expect([code, progress]).toEqual([EXIT.usage, expect.stringContaining('one of demo-chain, other')]);
    expect(await run(['--chain', 'other'], { chainApi })).toMatchObject(OPENED);
  });

  it('writes to another deployment only after a confirmation', async () => {
    const args = ['--chain', 'some-chain', '--url', 'http://127.0.0.1:1'];
    const { code, progress } = await run(args, { chainApi: null });
    expect(code).toBe(EXIT.usage);
    expect(progress).toContain('into the history of some-chain, where they remain');
    expect(progress).toContain('use --yes');
    expect(await run([...args, '--yes'], { chainApi: null })).toMatchObject(OPENED);
    expect(await run(['--chain', 'some-chain'], { chainApi: null })).toMatchObject({ code: EXIT.usage });
  });
});

describe('a simulation of mints', () => {
  it('runs on the local stack only, because it revokes a role of the signer', async () => {
    const { code, progress } = await run(['--mint'], { chainApi: null, stack: STACK });
    expect([code, progress]).toEqual([EXIT.usage, expect.stringContaining('the stores of another deployment')]);
  });

  it('reports a stack without a chain', async () => {
    const { code, progress } = await run(['--mint']);
    expect([code, progress]).toEqual([EXIT.unreachable, expect.stringContaining('no stack with a chain runs here')]);
    expect(await run(['--mint'], { stack: STACK })).toMatchObject(OPENED);
  });
});
