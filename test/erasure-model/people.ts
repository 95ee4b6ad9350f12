/** `s` is the subject. The world defines which other ids belong to the same person and which are strangers. */
export type Id = 's' | 'd' | 'b' | 'c';

/**
 * A published record. `at` is the time of acceptance. Later offsets may have earlier times because gateways can be
 * slow.
 */
export type Sent =
  | { readonly kind: 'event' | 'consent'; readonly at: number; readonly ids: readonly [Id] }
  | { readonly kind: 'link'; readonly at: number; readonly ids: readonly [Id, Id] }
  /** The gateway chose the cut-off T before this offset. The subject is held from this offset on. */
  | { readonly kind: 'hold' | 'request'; readonly erasure: number };

/** An erasure request. No data of the subject accepted up to `cutoff` (T) may remain. */
export interface RequestedErasure {
  readonly subject: Id;
  readonly cutoff: number;
}

/** Persons with two or more ids. Ids and persons are sorted. */
export type Graph = readonly (readonly Id[])[];

export type Cutoffs = Readonly<Partial<Record<Id, number>>>;

export const idsOf = (cutoffs: Cutoffs): Id[] => Object.keys(cutoffs).sort() as Id[];

export const event = (at: number, id: Id): Sent => ({ kind: 'event', at, ids: [id] });
export const consent = (at: number, id: Id): Sent => ({ kind: 'consent', at, ids: [id] });
export const link = (at: number, ...ids: [Id, Id]): Sent => ({ kind: 'link', at, ids });
export const hold = (erasure: number): Sent => ({ kind: 'hold', erasure });
export const request = (erasure: number): Sent => ({ kind: 'request', erasure });

/** All ids of the person, including `id`. */
export function componentOf(graph: Graph, id: Id): readonly Id[] {
  return graph.find((ids) => ids.includes(id)) ?? [id];
}

export function joinAll(graph: Graph, ids: readonly Id[]): Graph {
  const joined = [...new Set(ids.flatMap((id) => componentOf(graph, id)))].sort();
  const others = graph.filter((each) => !each.some((id) => joined.includes(id)));
  return joined.length < 2 ? others : [...others, joined].sort();
}

/** Removes the erased ids. A person's remaining ids stay joined. */
export function withoutIds(graph: Graph, erased: readonly Id[]): Graph {
  return graph.map((ids) => ids.filter((id) => !erased.includes(id))).filter((ids) => ids.length > 1);
}

/** All published records in log order, with the records covered by each erasure. */
export class Log {
  readonly sent: readonly Sent[];
  readonly requests: readonly RequestedErasure[];
  readonly #erased: readonly ReadonlySet<number>[];

  constructor({ sent, requests }: { sent: readonly Sent[]; requests: readonly RequestedErasure[] }) {
    this.sent = sent;
    this.requests = requests;
    this.#erased = requests.map((request) => new Set(this.#erasedBy(request)));
  }

  offsetsOf(kind: Sent['kind']): number[] {
    return this.sent.flatMap((sent, offset) => (sent.kind === kind ? [offset] : []));
  }

  idsOf(offset: number): readonly Id[] {
    const sent = this.sent[offset];
    return sent !== undefined && 'ids' in sent ? sent.ids : [];
  }

  atOf(offset: number): number {
    const sent = this.sent[offset];
    return sent !== undefined && 'at' in sent ? sent.at : 0;
  }

  isLink(offset: number): boolean {
    return this.sent[offset]?.kind === 'link';
  }

  isConsent(offset: number): boolean {
    return this.sent[offset]?.kind === 'consent';
  }

  graphOf(links: readonly number[]): Graph {
    return links.reduce((graph, offset) => joinAll(graph, this.idsOf(offset)), [] as Graph);
  }

  /** Whether the record contains an id and is not later than the id's cut-off. */
  isCoveredBy(cutoffs: Cutoffs, offset: number): boolean {
    return this.idsOf(offset).some((id) => this.atOf(offset) <= (cutoffs[id] ?? Number.NEGATIVE_INFINITY));
  }

  /** Whether any of the erasures covers the record. */
  isErased(erasures: readonly number[], offset: number): boolean {
    return erasures.some((erasure) => this.#erased[erasure]?.has(offset));
  }

  /** Offsets of the person's records up to T. All links up to T define the person. */
  #erasedBy({ subject, cutoff }: RequestedErasure): number[] {
    const known = this.offsetsOf('link').filter((offset) => this.atOf(offset) <= cutoff);
    const person = componentOf(this.graphOf(known), subject);
    const cutoffs = Object.fromEntries(person.map((id) => [id, cutoff]));
    return this.sent.flatMap((_, offset) => (this.isCoveredBy(cutoffs, offset) ? [offset] : []));
  }
}

/** Contents of the stores, as log offsets. */
export interface PersonData {
  readonly rows: readonly number[];
  readonly graph: Graph;
  /** Offset of each id's consent in Redis. */
  readonly choices: readonly number[];
}

/** Describes remaining data that an erasure covers, or returns null. */
export function findRemaining(
  log: Log,
  erasures: readonly number[],
  { rows, graph, choices }: PersonData,
): string | null {
  const isErased = (offset: number) => log.isErased(erasures, offset);
  if (rows.some(isErased)) return 'erased rows remain';
  if (choices.some(isErased)) return 'an erased consent remains';
  const allowed = log.graphOf(log.offsetsOf('link').filter((offset) => !isErased(offset)));
  const isAllowed = (ids: readonly Id[]) => ids.every((id) => componentOf(allowed, ids[0] as Id).includes(id));
  return graph.every(isAllowed) ? null : 'an erased link remains';
}

/** Describes missing data that no erasure covers, or returns null. */
export function findMissing(
  log: Log,
  erasures: readonly number[],
  { rows, graph, choices }: PersonData,
): string | null {
  const isKept = (offset: number) => !log.isErased(erasures, offset);
  const consents = log.offsetsOf('consent').filter(isKept);
  const wanted = [...log.offsetsOf('event'), ...log.offsetsOf('link')].filter(isKept);
  if ([...wanted, ...consents].some((offset) => !rows.includes(offset)))
    return 'rows of other people, or later rows, are lost';
  const isJoined = ([a, b]: readonly Id[]) => componentOf(graph, a as Id).includes(b as Id);
  if (wanted.some((offset) => log.isLink(offset) && !isJoined(log.idsOf(offset)))) return 'a later link is lost';
  const isLast = (offset: number) =>
    !consents.some((each) => each > offset && log.idsOf(each)[0] === log.idsOf(offset)[0]);
  return consents.filter(isLast).every((offset) => choices.includes(offset)) ? null : 'a later consent is lost';
}
