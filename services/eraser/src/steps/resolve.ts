import {
  type Erasure,
  type ErasureRequest,
  type ErasureRows,
  newLook,
  type StoredLink,
  type StoredUnlink,
} from '@playline/erasure';
import { type Closure, findClosures } from './persons.ts';

/**
 * Finds out whom requests are about: from the stored decisions, and from other erasures that were open when these were asked for,
 * whose decisions may be gone.
 * @throws RowsFault
 */
export async function resolveClosures(
  rows: Pick<ErasureRows, 'putTargets' | 'findLinks' | 'findUnlinks' | 'dropTargets'>,
  requests: readonly ErasureRequest[],
  others: readonly Erasure[],
): Promise<Closure[]> {
  const cutoffMs = Math.max(...requests.map(({ cutoffAt }) => cutoffAt));
  const links: StoredLink[] = [];
  const unlinks: StoredUnlink[] = [];
  const collect = createCollect(others.map(({ request }) => request));
  let frontier = collect(requests.flatMap(identitiesOf));
  // One look for everybody who is a step further away: a person is rarely more than three steps wide.
  while (frontier.length > 0) {
    const look = newLook(Date.now());
    try {
      await rows.putTargets(
        look,
        frontier.map((identity) => ({ ...identity, cutoffMs })),
      );
      const found = await rows.findLinks(look);
      links.push(...found);
      unlinks.push(...(await rows.findUnlinks(look)));
      frontier = collect(found.flatMap(({ environmentId, a, b }) => [a, b].map((key) => ({ environmentId, key }))));
    } finally {
      await rows.dropTargets(look);
    }
  }
  return findClosures(requests, { links, unlinks, others });
}

interface Identity {
  readonly environmentId: string;
  readonly key: Buffer;
}

const nameOf = ({ environmentId, key }: Identity) => `${environmentId} ${key.toString('latin1')}`;

function identitiesOf({ environmentId, subjectKeys, memberKeys }: ErasureRequest): Identity[] {
  return [...subjectKeys, ...memberKeys].map((key) => ({ environmentId, key }));
}

/** @returns what gives those that it was not given yet, once each, and with them whom other erasures name beside them */
function createCollect(others: readonly ErasureRequest[]): (identities: readonly Identity[]) => Identity[] {
  const seen = new Set<string>();
  const named = others.flatMap((request) => identitiesOf(request).map((identity) => ({ identity, request })));
  const byName = Map.groupBy(named, ({ identity }) => nameOf(identity));
  return (identities) => {
    const collected: Identity[] = [];
    const waiting = [...identities];
    for (let identity = waiting.pop(); identity !== undefined; identity = waiting.pop()) {
      const name = nameOf(identity);
      if (seen.has(name)) continue;
      seen.add(name);
      collected.push(identity);
      for (const { request } of byName.get(name) ?? []) waiting.push(...identitiesOf(request));
    }
    return collected;
  };
}
