import type {
  Erasure,
  ErasureFence,
  ErasureRequest,
  FactOrder,
  FoundLink,
  StoredLink,
  StoredUnlink,
} from '@playline/erasure';

/** Everybody whom one request erases, up to its cut-off. */
export interface Closure {
  readonly request: ErasureRequest;
  /** In the order of their bytes. */
  readonly keys: readonly Buffer[];
}

/** A closure, and the links between its people. */
export interface FoundClosure extends Closure {
  /** Decisions up to the cut-off about anybody of the closure. The erasure deletes them. */
  readonly links: readonly FoundLink[];
}

/** One person to erase: for one request, or for several with an identity in common. */
export interface ErasedPerson {
  readonly environmentId: string;
  readonly closures: readonly Closure[];
  /** Everybody of the closures in byte order, each up to the latest cut-off of the requests about it. */
  readonly identities: readonly ErasureFence[];
}

/** The stored decisions that show who is linked with whom. */
export interface StoredDecisions {
  /** Every link received up to the latest cut-off that can be reached from the subjects. */
  readonly links: readonly StoredLink[];
  /** Every unlink requested up to it that parted one of those identities from others. */
  readonly unlinks: readonly StoredUnlink[];
  /** Other erasures. The decisions about their people may be deleted. */
  readonly others: readonly Erasure[];
}

/** Receipts have the time of the eraser's clock, requests that of a gateway's. Gateways assume the same difference. */
export const CLOCKS_APART_MS = 2_000;

/** Keys, by their bytes as text. */
type Keys = Map<string, Buffer>;

const nameOf = (key: Buffer) => key.toString('latin1');

/**
 * The closures of requests: everybody who was linked with the subject up to the cut-off, and everybody whom the gateway
 * knew as linked when it took the request.
 *
 * Who is linked is read from decisions, not from the graph of the moment. A link that was accepted before the cut-off
 * may reach the graph after one that was accepted later, and the graph then has both. People whom an unlink has split
 * are linked only by what came after it.
 *
 * Another erasure deletes the decisions about its person. A request from before that erasure's receipt still covers the
 * whole person, so the links stored with the other erasure count for it.
 */
export function findClosures(requests: readonly ErasureRequest[], decisions: StoredDecisions): FoundClosure[] {
  const byEnvironment = Map.groupBy(requests, ({ environmentId }) => environmentId);
  return [...byEnvironment].flatMap(([environmentId, own]) => {
    const isHere = (stored: { readonly environmentId: string }) => stored.environmentId === environmentId;
    const here: StoredDecisions = {
      links: decisions.links.filter(isHere),
      unlinks: decisions.unlinks.filter(isHere),
      others: decisions.others.filter(({ request }) => isHere(request)),
    };
    const neighbours = createNeighbours(here);
    const decided = createNeighbours({ ...here, others: [] });
    return own.map((request) => {
      const keys = follow(neighbours, request);
      return { request, keys, links: findLinks(decided, keys, request) };
    });
  });
}

/** Joins closures into persons: those with an identity in common, directly or through others, are one person. */
export function toPersons(closures: readonly Closure[]): ErasedPerson[] {
  return groupOverlapping(closures).map((own) => {
    const { environmentId } = own[0]!.request;
    const identities = new Map<string, ErasureFence>();
    for (const { request, keys } of own)
      for (const key of keys) {
        const { erasureId, cutoffAt: cutoffMs } = request;
        if ((identities.get(nameOf(key))?.cutoffMs ?? Number.NEGATIVE_INFINITY) < cutoffMs)
          identities.set(nameOf(key), { environmentId, key, cutoffMs, erasureId });
      }
    const sorted = [...identities.values()].sort((one, other) => Buffer.compare(one.key, other.key));
    return { environmentId, closures: own, identities: sorted };
  });
}

const NEVER_MS = Number.POSITIVE_INFINITY;

interface Edge {
  readonly one: Buffer;
  readonly other: Buffer;
  readonly receivedAtMs: number;
  /** The place of the last fact that linked the two; null when unknown. */
  readonly last: FactOrder | null;
  /** The link does not count for cut-offs from this time on. */
  readonly unlinkedAtMs: number;
  /** End of the erasure that deleted this link. It does not count for requests after that. */
  readonly knownUntilMs: number;
}

interface Neighbour {
  readonly key: Buffer;
  readonly edge: Edge;
}
type Neighbours = ReadonlyMap<string, readonly Neighbour[]>;

