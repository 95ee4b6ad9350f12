import {
  type Erasure,
  type ErasureRequest,
  type ErasureRows,
  type NamedIdentity,
  namedKeys,
  newLook,
  type StoredLink,
  type StoredUnlink,
} from '@playline/erasure';
import { type FoundClosure, findClosures } from './persons.ts';

export interface ResolveParts {
  readonly rows: Pick<ErasureRows, 'putTargets' | 'findLinks' | 'findUnlinks' | 'dropTargets'>;
  /** Finds other erasures that name one of these and may have deleted decisions. */
  findOthers(identities: readonly NamedIdentity[]): Promise<Erasure[]>;
}

/**
 * Finds the closures of requests, from the stored decisions and from other erasures, which may have deleted decisions.
 * @throws StoreFault
 */
export async function resolveClosures(
  { rows, findOthers }: ResolveParts,
  requests: readonly ErasureRequest[],
): Promise<FoundClosure[]> {
  const cutoffMs = Math.max(...requests.map(({ cutoffAt }) => cutoffAt));
  const links: StoredLink[] = [];
  const unlinks: StoredUnlink[] = [];
  const others = new Map<string, Erasure>();
  const collect = createCollect();
  let frontier = collect(requests.flatMap(identitiesOf));
  // One query for all identities that are one link further away. A person is rarely more than three links wide.
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
      const named = await findOthers(frontier);
      for (const other of named) others.set(other.request.erasureId.toString('hex'), other);
      const ends = found.flatMap(({ environmentId, a, b }) => [a, b].map((key) => ({ environmentId, key })));
      frontier = collect([...ends, ...named.flatMap(({ request }) => identitiesOf(request))]);
    } finally {
      await rows.dropTargets(look);
    }
  }
  return findClosures(requests, { links, unlinks, others: [...others.values()] });
}

const nameOf = ({ environmentId, key }: NamedIdentity) => `${environmentId} ${key.toString('latin1')}`;

function identitiesOf(request: ErasureRequest): NamedIdentity[] {
  return namedKeys(request).map((key) => ({ environmentId: request.environmentId, key }));
}

/** @returns a function that returns the identities that it has not been given before, each once */
function createCollect(): (identities: readonly NamedIdentity[]) => NamedIdentity[] {
  const seen = new Set<string>();
  return (identities) =>
    identities.filter((identity) => {
      const name = nameOf(identity);
      return !seen.has(name) && seen.add(name);
    });
}
