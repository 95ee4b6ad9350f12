/** Finds the identities to erase for each request by reading stored decisions. */
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
  /** Finds erasures that may have deleted decisions. @param onLink called for each link; may throw */
  findOthers(identities: readonly NamedIdentity[], onLink: () => void): Promise<Erasure[]>;
  readonly linksMax: number;
}

/** The requests have too many links for one batch. */
export class TooManyLinksError extends Error {
  override readonly name = 'TooManyLinksError';
  /** Requests for people who have many identities. */
  readonly heavy: readonly ErasureRequest[];

  constructor(message: string, heavy: readonly ErasureRequest[]) {
    super(message);
    this.heavy = heavy;
  }
}

/** Finds the requests' closures from stored decisions and other erasures. @throws StoreFault, TooManyLinksError */
export async function resolveClosures(
  { rows, findOthers, linksMax }: ResolveParts,
  requests: readonly ErasureRequest[],
): Promise<FoundClosure[]> {
  const cutoffMs = requests.reduce((latest, { cutoffAt }) => Math.max(latest, cutoffAt), 0);
  const links: StoredLink[] = [];
  const unlinks: StoredUnlink[] = [];
  const others = new Map<string, Erasure>();
  const roundOf = new Map<string, number>();
  let round = 0;
  let frontier: NamedIdentity[] = [];
  let next: NamedIdentity[] = [];
  const collect = (environmentId: string, key: Buffer) => {
    const name = nameOf(environmentId, key);
    if (roundOf.has(name)) return;
    roundOf.set(name, round);
    next.push({ environmentId, key });
  };
  const collectNamed = (request: ErasureRequest) => {
    for (const key of namedKeys(request)) collect(request.environmentId, key);
  };
  for (const request of requests) collectNamed(request);
  const toClosures = () => findClosures(requests, { links, unlinks, others: [...others.values()] });
  const onLink = createLimit(linksMax, toClosures);
  const wasQueried = (environmentId: string, key: Buffer) =>
    (roundOf.get(nameOf(environmentId, key)) ?? round) < round - 1;
  // One query per link distance from the subjects. More than three queries are rare.
  while (next.length > 0) {
    [frontier, next] = [next, []];
    round++;
    const searchId = newSearchId(Date.now());
    try {
      await rows.putTargets(
        searchId,
        frontier.map((identity) => ({ ...identity, cutoffMs })),
      );
      for await (const link of rows.findLinks(searchId)) {
        const { environmentId, a, b } = link;
        // A previous query returned this link for the other identity.
        if (wasQueried(environmentId, a) || wasQueried(environmentId, b)) continue;
        onLink();
        links.push(link);
        collect(environmentId, a);
        collect(environmentId, b);
      }
      for (const unlink of await rows.findUnlinks(searchId)) unlinks.push(unlink);
      for (const other of await findOthers(frontier, onLink)) {
        others.set(other.request.erasureId.toString('hex'), other);
        collectNamed(other.request);
      }
    } finally {
      await rows.dropTargets(searchId);
    }
  }
  return toClosures();
}

/** Creates a function that counts links and throws TooManyLinksError at the limit. */
function createLimit(linksMax: number, toClosures: () => FoundClosure[]): () => void {
  let count = 0;
  return () => {
    if (++count <= linksMax) return;
    const heavy = toClosures().filter(({ keys }) => isHeavy(keys));
    throw new TooManyLinksError(
      `The requests have more than ${linksMax} links`,
      heavy.map(({ request }) => request),
    );
  };
}

const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
