/** Ids. `s` is erased. The world decides which other ids are the same person and which are strangers. */
export type Id = 's' | 'd' | 'b' | 'c';

/**
 * A sent record. `at`: when the gateway accepted it. Later offsets may have earlier times, because gateways can be
 * slow.
 */
export type Sent =
  | { readonly kind: 'event' | 'consent'; readonly at: number; readonly ids: readonly [Id] }
  | { readonly kind: 'link'; readonly at: number; readonly ids: readonly [Id, Id] }
  /** The gateway has chosen the cut-off T before this offset. From this offset on the subject is held. */
  | { readonly kind: 'hold' | 'request'; readonly erasure: number };

/** A requested erasure. No data of the subject that was accepted up to `cutoff` (T) may remain. */
export interface RequestedErasure {
  readonly subject: Id;
  readonly cutoff: number;
}

/** Persons of two or more ids. The ids and the persons are sorted. */
export type Graph = readonly (readonly Id[])[];

/** For each id, the time up to which its data is erased. */
export type Cutoffs = Readonly<Partial<Record<Id, number>>>;

export const idsOf = (cutoffs: Cutoffs): Id[] => Object.keys(cutoffs).sort() as Id[];

export const event = (at: number, id: Id): Sent => ({ kind: 'event', at, ids: [id] });
export const consent = (at: number, id: Id): Sent => ({ kind: 'consent', at, ids: [id] });
export const link = (at: number, ...ids: [Id, Id]): Sent => ({ kind: 'link', at, ids });
export const hold = (erasure: number): Sent => ({ kind: 'hold', erasure });
export const request = (erasure: number): Sent => ({ kind: 'request', erasure });

/** All ids of this id's person, including the id itself. */
export function componentOf(graph: Graph, id: Id): readonly Id[] {
  return graph.find((ids) => ids.includes(id)) ?? [id];
}

/** The graph after the given ids are joined into one person. */
export function joinAll(graph: Graph, ids: readonly Id[]): Graph {
  const joined = [...new Set(ids.flatMap((id) => componentOf(graph, id)))].sort();
  const others = graph.filter((each) => !each.some((id) => joined.includes(id)));
  return joined.length < 2 ? others : [...others, joined].sort();
}

/** The graph without the erased ids. The remaining ids of a person stay one person. */
export function withoutIds(graph: Graph, erased: readonly Id[]): Graph {
  return graph.map((ids) => ids.filter((id) => !erased.includes(id))).filter((ids) => ids.length > 1);
}

/** All sent records, in log order, and the records that each erasure covers. */
export class Log {
  readonly sent: readonly Sent[];
  readonly requests: readonly RequestedErasure[];
  /** For each erasure, the offsets that it covers. */
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

  /** The persons that the given links form. */
  graphOf(links: readonly number[]): Graph {
    return links.reduce((graph, offset) => joinAll(graph, this.idsOf(offset)), [] as Graph);
  }

  /** Whether the record contains one of the ids and is not later than that id's cut-off. */
  isCoveredBy(cutoffs: Cutoffs, offset: number): boolean {
    return this.idsOf(offset).some((id) => this.atOf(offset) <= (cutoffs[id] ?? Number.NEGATIVE_INFINITY));
  }

  /** Whether one of the given erasures covers the record at this offset. */
  isErased(erasures: readonly number[], offset: number): boolean {
    return erasures.some((erasure) => this.#erased[erasure]?.has(offset));
  }

  /** All records accepted up to T for the person that all links up to T form, in any log order. */
  #erasedBy({ subject, cutoff }: RequestedErasure): number[] {
    const known = this.offsetsOf('link').filter((offset) => this.atOf(offset) <= cutoff);
    const person = componentOf(this.graphOf(known), subject);
    const cutoffs = Object.fromEntries(person.map((id) => [id, cutoff]));
    return this.sent.flatMap((_, offset) => (this.isCoveredBy(cutoffs, offset) ? [offset] : []));
  }
}

/** What the stores contain about the persons. Numbers are offsets in the log. */
export interface PersonData {
  readonly rows: readonly number[];
  readonly graph: Graph;
  /** For each id, the offset of the consent that Redis returns. */
  readonly choices: readonly number[];
}

/** Describes remaining data that the erasures cover; null when there is none. */
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

/** Describes data missing at the end that no erasure covers; null when there is none. */
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
