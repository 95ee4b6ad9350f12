import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('what is fetched before the packages are there needs none of them', () => {
  const away = mkdtempSync(join(tmpdir(), 'playline-early-'));
  try {
    cpSync(import.meta.dirname, join(away, 'infra', 'local'), { recursive: true });
    writeFileSync(join(away, 'package.json'), '{ "type": "module" }');
    const words = "import('./provide.ts').then((module) => console.log(typeof module.provideStores))";
    const options = { cwd: join(away, 'infra', 'local'), encoding: 'utf8' } as const;
    expect(execFileSync(process.execPath, ['-e', words], options)).toBe('function\n');
  } finally {
    rmSync(away, { recursive: true });
  }
});
