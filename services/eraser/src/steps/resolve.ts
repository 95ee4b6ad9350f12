import { randomBytes } from 'node:crypto';
import type { ErasureRequest, ErasureRows, StoredLink, StoredUnlink } from '@playline/erasure';
import { type ErasedPerson, findPersons } from './persons.ts';

/** Finds out from the stored decisions who is erased. @throws RowsFault */
export async function resolvePersons(
  rows: Pick<ErasureRows, 'putTargets' | 'findLinks' | 'findUnlinks' | 'dropTargets'>,
  requests: readonly ErasureRequest[],
): Promise<ErasedPerson[]> {
  const cutoffMs = Math.max(...requests.map(({ cutoffAt }) => cutoffAt));
  const links: StoredLink[] = [];
  const unlinks: StoredUnlink[] = [];
  const seen = new Set<string>();
  let frontier = collect(
    seen,
    requests.flatMap(({ environmentId, subjectKeys, memberKeys }) =>
      [...subjectKeys, ...memberKeys].map((key) => ({ environmentId, key })),
    ),
  );
  // One look for everybody who is a step further away: a person is rarely more than three steps wide.
  while (frontier.length > 0) {
    const look = randomBytes(16);
    try {
      await rows.putTargets(
        look,
        frontier.map((identity) => ({ ...identity, cutoffMs })),
      );
      const found = await rows.findLinks(look);
      links.push(...found);
      unlinks.push(...(await rows.findUnlinks(look)));
      const ends = found.flatMap(({ environmentId, a, b }) => [a, b].map((key) => ({ environmentId, key })));
      frontier = collect(seen, ends);
    } finally {
      await rows.dropTargets(look);
    }
  }
  return findPersons(requests, { links, unlinks });
}

interface Identity {
  readonly environmentId: string;
  readonly key: Buffer;
}

/** Those that were not seen yet, once each. */
function collect(seen: Set<string>, identities: readonly Identity[]): Identity[] {
  return identities.filter(({ environmentId, key }) => {
    const name = `${environmentId} ${key.toString('latin1')}`;
    return !seen.has(name) && seen.add(name);
  });
}
