import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IndexedChain } from '@playline/chain';
import { expect, it, onTestFinished } from 'vitest';
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

interface Setup {
  /** The local stack's chain API; null if the environment configures another deployment. */
  readonly chainApi?: ChainApiAddress | null;
  readonly stack?: object;
  /** Terminal input; undefined without a terminal. */
  readonly typed?: string;
}

async function run(args: readonly string[], { chainApi = API, stack = {}, typed }: Setup = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'simulate-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, '.playline'));
  writeFileSync(join(folder, '.playline', 'stack.json'), JSON.stringify(stack));
  const opened = () => {
    throw new UnreachableError('a store was opened');
  };
  const prompts: string[] = [];
  const command = createSimulateCommand({
    headerPrefix: 'x-service',
    folder,
    stop: new AbortController().signal,
    chainApi: () => chainApi,
    indexedChains: () => [{ name: 'demo-chain', urls: [] as readonly string[] } as IndexedChain],
    clickhouse: () => ({ url: 'http://127.0.0.1:1', user: '', password: '', database: '' }),
    hasClickHouseUrl: false,
    imports: {
      openLog: opened,
      openProducer: async () => opened(),
      openStore: opened,
      topicPrefix: '',
      schemas: { idOf: opened, schemaOf: opened },
    },
    createNode: opened,
    createCallNode: opened,
  });
  const prompt = async (text: string) => {
    prompts.push(text);
    return typed ?? '';
  };
  const result = await runInProcess([command], ['simulate', ...args], typed === undefined ? {} : { prompt });
  return { ...result, prompts };
}

const OPENED = { code: EXIT.unreachable, progress: 'simulate: a store was opened' };

it.each([
  [['--rate'], "'--rate <number>' argument missing"],
  [['--broken', '2'], 'Expected a number from 0 to 0.9.'],
  [['--activities', '5'], '--activities: only with --chain'],
  [['--assets', '50'], '--assets: only with --mint'],
  [['--chain', '--messages', '5'], '--messages: not with --chain; use --activities'],
  [['--chain', 'demo-chain', '--players', '5'], '--players: not with --chain'],
  [['--chain', '--clickhouse-url', 'http://x'], '--clickhouse-url: not with --chain'],
  [['--chain', '--assets', '50'], '--assets: not with --chain'],
  [['--chain', '--mint'], '--mint: not with --chain'],
  [['--chain', 'other'], 'serves demo-chain, not other'],
  [['--chain', 'Démo'], '--chain: expected a chain name'],
  [['--chain', '--url', 'not a url'], '--url: expected'],
  [['--chain', '--activities', '200001'], 'Expected a number from 1 to 200000.'],
  [['--chain', 'demo-chain', 'now'], 'too many arguments'],
  [['--mint', '--messages', '5'], '--messages: not with --mint; use --assets'],
  [['--mint', '--environment', 'production'], '--environment: not with --mint'],
  [['--mint', '--assets', '3'], 'Expected a number from 10 to 2000.'],
  [['--mint', '--rate', '1001'], '--rate: expected a number from 0 to 1000'],
  [['--mint', '--minutes', '1440'], '--minutes: expected a number from 0.01 to 60'],
  [['--environment', 'staging'], '--environment: expected production or development'],
])('simulate %j exits with 2 without opening a store', async (args, message) => {
  const { code, results, progress } = await run(args, { stack: STACK });
  expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
  expect(progress).toContain(message);
});

const silent = 'http://127.0.0.1:1';
const game = ['--gateway', silent, '--key', 'pk_test-key', '--clickhouse-url', silent];
const production = [...game, '--environment', 'production'];

it('simulate without a running stack exits with 3 and explains how to start the stack', async () => {
  const { code, progress } = await run([]);
  expect([code, progress]).toEqual([EXIT.unreachable, expect.stringContaining('npm run up')]);
});

it('simulate posts to production only after a confirmation', async () => {
  const unconfirmed = await run(production);
  expect(unconfirmed).toMatchObject({ code: EXIT.usage, progress: expect.stringContaining('demo-production') });
  expect(unconfirmed.progress).toContain('use --yes');
  const refused = await run(production, { typed: 'no' });
  expect(refused).toMatchObject({ code: EXIT.failed, progress: 'nothing was sent' });
  expect(refused.prompts).toHaveLength(1);
  // The exit code shows that the command tried to reach the gateway.
  expect(await run(production, { typed: 'yes' })).toMatchObject({ code: EXIT.unreachable });
  expect(await run([...production, '--yes'])).toMatchObject({ code: EXIT.unreachable });
});

it('simulate posts to development without a confirmation and reports a gateway that does not respond', async () => {
  const { code, progress, prompts } = await run(game, { typed: 'no' });
  expect({ code, prompts }).toEqual({ code: EXIT.unreachable, prompts: [] });
  expect(progress).toContain(`the gateway at ${silent} does not respond`);
});

it.each([[['--rate', '0', '--chain']], [['--chain', '--rate', '0']], [['--chain', 'demo-chain']]])(
  'simulate %j uses the only chain of the stack',
  async (args) => expect(await run(args)).toMatchObject(OPENED),
);

it('simulate --chain requires a chain name if the stack has several chains', async () => {
  const chainApi = { ...API, chains: [DEMO, { name: 'other', id: 'eip155:1' }] };
  const { code, progress } = await run(['--chain'], { chainApi });
  expect([code, progress]).toEqual([EXIT.usage, expect.stringContaining('one of demo-chain, other')]);
  expect(await run(['--chain', 'other'], { chainApi })).toMatchObject(OPENED);
});

it('simulate --chain publishes to another deployment only after a confirmation', async () => {
  const args = ['--chain', 'some-chain', '--url', 'http://127.0.0.1:1'];
  const { code, progress } = await run(args, { chainApi: null });
  expect(code).toBe(EXIT.usage);
  expect(progress).toContain('into the history of some-chain, where they remain');
  expect(progress).toContain('use --yes');
  expect(await run([...args, '--yes'], { chainApi: null })).toMatchObject(OPENED);
  expect(await run(['--chain', 'some-chain'], { chainApi: null })).toMatchObject({ code: EXIT.usage });
});

it('simulate --mint refuses to run on another deployment', async () => {
  const { code, progress } = await run(['--mint'], { chainApi: null, stack: STACK });
  expect([code, progress]).toEqual([EXIT.usage, expect.stringContaining('the stores of another deployment')]);
});

it('simulate --mint refuses to run on a stack without a chain', async () => {
  const { code, progress } = await run(['--mint']);
  expect([code, progress]).toEqual([
    EXIT.unreachable,
    expect.stringContaining('no local stack with a chain is running'),
  ]);
  expect(await run(['--mint'], { stack: STACK })).toMatchObject(OPENED);
});
