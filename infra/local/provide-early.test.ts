import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';

/** Every module that a file needs when it runs: its own, and those of the files it imports. */
function modulesOf(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const { importedFiles } = ts.preProcessFile(readFileSync(file, 'utf8'));
  for (const { fileName } of importedFiles) {
    if (fileName.startsWith('.')) modulesOf(resolve(dirname(file), fileName), seen);
    else seen.add(fileName);
  }
  return seen;
}

test('what is fetched before the packages are there needs none of them', () => {
  const modules = [...modulesOf(resolve(import.meta.dirname, 'provide-early.ts'))];
  expect(modules).toContain(resolve(import.meta.dirname, 'jars.ts'));
  expect(modules.filter((name) => !name.startsWith('/') && !name.startsWith('node:'))).toEqual([]);
});
