import {
  type Erasure,
  type ErasureRequest,
  type ErasureRows,
  type NamedIdentity,
  namedKeys,
  newSearchId,
  type StoredLink,
  type StoredUnlink,
} from '@playline/erasure';
import { type FoundClosure, findClosures, isHeavy } from './persons.ts';

export interface ResolveParts {
  readonly rows: Pick<ErasureRows, 'putTargets' | 'findLinks' | 'findUnlinks' | 'dropTargets'>;
  /**
   * Finds other erasures that name one of these and may have deleted decisions.
   * @param onLink called for each of their links; what it throws ends the search
   */
  findOthers(identities: readonly NamedIdentity[], onLink: () => void): Promise<Erasure[]>;
  /** Links that may be held in memory. */
  readonly linksMax: number;
}

/** The requests have more links than may be held in memory. Fewer requests at a time may have fewer. */
export class TooManyLinksError extends Error {
  override readonly name = 'TooManyLinksError';
  /** Those about people who have very many identities among the links that were read. */
  readonly heavy: readonly ErasureRequest[];

  constructor(message: string, heavy: readonly ErasureRequest[]) {
    super(message);
    this.heavy = heavy;
  }
}

/**
 * Finds the closures of requests, from the stored decisions and from other erasures, which may have deleted decisions.
 * @throws StoreFault, TooManyLinksError
 */
export async function resolveClosures(
  { rows, findOthers, linksMax }: ResolveParts,
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
  const toClosures = () => findClosures(requests, { links, unlinks, others: [...others.values()] });
  const onLink = createLimit(linksMax, toClosures);
  const wasAsked = (environmentId: string, key: Buffer) => (seen.get(nameOf(environmentId, key)) ?? round) < round - 1;
  // One query for all identities that are one link further away. A person is rarely more than three links wide.
  while (next.length > 0) {
    [frontier, next] = [next, []];
    round++;
    const look = newSearchId(Date.now());
    try {
      await rows.putTargets(
        look,
        frontier.map((identity) => ({ ...identity, cutoffMs })),
      );
      for await (const link of rows.findLinks(look)) {
        const { environmentId, a, b } = link;
        // An earlier query has returned it from its other end.
        if (wasAsked(environmentId, a) || wasAsked(environmentId, b)) continue;
        onLink();
        links.push(link);
        collect(environmentId, a);
        collect(environmentId, b);
      }
      for (const unlink of await rows.findUnlinks(look)) unlinks.push(unlink);
      for (const other of await findOthers(frontier, onLink)) {
        others.set(other.request.erasureId.toString('hex'), other);
        collectNamed(other.request);
      }
    } finally {
      await rows.dropTargets(look);
    }
  }
  return toClosures();
}

/** @returns the function to be called for each link. @throws TooManyLinksError from it */
function createLimit(linksMax: number, toClosures: () => FoundClosure[]): () => void {
  let held = 0;
  return () => {
    if (++held <= linksMax) return;
    const heavy = toClosures().filter(({ keys }) => isHeavy(keys));
    throw new TooManyLinksError(
      `the requests have more than ${linksMax} links`,
      heavy.map(({ request }) => request),
    );
  };
}

const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
