import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { readTree, type Tree } from '../house/tree.ts';
import { findLinkError, linksOf } from './markdown.ts';
import { NEWCOMER_PATHS } from './questions.ts';

const tree = readTree(fileURLToPath(new URL('../..', import.meta.url)));
/** The links of the guides are paths of the documentation site, which codes.test.ts and guides.test.ts check. */
const pages = [...tree.keys()].filter((path) => path.endsWith('.md') && !path.startsWith('packages/guides/content/'));

const textAt = (path: string, files: Tree) =>
  files.get(path) ?? [...files].map(([file, text]) => (file.startsWith(`${path}/`) ? text : '')).join('\n');

const missingLinks = (path: readonly string[], files: Tree) =>
  path.slice(1).filter((next, index) => {
    const page = path[index]?.split('#')[0] ?? '';
    return !linksOf(page, files).some((link) => [link.path, `${link.path}#${link.anchor}`].includes(next));
  });

it.each(pages)('%s has no broken links', (page) => {
  const faults = linksOf(page, tree).flatMap((link) => findLinkError(link, tree) ?? []);
  expect(faults).toEqual([]);
});

it.each(NEWCOMER_PATHS)('links from the root README lead to the answer to "$goal"', ({ path, answer }) => {
  expect(missingLinks(path, tree)).toEqual([]);
  expect(textAt(path.at(-1)?.split('#')[0] ?? '', tree)).toMatch(answer);
});

it('the decision index lists every decision with its title', () => {
  const decisions = pages.filter((page) => /^infra\/decisions\/\d/.test(page));
  const index = tree.get('infra/decisions/README.md') ?? '';
  const lines = decisions.map((page) => {
    const [, number, title] = /^# (\d{4}): (.*)/.exec(tree.get(page) ?? '') ?? [];
    return `- [${number}](${page.slice('infra/decisions/'.length)}): ${title}`;
  });
  expect(index.split('\n').filter((line) => line.startsWith('- '))).toEqual(lines);
});

const small: Tree = new Map([
  ['README.md', 'See [one](a/b.md#what-it-is), [none](a/c.md) and [nowhere](a/b.md#other).\n```\n[x](y.md)\n```\n'],
  [
    'a/b.md',
    '# What it is\n\n## `code`, and more: `x-y`\n\n[up](../README.md), [here](#code-and-more-x-y), `[code](no.md)`\n',
  ],
]);

it('the link check reports only missing pages and missing headings', () => {
  const faultsOf = (page: string) => linksOf(page, small).flatMap((link) => findLinkError(link, small) ?? []);
  expect(faultsOf('README.md')).toEqual(['a/c.md does not exist', 'a/b.md has no heading #other']);
  expect(faultsOf('a/b.md')).toEqual([]);
});

it('the path check reports a page that the previous page does not link to', () => {
  expect(missingLinks(['README.md', 'a/b.md#what-it-is', 'README.md'], small)).toEqual([]);
  expect(missingLinks(['README.md', 'a/b.md#else', 'a/d.md'], small)).toEqual(['a/b.md#else', 'a/d.md']);
});
