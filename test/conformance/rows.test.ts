import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';

const read = (name: string) => readFileSync(resolve(import.meta.dirname, name), 'utf8');

/** Rows of the table in README.md: the row of the contract, the file and its titles. */
const rows = [...read('README.md').matchAll(/^\| (.+) \| \[.+\]\((.+)\) \| (.+) \|$/gm)].map(
  ([, row, file, titles]) => ({
    row: row as string,
    file: file as string,
    titles: [...String(titles).matchAll(/“(.+?)”/g)].map(([, title]) => title as string),
  }),
);

it.each(rows)('the table of rows names titles that exist in $file: $row', ({ file, titles }) => {
  expect(titles.length).toBeGreaterThan(0);
  for (const title of titles) expect(read(file).includes(`'${title}'`), title).toBe(true);
});

it('the table of rows names every test file of this folder', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts'));
  const named = new Set(['rows.test.ts', ...rows.map(({ file }) => file)]);
  expect(files.filter((name) => !named.has(name))).toEqual([]);
  expect(rows.length).toBeGreaterThan(70);
});
