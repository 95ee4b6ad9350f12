import { accessKeyCodec } from '@playline/contracts';
import type { KeyRecord, KeyView } from './key-store.ts';
import type { RecordSettling } from './records/pass-over.ts';
import type { Author } from './records/record-store.ts';
import { IncompleteViewFault } from './records/view-faults.ts';

/** Concurrent look-ups when all keys must be searched. */
const FOUND_AT_ONCE = 500;

/**
 * How to restore records of environment keys when one is skipped (`passOverRecord`): a key that has ended stays ended.
 */
export function settlingOfKeys({
  view,
  author,
}: {
  readonly view: Pick<KeyView, 'find' | 'hashes' | 'exclusive'>;
  readonly author: Author;
}): RecordSettling<KeyRecord> {
  return {
    ...{ codec: accessKeyCodec, exclusive: (work) => view.exclusive(work), author },
    standingOf: async (id, logged) => {
      const last = logged.find(({ revokedAt }) => revokedAt !== null) ?? logged.at(-1);
      if (last === undefined) return findById(view, id);
      // The process that wrote the unreadable record may have ended the key in the view.
      const held = await findHeld(view, last.hash);
      return held?.revokedAt == null ? last : held;
    },
    stamp: (standing) => ({ ...standing, ...author, changedAt: Date.now() }),
  };
}

/** Finds a key in the view only, because compaction may have removed it from the log. */
async function findById(view: Pick<KeyView, 'find' | 'hashes'>, id: string): Promise<KeyRecord | null> {
  const hashes = await view.hashes();
  for (let at = 0; at < hashes.length; at += FOUND_AT_ONCE) {
    const records = await Promise.all(hashes.slice(at, at + FOUND_AT_ONCE).map((hash) => findHeld(view, hash)));
    const found = records.find((record) => record?.keyId === id);
    if (found != null) return found;
  }
  return null;
}

/**
 *
 * @returns null also when the view has lost something: then it does not report live keys
 */
async function findHeld(view: Pick<KeyView, 'find'>, hash: string): Promise<KeyRecord | null> {
  try {
    return await view.find(hash);
  } catch (fault) {
    if (fault instanceof IncompleteViewFault) return null;
    throw fault;
  }
}
