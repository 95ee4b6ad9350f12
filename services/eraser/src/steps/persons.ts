import type {
  Erasure,
  ErasureFence,
  ErasureRequest,
  FactOrder,
  FoundLink,
  StoredLink,
  StoredUnlink,
} from '@playline/erasure';

/** All identities that a request erases. */
export interface Closure {
  readonly request: ErasureRequest;
  /** In byte order. */
  readonly keys: readonly Buffer[];
}

/** A closure with its nodes in the link graph. */
export interface FoundClosure extends Closure {
  readonly nodes: readonly Node[];
}

/** One person to erase: for one request, or for several that share an identity. */
export interface ErasedPerson {
  readonly environmentId: string;
  readonly closures: readonly Closure[];
  /** In byte order, each with the latest cut-off of its requests. */
  readonly identities: readonly ErasureFence[];
}

/** The stored decisions that show who is linked with whom. */
export interface StoredDecisions {
  /** Links received up to the latest cut-off that are reachable from the subjects. */
  readonly links: readonly StoredLink[];
  /** Unlinks of the linked identities up to the cut-off. */
  readonly unlinks: readonly StoredUnlink[];
  /** Other erasures, whose decisions may be deleted. */
  readonly others: readonly Erasure[];
}

/** Largest clock difference between eraser and gateways. */
export const CLOCK_SKEW_MS = 2_000;

const nameOf = (key: Buffer) => key.toString('latin1');

/**
 * The closures of requests: identities linked with the subject up to the cut-off, by decisions, because the graph may
 * contain later links; and the members that the gateway knew. Links after an unlink count only if they are later. Links
 * that another erasure deletes count for requests made before its receipt.
 */
export function findClosures(requests: readonly ErasureRequest[], decisions: StoredDecisions): FoundClosure[] {
  const byEnvironment = Map.groupBy(requests, ({ environmentId }) => environmentId);
  return [...byEnvironment].flatMap(([environmentId, group]) => {
    const isInEnvironment = (row: { readonly environmentId: string }) => row.environmentId === environmentId;
    const stored: StoredDecisions = {
      links: decisions.links.filter(isInEnvironment),
      unlinks: decisions.unlinks.filter(isInEnvironment),
      others: decisions.others.filter(({ request }) => isInEnvironment(request)),
    };
    const graph = createLinkGraph(stored);
    return group.map((request) => {
      const nodes = findReachable(graph, request);
      return { request, nodes, keys: nodes.map(({ key }) => key).sort(Buffer.compare) };
    });
  });
}

/** More identities may have more than 10,000 links, which take several seconds. */
const HEAVY_IDENTITIES = 140;

/** Whether erasing the identities would delay other erasures. */
export const isHeavy = (keys: readonly Buffer[]): boolean => keys.length > HEAVY_IDENTITIES;

/**
 * The links up to the cut-off that the erasure deletes. Each link is in one closure; a closure left without links gets
 * one of another closure. May be called once.
 */
export function collectLinks(closures: readonly FoundClosure[]): ReadonlyMap<FoundClosure, readonly FoundLink[]> {
  const collected = new Set<Edge>();
  // A later cut-off includes the links of earlier cut-offs.
  const latestFirst = closures.toSorted((a, b) => b.request.cutoffAt - a.request.cutoffAt);
  return new Map(latestFirst.map((closure) => [closure, collectLinksOf(closure, collected)]));
}

function collectLinksOf({ nodes, request: { cutoffAt } }: FoundClosure, collected: Set<Edge>): FoundLink[] {
  const links: FoundLink[] = [];
  let known: FoundLink | null = null;
  for (const node of nodes) {
    if (node.collectedUntilMs >= cutoffAt && known !== null) continue;
    for (const { edge } of node.edges) {
      if (edge.knownUntilMs !== undefined || edge.receivedAtMs > cutoffAt || !hasOrder(edge)) continue;
      known = edge;
      if (collected.has(edge)) continue;
      collected.add(edge);
      links.push(edge);
    }
    node.collectedUntilMs = Math.max(node.collectedUntilMs, cutoffAt);
  }
  return links.length === 0 && known !== null ? [known] : links;
}

/** Joins closures that share identities, directly or through other closures, into persons. */
export function toPersons(closures: readonly Closure[]): ErasedPerson[] {
  return groupOverlapping(closures).map((group) => {
    const { environmentId } = group[0]!.request;
    const identities = new Map<string, ErasureFence>();
    for (const { request, keys } of group)
      for (const key of keys) {
        const { erasureId, cutoffAt: cutoffMs } = request;
        if ((identities.get(nameOf(key))?.cutoffMs ?? Number.NEGATIVE_INFINITY) < cutoffMs)
          identities.set(nameOf(key), { environmentId, key, cutoffMs, erasureId });
      }
    const sorted = [...identities.values()].sort((a, b) => Buffer.compare(a.key, b.key));
    return { environmentId, closures: group, identities: sorted };
  });
}

