import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import type { Planted } from './planted.ts';

/** All records of a project from every store of the portal, as one text to compare. */
export async function recordsOf({ parts }: TestPortal, { id, members }: Planted): Promise<string> {
  const stores = Object.entries(parts).filter(([, part]) => isRecordStore(part));
  const records: unknown[] = [];
  for (const member of Object.values(members)) records.push(['sessions', await parts.sessions.list(member)]);
  for (const [name, store] of stores) {
    const all = await (store as { all(): Promise<readonly object[]> }).all();
    records.push([name, all.filter((record) => JSON.stringify(record).includes(`"${id}"`))]);
  }
  return JSON.stringify(records, null, 1);
}

/** Finds stores by their `all` function, so a new one is included without a change here. */
function isRecordStore(part: unknown): boolean {
  return typeof part === 'object' && part !== null && 'all' in part && typeof part.all === 'function';
}

const DISTINCT_CHARACTERS_MIN = 8;

/** Texts of a project's records, ids and hashes included, that do not occur in the records of the other project. */
export async function textsOf(portal: TestPortal, of: Planted, without: Planted): Promise<string[]> {
  const others = await recordsOf(portal, without);
  const texts = (await recordsOf(portal, of)).matchAll(/"((?:[^"\\]|\\.)*)"/g);
  return [...new Set([...texts].map(([, text = '']) => text))].filter(
    (text) => text.length >= DISTINCT_CHARACTERS_MIN && !others.includes(text),
  );
}
