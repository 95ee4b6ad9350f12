import type { Erasure, ErasureRequest, FactOrder, StoredLink, StoredUnlink } from '@playline/erasure';

/** One person who is erased, for one request or several. */
export interface ErasedPerson {
  readonly environmentId: string;
  /** Epoch milliseconds: the latest cut-off of the requests. */
  readonly cutoffAt: number;
  /** Every identity of the person, in the order of their bytes. */
  readonly keys: readonly Buffer[];
  readonly requests: readonly ErasureRequest[];
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

interface Group {
  readonly requests: ErasureRequest[];
  readonly cutoffAt: number;
  readonly keys: Keys;
}

const nameOf = (key: Buffer) => key.toString('latin1');

/**
 * Who is erased: of each request everybody who was linked with its subject up to its cut-off, and whom the gateway knew
 * as linked when it took it. Requests that have somebody in common are about one person, up to the latest cut-off of
 * theirs.
 *
 * Decisions say who is linked, not the graph of the moment: a link that was accepted before the cut-off may reach the
 * graph behind one that was accepted later, and the graph then has both. Whom an unlink parted is linked only by what
 * stands behind it.
 *
 * An earlier erasure takes away the decisions about its person. Who asks while it runs is asked about a person who is
 * whole still, so whom it names counts as linked up to its cut-off.
 */
export function findPersons(requests: readonly ErasureRequest[], decisions: StoredDecisions): ErasedPerson[] {
  const byEnvironment = Map.groupBy(requests, ({ environmentId }) => environmentId);
  return [...byEnvironment].flatMap(([environmentId, own]) => {
    const isHere = (stored: { readonly environmentId: string }) => stored.environmentId === environmentId;
    const neighbours = createNeighbours({
      links: decisions.links.filter(isHere),
      unlinks: decisions.unlinks.filter(isHere),
      others: decisions.others.filter(({ request }) => isHere(request)),
    });
    let groups = own.map((request) => follow(neighbours, [request]));
    for (;;) {
      const merged = mergeOverlapping(groups);
      if (merged.length === groups.length) break;
      groups = merged.map((members) => follow(neighbours, members));
    }
    return groups.map(({ requests: asked, cutoffAt, keys }) => {
      return { environmentId, cutoffAt, keys: [...keys.values()].sort(Buffer.compare), requests: asked };
    });
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

/** Everybody whom an erasure names, joined with the first of them. */
function toEdges({ request, receipt }: Erasure): Edge[] {
  const [one, ...rest] = [...request.subjectKeys, ...request.memberKeys];
  const knownUntilMs = receipt === null ? Number.POSITIVE_INFINITY : receipt.visiblyErasedAt + CLOCKS_APART_MS;
  const edge = { receivedAtMs: request.cutoffAt, unlinkedAtMs: Number.POSITIVE_INFINITY, knownUntilMs };
  return rest.map((other) => ({ one: one!, other, ...edge }));
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

/** Everybody whom links up to the latest cut-off of the requests lead to, as they stood when the first was asked for. */
function follow(neighbours: Neighbours, requests: ErasureRequest[]): Group {
  const cutoffAt = Math.max(...requests.map((request) => request.cutoffAt));
  const askedAt = Math.min(...requests.map((request) => request.requestedAt));
  const keys: Keys = new Map();
  const waiting = requests.flatMap(({ subjectKeys, memberKeys }) => [...subjectKeys, ...memberKeys]);
  for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
    const name = nameOf(key);
    if (keys.has(name)) continue;
    keys.set(name, key);
    for (const { key: next, receivedAtMs, unlinkedAtMs, knownUntilMs } of neighbours.get(name) ?? [])
      if (receivedAtMs <= cutoffAt && cutoffAt < unlinkedAtMs && askedAt <= knownUntilMs) waiting.push(next);
  }
  return { requests, cutoffAt, keys };
}

/** Requests of the groups, those together whose groups have a key in common, directly or through others. */
function mergeOverlapping(groups: readonly Group[]): ErasureRequest[][] {
  const parents = groups.map((_, at) => at);
  const rootOf = (at: number): number => {
    let root = at;
    while (parents[root] !== root) root = parents[root]!;
    return root;
  };
  const firstWith = new Map<string, number>();
  for (const [at, { keys }] of groups.entries())
    for (const name of keys.keys()) {
      const first = firstWith.get(name);
      if (first === undefined) firstWith.set(name, at);
      else parents[rootOf(at)] = rootOf(first);
    }
  const sets = Map.groupBy(groups.entries(), ([at]) => rootOf(at));
  return [...sets.values()].map((set) => set.flatMap(([, { requests }]) => requests));
}
