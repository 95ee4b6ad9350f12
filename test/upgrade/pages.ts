import { readFileSync } from 'node:fs';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Services in the order in which infra/UPGRADE.md replaces them. */
export const readOrder = (): string[] =>
  [...read('infra/UPGRADE.md').matchAll(/^\| \d+ \| (.*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name),
  );

export interface ChangelogEntry {
  readonly version: string;
  readonly headings: readonly string[];
}

/** Entries of CHANGELOG.md, newest first. */
export const readChangelog = (): ChangelogEntry[] =>
  read('CHANGELOG.md')
    .split(/^## /m)
    .slice(1)
    .map((entry) => ({
      version: /^\S+(?=, (unreleased|\d{4}-\d\d-\d\d)$)/m.exec(entry)?.[0] ?? '',
      headings: [...entry.matchAll(/^### (.*)$/gm)].map(([, heading = '']) => heading),
    }));

export const readVersion = (): string => (JSON.parse(read('package.json')) as { version: string }).version;
