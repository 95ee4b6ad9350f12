import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';

const read = (path: string) => readFileSync(resolve(import.meta.dirname, path), 'utf8');
const rows = [...read('README.md').matchAll(/^\| (.+) \| (.+) \|$/gm)].slice(2).map(([, section, files]) => ({
  section: section as string,
  files: [...String(files).matchAll(/\]\(([^)]+)\)/g)].map(([, file]) => file as string),
}));

it('the table in the README lists every section of the contract', () => {
  const sections = [...read('../../packages/contracts/README.md').matchAll(/^###? ([^:\n]+)(: .*)?$/gm)];
  const names = sections.map(([, name]) => name as string).filter((name) => name !== 'Ingest');
  expect(rows.map(({ section }) => section)).toEqual(names);
});

it('the table in the README lists exactly the test files of this folder', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts') && name !== 'rows.test.ts');
  expect([...new Set(rows.flatMap((row) => row.files))].sort()).toEqual(files.sort());
});
