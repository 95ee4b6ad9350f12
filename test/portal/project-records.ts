import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import type { Seed } from './seed.ts';

/** Serialises all records of a project from all portal stores, so that tests can compare them. */
export async function readRecords({ parts }: TestPortal, { id, members }: Seed): Promise<string> {
  const stores = Object.entries(parts).filter(([, part]) => isRecordStore(part));
  const records: unknown[] = [];
  for (const member of Object.values(members)) records.push(['sessions', await parts.sessions.list(member)]);
  for (const [name, store] of stores) {
    const all = await (store as { all(): Promise<readonly object[]> }).all();
    records.push([name, all.filter((record) => JSON.stringify(record).includes(`"${id}"`))]);
  }
  return JSON.stringify(records, null, 1);
}

/** Detects stores by their `all` function, so that new stores are included automatically. */
function isRecordStore(part: unknown): boolean {
  return typeof part === 'object' && part !== null && 'all' in part && typeof part.all === 'function';
}

const CHARACTERS_MIN = 8;

/** Returns the strings, including ids and hashes, that occur in the records of `project` but not of `otherProject`. */
export async function readDistinctTexts(portal: TestPortal, project: Seed, otherProject: Seed): Promise<string[]> {
  const otherRecords = await readRecords(portal, otherProject);
  const texts = (await readRecords(portal, project)).matchAll(/"((?:[^"\\]|\\.)*)"/g);
  return [...new Set([...texts].map(([, text = '']) => text))].filter(
    (text) => text.length >= CHARACTERS_MIN && !otherRecords.includes(text),
  );
}
