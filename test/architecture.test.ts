import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ALLOWED_LINES } from './architecture/allowed.ts';
import { EXCEPTIONS, findBreaches, toLine } from './architecture/check.ts';
import { PLANTED_FILES, PLANTED_LINES } from './architecture/planted.ts';
import { createTree, createTreeWith } from './architecture/sound-tree.ts';
import { readTree, type Tree } from './architecture/tree.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const breachesOf = (tree: Tree) => findBreaches(tree).map(({ rule, path }) => `${rule}: ${path}`);

describe('the repository', () => {
  it('breaks no rule of its architecture', () => {
    expect(findBreaches(readTree(ROOT)).map(toLine)).toEqual([]);
  });

  it('needs no exceptions from the rules', () => {
    expect(EXCEPTIONS).toEqual([]);
  });
});

describe('the rules', () => {
  it('accept a tree without breaches', () => {
    expect(findBreaches(createTree()).map(toLine)).toEqual([]);
  });

  it.each(PLANTED_LINES)('report a file when $because', ({ path, lines, rule }) => {
    expect(breachesOf(createTreeWith(path, lines))).toContain(`${rule}: ${path}`);
  });

  it.each(PLANTED_FILES)('report a tree with $because', ({ files, breach }) => {
    expect(breachesOf(createTree(files))).toEqual([breach]);
  });

  it('explain how to mend every breach', () => {
    const trees = [
      ...PLANTED_LINES.map(({ path, lines }) => createTreeWith(path, lines)),
      ...PLANTED_FILES.map(({ files }) => createTree(files)),
    ];
    for (const line of trees.flatMap(findBreaches).map(toLine))
      expect(line).toMatch(/: .+\. To mend: .{10,}\. \[[a-z ]+\]$/);
  });

  it.each(ALLOWED_LINES)('accept $what', ({ path, lines }) => {
    expect(findBreaches(createTreeWith(path, lines))).toEqual([]);
  });

  it('fail for a tree with a file that cannot be parsed', () => {
    expect(() => findBreaches(createTree({ 'infra/broken.ts': 'const = ;' }))).toThrow(
      'infra/broken.ts cannot be parsed',
    );
  });
});
