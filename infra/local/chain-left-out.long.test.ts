import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { proveMint } from './commands/start.ts';
import { proveRoundTrip } from './proof.ts';
import { SERVICES } from './services.ts';
import { startStack } from './stack.ts';
import type { Stack, StackOptions } from './stack-options.ts';

/** Time to start all of a stack except the chain, on a busy machine. */
const START_MS = 240_000;
const directory = mkdtempSync(join(tmpdir(), 'playline-no-chain-'));
let stack: Stack | null = null;

afterAll(async () => {
  await stack?.stop();
  rmSync(directory, { recursive: true, force: true });
}, START_MS);

/** Starts a stack and runs its proofs, as `npm start` does. */
async function start(options: StackOptions) {
  const said: string[] = [];
  stack = await startStack({ directory, staysUp: true, report: (line) => said.push(line), ...options });
  const { file, missing } = stack;
  await proveRoundTrip(file);
  const found = { missing, said, mint: await proveMint(file), chain: file.chain, names: Object.keys(file.processes) };
  await stack.stop();
  stack = null;
  return found;
}

const WITHOUT = ['minter', 'chain-indexer'];
const expectWithoutChain = (names: readonly string[]) =>
  expect(names.toSorted()).toEqual(
    [
      ...['kafka', 'registry', 'redis', 'clickhouse'],
      ...SERVICES.map(({ name }) => name).filter((name) => !WITHOUT.includes(name)),
    ].sort(),
  );

test(
  'a stack without a chain is ready without chain, minter and indexer, and reports nothing as missing',
  async () => {
    const { missing, mint, chain, names } = await start({ chain: false });
    expectWithoutChain(names);
    expect([missing, mint, chain]).toEqual([[], null, undefined]);
  },
  START_MS,
);

test(
  'a start reports in one sentence that the chain’s program does not run, and continues without a chain',
  async () => {
    const chainProgram = join(directory, 'no-program');
    writeFileSync(chainProgram, 'of another machine', { mode: 0o755 });
    const { missing, said, mint, chain, names } = await start({ chain: true, chainProgram });
    expectWithoutChain(names);
    expect([mint, chain]).toEqual([null, undefined]);
    expect(missing).toEqual([
      expect.stringMatching(
        /^The chain is left out, and with it chain-indexer and minter: .* does not run on this machine \(.*\)\. Remove .*--no-chain\)\.$/,
      ),
    ]);
    expect(said.filter((line) => line.includes('left out'))).toEqual(missing);
  },
  START_MS,
);

test('a start that needs all parts fails, and says how to mend it', async () => {
  const options = { directory, chain: true, chainProgram: join(directory, 'nowhere') };
  await expect(startStack(options)).rejects.toThrow(/does not run on this machine \(ENOENT\)\. Remove node_modules/);
});
