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
 * Links that are held in memory at a time, some 200 MB. A person of a thousand identities, the limit of the graph, has
 * half as many pairs.
 */
const LINKS_MAX = 1_000_000;

/** The requests have more links than are held in memory. Fewer requests at a time may have fewer. */
export class TooManyLinksError extends Error {
  override readonly name = 'TooManyLinksError';
  constructor(requests: number) {
    super(`${requests} requests have more than ${LINKS_MAX} links`);
  }
}

/**
 * Finds the closures of requests, from the stored decisions and from other erasures, which may have deleted decisions.
 * @throws StoreFault, TooManyLinksError
 */
export async function resolveClosures(
  { rows, findOthers }: ResolveParts,
  requests: readonly ErasureRequest[],
): Promise<FoundClosure[]> {
  const cutoffMs = requests.reduce((latest, { cutoffAt }) => Math.max(latest, cutoffAt), 0);
  const links: StoredLink[] = [];
  const unlinks: StoredUnlink[] = [];
  const others = new Map<string, Erasure>();
  const seen = new Map<string, number>();
  let round = 0;
  let frontier: NamedIdentity[] = [];
  let next: NamedIdentity[] = [];
  const collect = (environmentId: string, key: Buffer) => {
    const name = nameOf(environmentId, key);
    if (seen.has(name)) return;
    seen.set(name, round);
    next.push({ environmentId, key });
  };
  const collectNamed = (request: ErasureRequest) => {
    for (const key of namedKeys(request)) collect(request.environmentId, key);
  };
  for (const request of requests) collectNamed(request);
  const wasAsked = (environmentId: string, key: Buffer) => (seen.get(nameOf(environmentId, key)) ?? round) < round - 1;
  // One query for all identities that are one link further away. A person is rarely more than three links wide.
  while (next.length > 0) {
    [frontier, next] = [next, []];
    round++;
    const look = newLook(Date.now());
    try {
      await rows.putTargets(
        look,
        frontier.map((identity) => ({ ...identity, cutoffMs })),
      );
      for await (const link of rows.findLinks(look)) {
        const { environmentId, a, b } = link;
        // An earlier query has returned it from its other end.
        if (wasAsked(environmentId, a) || wasAsked(environmentId, b)) continue;
        if (links.push(link) > LINKS_MAX) throw new TooManyLinksError(requests.length);
        collect(environmentId, a);
        collect(environmentId, b);
      }
      for (const unlink of await rows.findUnlinks(look)) unlinks.push(unlink);
      for (const other of await findOthers(frontier)) {
        others.set(other.request.erasureId.toString('hex'), other);
        collectNamed(other.request);
      }
    } finally {
      await rows.dropTargets(look);
    }
  }
  return findClosures(requests, { links, unlinks, others: [...others.values()] });
}

const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