const NEVER_MS = Number.POSITIVE_INFINITY;

/** A stored decision, not copied because there may be half a million, or a link deleted by another erasure. */
interface Edge extends Omit<FoundLink, 'last' | 'unlinkedAtMs'> {
  /** Order of the last fact that linked the two identities; null when unknown. */
  readonly last: FactOrder | null;
  readonly unlinkedAtMs?: number | null;
  /** End of the erasure that deletes this link. The link counts only for earlier requests. */
  readonly knownUntilMs?: number;
}

/** An identity with its links, so that following half a million links needs no lookup by key. */
interface Node {
  readonly key: Buffer;
  readonly edges: { readonly edge: Edge; readonly to: Node }[];
  /** The last request for which the identity was reached. */
  reachedFor: ErasureRequest | null;
  /** All decisions up to this cut-off are collected. */
  collectedUntilMs: number;
}
type LinkGraph = (key: Buffer) => Node;

function createLinkGraph({ links, unlinks, others }: StoredDecisions): LinkGraph {
  const nodes = new Map<string, Node>();
  const nodeOf = (key: Buffer): Node => {
    const name = nameOf(key);
    let node = nodes.get(name);
    if (node === undefined) {
      node = { key, edges: [], reachedFor: null, collectedUntilMs: Number.NEGATIVE_INFINITY };
      nodes.set(name, node);
    }
    return node;
  };
  const unlinksOf = Map.groupBy(unlinks, ({ key }) => nameOf(key));
  const add = (link: Edge) => {
    const [ofA, ofB] = [unlinksOf.get(nameOf(link.a)), unlinksOf.get(nameOf(link.b))];
    const unlinkedAtMs = ofA === undefined || ofB === undefined ? null : findUnlink(link, ofA, ofB);
    const edge =
      unlinkedAtMs === null ? link : { ...link, unlinkedAtMs: earlierOf(link.unlinkedAtMs ?? null, unlinkedAtMs) };
    const [from, to] = [nodeOf(edge.a), nodeOf(edge.b)];
    from.edges.push({ edge, to });
    to.edges.push({ edge, to: from });
  };
  for (const link of links) add(link);
  for (const other of others) for (const edge of toEdges(other)) add(edge);
  return nodeOf;
}

const earlierOf = (a: number | null, b: number) => (a === null ? b : Math.min(a, b));

/** The links that another erasure deletes. Without stored links, all members are linked with the first member. */
function* toEdges({ request, receipt }: Erasure): Generator<Edge> {
  const knownUntilMs = receipt === null ? NEVER_MS : receipt.visiblyErasedAt + CLOCK_SKEW_MS;
  const { subjectKeys, memberKeys, links = [], cutoffAt } = request;
  for (const link of links) yield { ...link, knownUntilMs };
  if (links.length > 0) return;
  const [a, ...rest] = [...subjectKeys, ...memberKeys];
  const edge = { receivedAtMs: cutoffAt, last: null, knownUntilMs };
  for (const b of rest) yield { ...edge, a: a!, b };
}

const hasOrder = (edge: Edge): edge is Edge & FoundLink => edge.last !== null;

/** Time of the first unlink of the two identities after their last link, or null. */
function findUnlink({ last }: Edge, ofA: readonly StoredUnlink[], ofB: readonly StoredUnlink[]): number | null {
  if (last === null) return null;
  return ofA
    .filter(({ at, side }) => isLater(at, last) && ofB.some((other) => isSame(other.at, at) && other.side !== side))
    .reduce<number | null>((first, { unlinkedAtMs }) => earlierOf(first, unlinkedAtMs), null);
}

const isSame = (a: FactOrder, b: FactOrder) => a.generation === b.generation && a.offset === b.offset;
const isLater = (a: FactOrder, b: FactOrder) =>
  a.generation === b.generation ? a.offset > b.offset : a.generation > b.generation;

/** All nodes reached by links that count for the request. */
function findReachable(graph: LinkGraph, request: ErasureRequest): Node[] {
  const { subjectKeys, memberKeys, cutoffAt, requestedAt } = request;
  const reached: Node[] = [];
  const reach = (node: Node) => {
    if (node.reachedFor === request) return;
    node.reachedFor = request;
    reached.push(node);
  };
  for (const key of subjectKeys) reach(graph(key));
  for (const key of memberKeys) reach(graph(key));
  // The list grows while it is read.
  for (const { edges } of reached)
    for (const { edge, to } of edges)
      if (
        edge.receivedAtMs <= cutoffAt &&
        cutoffAt < (edge.unlinkedAtMs ?? NEVER_MS) &&
        requestedAt <= (edge.knownUntilMs ?? NEVER_MS)
      )
        reach(to);
  return reached;
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
