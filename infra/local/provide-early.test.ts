import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('the early download of stores needs no installed packages', () => {
  const away = mkdtempSync(join(tmpdir(), 'playline-early-'));
  try {
    cpSync(import.meta.dirname, join(away, 'infra', 'local'), { recursive: true });
    writeFileSync(join(away, 'package.json'), '{ "type": "module" }');
    const script = "import('./provide.ts').then((module) => console.log(typeof module.provideStores))";
    const options = { cwd: join(away, 'infra', 'local'), encoding: 'utf8' } as const;
    expect(execFileSync(process.execPath, ['-e', script], options)).toBe('function\n');
  } finally {
    rmSync(away, { recursive: true });
  }
});
