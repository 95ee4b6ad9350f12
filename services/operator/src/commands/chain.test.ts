import { chainNodes } from '@playline/chain';
import { expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runHere } from '../test/run-here.ts';
import { createChainCommand } from './chain.ts';

const CHAINS = chainNodes().parse('[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:1"]}]');
const TOKEN = ['--chain', 'demo-chain', '--address', `0x${'A'.repeat(40)}`];

async function run(...words: string[]) {
  const nowhere = () => {
    throw new Error('nobody asks');
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
  return runHere([command], ['chain', ...words]);
}

it.each([
  ['no word', [], 'expected status or verify or backfill or refresh-token or verification'],
  ['another word', ['mend'], 'expected status or verify or backfill or refresh-token or verification'],
  ['no chain', ['verify'], '--chain: which one?'],
  ['a chain that is not indexed', ['verify', '--chain', 'elsewhere'], 'is none of the chains that are indexed'],
  ['a token that is none', ['refresh-token', '--chain', 'demo-chain', '--address', '0x1'], '--address: expected 0x'],
  ['a token of no chain', ['verification', ...TOKEN.slice(2), '--status', 'spam'], '--chain: which one?'],
  [
    'a status that is none',
    ['verification', ...TOKEN, '--status', 'good'],
    '--status: expected verified or unverified',
  ],
  ['an unknown option', ['status', '--fast'], "Unknown option '--fast'"],
])('chain with %s ends with exit code 2, and nothing is opened', async (_name, words, sentence) => {
  const { code, results, progress } = await run(...words);
  expect({ code, results }).toEqual({ code: EXIT.usage, results: [] });
  expect(progress).toContain(sentence);
});

it('chain --help lists every option', async () => {
  const { code, results } = await run('--help');
  expect(code).toBe(EXIT.ok);
  for (const name of ['chain', 'from', 'to', 'writer-group', 'address', 'status', 'json'])
    expect(results[0]).toContain(`--${name}`);
});
