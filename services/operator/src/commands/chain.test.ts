import { chainNodes } from '@playline/chain';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createChainCommand } from './chain.ts';

const CHAINS = chainNodes().parse('[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:1"]}]');
const TOKEN = ['--chain', 'demo-chain', '--address', `0x${'A'.repeat(40)}`];

async function run(...words: string[]) {
  const nowhere = () => {
    throw new Error('not opened in this test');
  };
  const command = createChainCommand({
    openLog: nowhere,
    openProducer: nowhere,
    openStore: nowhere,
    createNode: nowhere,
    openPublisher: nowhere,
    chains: () => CHAINS,
    wallClockMs: () => 0,
    schemas: { idOf: nowhere, schemaOf: nowhere },
    topicPrefix: '',
    stop: new AbortController().signal,
  });
  return runInProcess([command], ['chain', ...words]);
}

it.each([
  ['no subcommand', [], 'Usage: npm run chain'],
  ['an unknown subcommand', ['repair'], "unknown command 'repair'"],
  ['no chain', ['verify'], "required option '--chain <name>' not specified"],
  ['a chain that is not indexed', ['verify', '--chain', 'elsewhere'], 'elsewhere is not an indexed chain'],
  ['a token that is none', ['refresh-token', '--chain', 'demo-chain', '--address', '0x1'], '--address: expected 0x'],
  [
    'a token of no chain',
    ['verification', ...TOKEN.slice(2), '--status', 'spam'],
    "required option '--chain <name>' not specified",
  ],
  ['a status that is none', ['verification', ...TOKEN, '--status', 'good'], 'Allowed choices are verified, unverified'],
  ['an unknown option', ['status', '--fast'], "unknown option '--fast'"],
])('chain with %s ends with exit code 2, and nothing is opened', async (_name, words, sentence) => {
  const { code, results, progress } = await run(...words);
  expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
  expect(progress).toContain(sentence);
});
