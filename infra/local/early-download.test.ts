import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('the early download of stores runs without installed packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'playline-early-'));
  try {
    cpSync(import.meta.dirname, join(folder, 'infra', 'local'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const script = "import('./install-stores.ts').then((module) => console.log(typeof module.installStores))";
    const options = { cwd: join(folder, 'infra', 'local'), encoding: 'utf8' } as const;
    expect(execFileSync(process.execPath, ['-e', script], options)).toBe('function\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
