import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { anvilArguments, anvilProgram } from './anvil.ts';

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'playline-anvil-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function readFlag(statePath: string, name: string): string | undefined {
  const flags = anvilArguments({ port: 1, statePath, epochBlocks: 2, autoMine: false });
  return flags.includes(name) ? flags[flags.indexOf(name) + 1] : undefined;
}

it('the installed anvil program has the version from the lock file', () => {
  const { version } = JSON.parse(readFileSync(join(anvilProgram(), '..', '..', 'package.json'), 'utf8'));
  expect(spawnSync(anvilProgram(), ['--version'], { encoding: 'utf8' }).stdout).toContain(version);
});

it('anvilProgram reports a missing anvil program with fixes', () => {
  const folder = createFolder();
  cpSync(import.meta.dirname, folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'try.ts'), "import { anvilProgram } from './anvil.ts';\nanvilProgram();\n");
  const { status, stderr } = spawnSync(process.execPath, [join(folder, 'try.ts')], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr).toMatch(/@foundry-rs\/anvil-\S+ is not installed: .+ Remove node_modules .+--no-chain/);
});

it('a saved chain resumes with the time of its first block, and a new chain starts at the current time', () => {
  const statePath = join(createFolder(), 'state.json');
  const now = () => Math.floor(Date.now() / 1000);
  const before = now();
  const startedAt = Number(readFlag(statePath, '--timestamp'));
  expect(startedAt).toBeGreaterThanOrEqual(before);
  expect(startedAt).toBeLessThanOrEqual(now());
  expect(readFlag(statePath, '--load-state')).toBeUndefined();
  const blocks = [{ header: { number: '0x1', timestamp: '0x20' } }, { header: { number: '0x0', timestamp: '0x10' } }];
  writeFileSync(statePath, JSON.stringify({ blocks }));
  expect(readFlag(statePath, '--timestamp')).toBe('16');
  expect(readFlag(statePath, '--load-state')).toBe(statePath);
  // The node itself reports a corrupt file.
  writeFileSync(statePath, '{"half');
  expect(readFlag(statePath, '--load-state')).toBe(statePath);
});