function createNeighbours({ links, unlinks, others }: StoredDecisions): Neighbours {
  const unlinksOf = Map.groupBy(unlinks, ({ key }) => nameOf(key));
  const decided = links.map(({ a: one, b: other, receivedAtMs, last }): Edge => {
    return { one, other, receivedAtMs, last, unlinkedAtMs: NEVER_MS, knownUntilMs: NEVER_MS };
  });
  const ends = [...decided, ...others.flatMap(toEdges)].flatMap((linked) => {
    const [ofOne, ofOther] = [linked.one, linked.other].map((key) => unlinksOf.get(nameOf(key)) ?? []);
    const edge = { ...linked, unlinkedAtMs: Math.min(linked.unlinkedAtMs, findUnlink(linked, ofOne!, ofOther!)) };
    return [
      { from: nameOf(edge.one), key: edge.other, edge },
      { from: nameOf(edge.other), key: edge.one, edge },
    ];
  });
  return Map.groupBy(ends, ({ from }) => from);
}

/**
 * The links that another erasure deletes, with their own times: which of them count depends on each request's cut-off.
 * If no links are stored with the erasure, only its members are known. They are then linked with the first of them.
 */
function toEdges({ request, receipt }: Erasure): Edge[] {
  const knownUntilMs = receipt === null ? NEVER_MS : receipt.visiblyErasedAt + CLOCKS_APART_MS;
  const { subjectKeys, memberKeys, links = [], cutoffAt } = request;
  if (links.length > 0)
    return links.map(({ a: one, b: other, receivedAtMs, last, unlinkedAtMs }) => {
      return { one, other, receivedAtMs, last, unlinkedAtMs: unlinkedAtMs ?? NEVER_MS, knownUntilMs };
    });
  const [one, ...rest] = [...subjectKeys, ...memberKeys];
  const edge = { receivedAtMs: cutoffAt, last: null, unlinkedAtMs: NEVER_MS, knownUntilMs };
  return rest.map((other) => ({ one: one!, other, ...edge }));
}

/** The decisions up to the cut-off about anybody of a closure, each once. */
function findLinks(decided: Neighbours, keys: readonly Buffer[], { cutoffAt }: ErasureRequest): FoundLink[] {
  const edges = new Set(keys.flatMap((key) => (decided.get(nameOf(key)) ?? []).map(({ edge }) => edge)));
  return [...edges]
    .filter(({ receivedAtMs, last }) => receivedAtMs <= cutoffAt && last !== null)
    .map(({ one: a, other: b, receivedAtMs, last, unlinkedAtMs }) => {
      return { a, b, receivedAtMs, last: last!, unlinkedAtMs: unlinkedAtMs === NEVER_MS ? null : unlinkedAtMs };
    });
}

/** Time of the first unlink that came after the last link of the two and parted them; else never. */
function findUnlink({ last }: Edge, ofA: readonly StoredUnlink[], ofB: readonly StoredUnlink[]): number {
  if (last === null) return NEVER_MS;
  const parted = ofA.filter(
    ({ at, side }) => isBehind(at, last) && ofB.some((other) => isSame(other.at, at) && other.side !== side),
  );
  return Math.min(NEVER_MS, ...parted.map(({ unlinkedAtMs }) => unlinkedAtMs));
}

const isSame = (one: FactOrder, other: FactOrder) => one.generation === other.generation && one.offset === other.offset;
const isBehind = (one: FactOrder, other: FactOrder) =>
  one.generation === other.generation ? one.offset > other.offset : one.generation > other.generation;

/** Everybody reached by links up to the cut-off that counted when the request was made. */
function follow(neighbours: Neighbours, { subjectKeys, memberKeys, cutoffAt, requestedAt }: ErasureRequest): Buffer[] {
  const keys: Keys = new Map();
  const waiting = [...subjectKeys, ...memberKeys];
  for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
    const name = nameOf(key);
    if (keys.has(name)) continue;
    keys.set(name, key);
    for (const { key: next, edge } of neighbours.get(name) ?? [])
      if (edge.receivedAtMs <= cutoffAt && cutoffAt < edge.unlinkedAtMs && requestedAt <= edge.knownUntilMs)
        waiting.push(next);
  }
  return [...keys.values()].sort(Buffer.compare);
}

function groupOverlapping(closures: readonly Closure[]): Closure[][] {
  const parents = closures.map((_, at) => at);
  const rootOf = (at: number): number => {
    let root = at;
    while (parents[root] !== root) root = parents[root]!;
    return root;
  };
  const firstWith = new Map<string, number>();
  for (const [at, { request, keys }] of closures.entries())
    for (const key of keys) {
      const name = `${request.environmentId} ${nameOf(key)}`;
      const first = firstWith.get(name);
      if (first === undefined) firstWith.set(name, at);
      else parents[rootOf(at)] = rootOf(first);
    }
  return [...Map.groupBy(closures.keys(), rootOf).values()].map((group) => group.map((at) => closures[at]!));
}
