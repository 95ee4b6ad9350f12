import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { proveMint } from './commands/start.ts';
import { proveRoundTrip } from './proof.ts';
import { SERVICES } from './services.ts';
import { startStack } from './stack.ts';
import type { Stack } from './stack-options.ts';

/** Time to start a stack without the chain on a busy machine. */
const START_MS = 240_000;
const directory = mkdtempSync(join(tmpdir(), 'playline-no-chain-'));
let stack: Stack | null = null;

afterAll(async () => {
  await stack?.stop();
  rmSync(directory, { recursive: true, force: true });
}, START_MS);

test(
  'a start whose chain program does not run reports that once, and runs everything but chain, minter and indexer',
  async () => {
    const chainProgram = join(directory, 'no-program');
    writeFileSync(chainProgram, 'of another machine', { mode: 0o755 });
    const lines: string[] = [];
    const report = (line: string) => void lines.push(line);
    stack = await startStack({ directory, staysUp: true, report, chain: true, chainProgram });
    const { file, missing } = stack;
    await proveRoundTrip(file);
    const services = SERVICES.map(({ name }) => name).filter((name) => name !== 'minter' && name !== 'chain-indexer');
    const running = ['kafka', 'registry', 'redis', 'clickhouse', ...services];
    expect(Object.keys(file.processes).toSorted()).toEqual(running.toSorted());
    expect([await proveMint(file), file.chain]).toEqual([null, undefined]);
    expect(missing).toEqual([
      expect.stringMatching(
        /^The chain is left out, and with it chain-indexer and minter: .* does not run on this machine \(.*\)\. Remove .*--no-chain\)\.$/,
      ),
    ]);
    expect(lines.filter((line) => line.includes('left out'))).toEqual(missing);
  },
  START_MS,
);

test('a start that needs all parts fails with the fix', async () => {
  const options = { directory, chain: true, chainProgram: join(directory, 'nowhere') };
  await expect(startStack(options)).rejects.toThrow(/does not run on this machine \(ENOENT\)\. Remove node_modules/);
});
