import type { Erasure, ErasureFence, ErasureRequest, FactOrder, StoredLink, StoredUnlink } from '@playline/erasure';

/** Whom one request is about, up to its cut-off. */
export interface Closure {
  readonly request: ErasureRequest;
  /** In the order of their bytes. */
  readonly keys: readonly Buffer[];
}

/** A closure, and who in it is linked with whom, whatever other erasures say. */
export interface FoundClosure extends Closure {
  /** Linked with the subject; without those whom only other erasures join with it. */
  readonly linkedKeys: readonly Buffer[];
  /** All others, with those together who are linked. */
  readonly partedGroups: readonly (readonly Buffer[])[];
}

/** One person who is erased: for one request, or for several that have somebody in common. */
export interface ErasedPerson {
  readonly environmentId: string;
  readonly closures: readonly Closure[];
  /** Everybody of the closures, in the order of their bytes; each up to the latest cut-off of the requests about it. */
  readonly identities: readonly ErasureFence[];
}

/** What decisions say of who belongs to whom. */
export interface StoredDecisions {
  /** Every link received up to the latest cut-off that can be reached from the subjects. */
  readonly links: readonly StoredLink[];
  /** Every unlink asked for up to it that parted one of those identities from others. */
  readonly unlinks: readonly StoredUnlink[];
  /** Other erasures: the decisions about people whom they name may be gone. */
  readonly others: readonly Erasure[];
}

/** Receipts bear the eraser's clock, requests a gateway's. A gateway counts with as much between its clock and others. */
export const CLOCKS_APART_MS = 2_000;

/** Keys as one-byte characters, by the same text. */
type Keys = Map<string, Buffer>;

const nameOf = (key: Buffer) => key.toString('latin1');

/**
 * Whom requests are about: of each everybody who was linked with its subject up to its cut-off, and whom the gateway knew
 * as linked when it took it.
 *
 * Decisions say who is linked, not the graph of the moment: a link that was accepted before the cut-off may reach the
 * graph behind one that was accepted later, and the graph then has both. Whom an unlink parted is linked only by what
 * stands behind it.
 *
 * An earlier erasure takes away the decisions about its person. Who asks while it runs is asked about a person who is
 * whole still, so whom it names counts as linked up to its cut-off.
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
      const start = [...request.subjectKeys, ...request.memberKeys];
      const keys = follow(neighbours, request, start);
      const [linkedKeys = [], ...partedGroups] = groupLinked(decided, request, [start, ...keys.map((key) => [key])]);
      return { request, keys, linkedKeys, partedGroups };
    });
  });
}

/** Closures that have somebody in common, directly or through others, are about one person. */
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

interface Neighbour {
  readonly key: Buffer;
  readonly receivedAtMs: number;
  /** From this cut-off on the two are parted. */
  readonly unlinkedAtMs: number;
  /** Of an erasure: who asks later finds nobody linked any more. */
  readonly knownUntilMs: number;
}
type Neighbours = ReadonlyMap<string, readonly Neighbour[]>;

type Edge = Omit<Neighbour, 'key'> & { readonly one: Buffer; readonly other: Buffer };

function createNeighbours({ links, unlinks, others }: StoredDecisions): Neighbours {
  const unlinksOf = Map.groupBy(unlinks, ({ key }) => nameOf(key));
  const decided = links.map((link): Edge => {
    const { a: one, b: other, receivedAtMs } = link;
    const unlinkedAtMs = findUnlink(link, unlinksOf.get(nameOf(one)) ?? [], unlinksOf.get(nameOf(other)) ?? []);
    return { one, other, receivedAtMs, unlinkedAtMs, knownUntilMs: Number.POSITIVE_INFINITY };
  });
  const ends = [...decided, ...others.flatMap(toEdges)].flatMap(({ one, other, ...edge }) => [
    { from: nameOf(one), key: other, ...edge },
    { from: nameOf(other), key: one, ...edge },
  ]);
  return Map.groupBy(ends, ({ from }) => from);
}

/** Everybody whom an erasure names as linked, joined with the first of them. */
function toEdges({ request, receipt }: Erasure): Edge[] {
  const knownUntilMs = receipt === null ? Number.POSITIVE_INFINITY : receipt.visiblyErasedAt + CLOCKS_APART_MS;
  const edge = { receivedAtMs: request.cutoffAt, unlinkedAtMs: Number.POSITIVE_INFINITY, knownUntilMs };
  const groups = [[...request.subjectKeys, ...request.memberKeys], ...(request.partedGroups ?? [])];
  return groups.flatMap(([one, ...rest]) => rest.map((other) => ({ one: one!, other, ...edge })));
}

/** When the first unlink was asked for that stands behind all that links the two, and parted them; else never. */
function findUnlink({ last }: StoredLink, ofA: readonly StoredUnlink[], ofB: readonly StoredUnlink[]): number {
  const parted = ofA.filter(
    ({ at, side }) => isBehind(at, last) && ofB.some((other) => isSame(other.at, at) && other.side !== side),
  );
  return Math.min(Number.POSITIVE_INFINITY, ...parted.map(({ unlinkedAtMs }) => unlinkedAtMs));
}

const isSame = (one: FactOrder, other: FactOrder) => one.generation === other.generation && one.offset === other.offset;
const isBehind = (one: FactOrder, other: FactOrder) =>
  one.generation === other.generation ? one.offset > other.offset : one.generation > other.generation;

/** Whom links lead to from each of these beginnings, without those whom one before has led to. */
function groupLinked(
  neighbours: Neighbours,
  request: ErasureRequest,
  starts: readonly (readonly Buffer[])[],
): Buffer[][] {
  const groups: Buffer[][] = [];
  const grouped = new Set<string>();
  for (const start of starts) {
    if (start.every((key) => grouped.has(nameOf(key)))) continue;
    const group = follow(neighbours, request, start);
    for (const key of group) grouped.add(nameOf(key));
    groups.push(group);
  }
  return groups;
}

/** Everybody whom links up to the cut-off lead to from a beginning, as they stood when it was asked for. */
function follow(neighbours: Neighbours, { cutoffAt, requestedAt }: ErasureRequest, start: readonly Buffer[]): Buffer[] {
  const keys: Keys = new Map();
  const waiting = [...start];
  for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
    const name = nameOf(key);
    if (keys.has(name)) continue;
    keys.set(name, key);
    for (const { key: next, receivedAtMs, unlinkedAtMs, knownUntilMs } of neighbours.get(name) ?? [])
      if (receivedAtMs <= cutoffAt && cutoffAt < unlinkedAtMs && requestedAt <= knownUntilMs) waiting.push(next);
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
