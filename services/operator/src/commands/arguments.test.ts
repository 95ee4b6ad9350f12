import { Readable } from 'node:stream';
import { chainNodes } from '@playline/chain';
import { expect, it } from 'vitest';
import type { ChainApiAddress } from '../addresses.ts';
import { EXIT } from '../command.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createAnalystsCommand } from './analysts.ts';
import { createChainCommand } from './chain.ts';
import { createColumnsCommand } from './columns.ts';
import { createImportCommand } from './import.ts';
import { createReplicateCommand } from './replicate.ts';

const CHAINS = chainNodes().parse('[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:1"]}]');
const STACK = { url: 'http://127.0.0.1:1', chains: [{ name: 'demo-chain', id: 'eip155:31337' }] };

/** @param stack chain API of the local stack, or null if the environment configures a deployment */
function run(args: readonly string[], stack: ChainApiAddress | null = STACK) {
  const nowhere = () => {
    throw new Error('a store was opened');
  };
  const { signal: stop } = new AbortController();
  const sources = { openLog: nowhere, openProducer: nowhere, openStore: nowhere, topicPrefix: '', stop };
  const shared = { ...sources, schemas: { idOf: nowhere, schemaOf: nowhere }, folder: '/nowhere' };
  const clock = { wallClockMs: () => 0 };
  const commands = [
    createAnalystsCommand({ clickhouse: nowhere, folder: '/nowhere', environment: {} }),
    createChainCommand({ ...shared, ...clock, createNode: nowhere, openPublisher: nowhere, chains: () => CHAINS }),
    createColumnsCommand({ ...clock, clickhouse: nowhere, stop }),
    createImportCommand({ ...shared, stdin: Readable.from([]) }),
    createReplicateCommand({ ...shared, clickhouse: nowhere, chainApi: () => stack, writeOut: async () => {} }),
  ];
  return runInProcess(commands, args);
}

const ADD = ['columns', 'add', '--name', 'coins', '--path', 'coins', '--type', 'Int64'];
const withoutOption = (name: string) =>
  ADD.filter((_, index) => index !== ADD.indexOf(name) && index !== ADD.indexOf(name) + 1);
const IMPORT = ['import', '--topic', 'chain.activities.v1'];
const REPLICATE = ['replicate', '--chain', 'demo-chain', '--url', 'http://127.0.0.1:1', '--to', 'stdout'];
const TOKEN = ['--chain', 'demo-chain', '--address', `0x${'A'.repeat(40)}`];

const analysts = (args: string) => ['analysts', ...args.split(' ')];

it.each([
  [analysts('rename'), "unknown command 'rename'"],
  [analysts('create'), '--environment: expected'],
  [analysts('create --environment Production!'), '--environment: expected'],
  [analysts('create --environment production --all-environments'), 'cannot be used with option'],
  [analysts('create --environment production --account analyst_1'), "unknown option '--account'"],
  [analysts('grant --environment production'), "required option '--account <name>'"],
  [analysts("grant --account a'b --environment production"), 'Expected an account name'],
  [analysts('drop'), "required option '--account <name>'"],
  [analysts('list --account analyst'), "unknown option '--account'"],
  [['chain', 'verify'], "required option '--chain <name>' not specified"],
  [['chain', 'verify', '--chain', 'elsewhere'], 'elsewhere is not an indexed chain'],
  [['chain', 'refresh-token', '--chain', 'demo-chain', '--address', '0x1'], '--address: expected 0x'],
  [['chain', 'verification', ...TOKEN, '--status', 'good'], 'Allowed choices are verified, unverified'],
  [withoutOption('--name'), "required option '--name <name>'"],
  [withoutOption('--path'), "required option '--path <path>'"],
  [withoutOption('--type'), "required option '--type <type>'"],
  [[...ADD, '--name', 'Coins'], 'Expected at most 64'],
  [[...ADD, '--name', 'c'.repeat(65)], 'Expected at most 64'],
  [['columns', 'drop', '--name', 'property_coins'], 'Expected the name without property_'],
  [[...ADD, '--path', 'a..b'], 'Expected names'],
  [[...ADD, '--type', 'UInt8'], 'Allowed choices are Int64, Float64,'],
  [[...ADD, '--default', 'none'], '--default: expected a whole'],
  [['import', '-'], "required option '--topic <topic>' not specified"],
  [['import', '--topic', 'audience.messages.v1', '-'], 'Allowed choices are chain.activities.v1, chain.tokens.v1'],
  [IMPORT, "missing required argument 'file'"],
  [[...IMPORT, 'none.ndjson'], 'file /nowhere/none.ndjson does not exist'],
  [[...IMPORT, '-', '--chain', 'Démo'], '--chain: expected'],
  [[...REPLICATE, '--chain', 'Démo'], '--chain: expected'],
  [[...REPLICATE, '--url', 'not a URL'], '--url: expected'],
  [['replicate', '--chain', 'other', '--to', 'stdout'], 'serves demo-chain, not other'],
  [[...REPLICATE, '--to', 'unknown'], 'Allowed choices are file, clickhouse, stdout'],
  [[...REPLICATE, '--out', 'x'], '--out requires --to file'],
  [[...REPLICATE, '--to', 'clickhouse', '--table', 'a; DROP'], '--table: expected'],
  [[...REPLICATE, '--page-size', '201'], 'Expected a number from 1 to 200'],
])('the command %j exits with code 2 before it opens a store', async (args, message) => {
  const { code, results, progress } = await run(args);
  expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
  expect(progress).toContain(message);
  expect(progress).toContain(`(see npm run ${args[0]} -- `);
});

it('replicate without --url uses the local stack, and fails if the environment configures a deployment', async () => {
  const args = ['replicate', '--chain', 'demo-chain', '--to', 'stdout', '--patience-seconds', '0'];
  const { code, progress } = await run(args);
  expect({ code, progress }).toMatchObject({ code: EXIT.unreachable });
  expect(progress).toContain('http://127.0.0.1:1 does not respond');
  const other = await run(args, null);
  expect([other.code, other.progress]).toEqual([EXIT.usage, expect.stringContaining('--url: expected')]);
});
