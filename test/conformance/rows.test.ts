import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';

const read = (path: string) => readFileSync(resolve(import.meta.dirname, path), 'utf8');
const rows = [...read('README.md').matchAll(/^\| (.+) \| (.+) \|$/gm)].slice(2).map(([, part, files]) => ({
  part: part as string,
  files: [...String(files).matchAll(/\]\(([^)]+)\)/g)].map(([, file]) => file as string),
}));

it('the table has every part of the contract', () => {
  const parts = [...read('../../packages/contracts/README.md').matchAll(/^###? ([^:\n]+)(: .*)?$/gm)];
  const names = parts.map(([, name]) => name as string).filter((name) => name !== 'Ingest');
  expect(rows.map(({ part }) => part)).toEqual(names);
});

it('the table names every test file of this folder, and no other', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts') && name !== 'rows.test.ts');
  expect([...new Set(rows.flatMap((row) => row.files))].sort()).toEqual(files.sort());
});
