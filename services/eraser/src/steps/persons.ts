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
  /** Sorted by bytes. */
  readonly keys: readonly Buffer[];
}

/** A closure with its nodes in the link graph. */
export interface FoundClosure extends Closure {
  readonly nodes: readonly Node[];
}

/** A person to erase, for one or more requests that have identities in common. */
export interface ErasedPerson {
  readonly environmentId: string;
  readonly closures: readonly Closure[];
  /** Sorted by bytes, each with the latest cut-off among its requests. */
  readonly identities: readonly ErasureFence[];
}

/** Stored decisions from which the closures are computed. */
export interface StoredDecisions {
  /** Links that are reachable from the subjects and were received up to the latest cut-off. */
  readonly links: readonly StoredLink[];
  /** Unlinks of these identities up to the latest cut-off. */
  readonly unlinks: readonly StoredUnlink[];
  /** Other erasures, which may have deleted decisions. */
  readonly others: readonly Erasure[];
}

/** Maximum clock skew between the eraser and gateways. */
export const CLOCK_SKEW_MS = 2_000;

const nameOf = (key: Buffer) => key.toString('latin1');

/**
 * Finds each request's closure: the members in the request, and all identities linked with the subject up to the
 * cut-off. Links are read from decisions because the graph may contain later links. A link across an unlink applies
 * only if it is later than the unlink. Links that another erasure deletes apply to requests made before its receipt.
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

/** People with more identities may have more than 10,000 links, which take several seconds to process. */
const HEAVY_IDENTITIES = 140;

/** Whether erasing these identities would delay other erasures. */
export const isHeavy = (keys: readonly Buffer[]): boolean => keys.length > HEAVY_IDENTITIES;

/**
 * Assigns each link that the erasure deletes to one closure. A closure to which no link is assigned shares a
 * link with another closure. Call this only once.
 */
export function collectLinks(closures: readonly FoundClosure[]): ReadonlyMap<FoundClosure, readonly FoundLink[]> {
  const collected = new Set<Edge>();
  // A later cut-off includes all links up to earlier cut-offs.
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

/** Groups closures that have identities in common, directly or indirectly, into persons. */
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

/** A stored decision or a link that another erasure deletes. Not copied because there may be half a million. */
interface Edge extends Omit<FoundLink, 'last' | 'unlinkedAtMs'> {
  /** Position of the last fact for this link; null if unknown. */
  readonly last: FactOrder | null;
  readonly unlinkedAtMs?: number | null;
  /** End of the erasure that deletes the link. The link applies only to earlier requests. */
  readonly knownUntilMs?: number;
}

/** An identity with direct references to its links, which avoids half a million lookups by key. */
interface Node {
  readonly key: Buffer;
  readonly edges: { readonly edge: Edge; readonly to: Node }[];
  /** The last request for which this node was reached. */
  reachedFor: ErasureRequest | null;
  /** All links up to this cut-off have been collected. */
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

/** Links that another erasure deletes. If none are stored, all members are treated as linked with the first member. */
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

/** Time of the first unlink between the two identities after their last link, or null. */
function findUnlink({ last }: Edge, ofA: readonly StoredUnlink[], ofB: readonly StoredUnlink[]): number | null {
  if (last === null) return null;
  return ofA
    .filter(({ at, side }) => isLater(at, last) && ofB.some((other) => isSame(other.at, at) && other.side !== side))
    .reduce<number | null>((first, { unlinkedAtMs }) => earlierOf(first, unlinkedAtMs), null);
}

const isSame = (a: FactOrder, b: FactOrder) => a.generation === b.generation && a.offset === b.offset;
const isLater = (a: FactOrder, b: FactOrder) =>
  a.generation === b.generation ? a.offset > b.offset : a.generation > b.generation;

/** Finds all nodes that are reachable through links that apply to the request. */
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
  // `reach` appends to the list during the iteration.
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
