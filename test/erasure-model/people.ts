/** Ids. `s` is the erased one. The world decides which others are the same person and which are strangers. */
export type Id = 's' | 'd' | 'b' | 'c';

/**
 * What is sent. `at` is the time at which the gateway accepted it. A later offset in the log may have an earlier time,
 * because gateways can be slow.
 */
export type Sent =
  | { readonly kind: 'event' | 'consent'; readonly at: number; readonly ids: readonly [Id] }
  | { readonly kind: 'link'; readonly at: number; readonly ids: readonly [Id, Id] }
  /** The gateway has chosen the cut-off T before this offset. From here on the subject is held. */
  | { readonly kind: 'hold' | 'request'; readonly erasure: number };

/** A requested erasure. Nothing of the subject that was accepted up to `cutoff` (T) may be left. */
export interface Wish {
  readonly subject: Id;
  readonly cutoff: number;
}

/** Persons of two or more ids. The ids and the persons are sorted. */
export type Graph = readonly (readonly Id[])[];

/** For each id, the time up to which it is erased. */
export type Cutoffs = Readonly<Partial<Record<Id, number>>>;

export const idsOf = (cutoffs: Cutoffs): Id[] => Object.keys(cutoffs).sort() as Id[];

export const event = (at: number, id: Id): Sent => ({ kind: 'event', at, ids: [id] });
export const consent = (at: number, id: Id): Sent => ({ kind: 'consent', at, ids: [id] });
export const link = (at: number, ...ids: [Id, Id]): Sent => ({ kind: 'link', at, ids });
export const hold = (erasure: number): Sent => ({ kind: 'hold', erasure });
export const request = (erasure: number): Sent => ({ kind: 'request', erasure });

/** All ids that are one person with this id, itself included. */
export function componentOf(graph: Graph, id: Id): readonly Id[] {
  return graph.find((ids) => ids.includes(id)) ?? [id];
}

/** The graph after these ids are joined into one person. */
export function joinAll(graph: Graph, ids: readonly Id[]): Graph {
  const joined = [...new Set(ids.flatMap((id) => componentOf(graph, id)))].sort();
  const others = graph.filter((each) => !each.some((id) => joined.includes(id)));
  return joined.length < 2 ? others : [...others, joined].sort();
}

/** The graph without the erased ids. The remaining ids of a person stay one person. */
export function withoutIds(graph: Graph, erased: readonly Id[]): Graph {
  return graph.map((ids) => ids.filter((id) => !erased.includes(id))).filter((ids) => ids.length > 1);
}

/** Everything that is sent, in order of its offset in the log, and what each erasure covers. */
export class Log {
  readonly sent: readonly Sent[];
  readonly wishes: readonly Wish[];
  /** For each erasure, the offsets that it covers. */
  readonly #erased: readonly ReadonlySet<number>[];

  constructor({ sent, wishes }: { sent: readonly Sent[]; wishes: readonly Wish[] }) {
    this.sent = sent;
    this.wishes = wishes;
    this.#erased = wishes.map((wish) => new Set(this.#erasedBy(wish)));
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

  /** The persons that these links make. */
  graphOf(links: readonly number[]): Graph {
    return links.reduce((graph, offset) => joinAll(graph, this.idsOf(offset)), [] as Graph);
  }

  /** Whether the record has one of these ids and is not later than that id's cut-off. */
  isBy(cutoffs: Cutoffs, offset: number): boolean {
    return this.idsOf(offset).some((id) => this.atOf(offset) <= (cutoffs[id] ?? Number.NEGATIVE_INFINITY));
  }

  /** Whether one of these erasures covers the record at this offset. */
  isErased(erasures: readonly number[], offset: number): boolean {
    return erasures.some((erasure) => this.#erased[erasure]?.has(offset));
  }

  /**
   * The offsets that an erasure covers: everything accepted up to T for the person that all links up to T make, in
   * whatever order the log has them.
   */
  #erasedBy({ subject, cutoff }: Wish): number[] {
    const known = this.offsetsOf('link').filter((offset) => this.atOf(offset) <= cutoff);
    const person = componentOf(this.graphOf(known), subject);
    const cutoffs = Object.fromEntries(person.map((id) => [id, cutoff]));
    return this.sent.flatMap((_, offset) => (this.isBy(cutoffs, offset) ? [offset] : []));
  }
}

/** What the stores have of the persons. Numbers are offsets in the log. */
export interface PersonData {
  readonly rows: readonly number[];
  readonly graph: Graph;
  /** For each id, the offset of the consent that Redis returns. */
  readonly choices: readonly number[];
}

/** What is left although these erasures cover it; null when nothing is. */
export function leftIn(log: Log, erasures: readonly number[], { rows, graph, choices }: PersonData): string | null {
  const isErased = (offset: number) => log.isErased(erasures, offset);
  if (rows.some(isErased)) return 'erased rows are left';
  if (choices.some(isErased)) return 'an erased consent is left';
  const allowed = log.graphOf(log.offsetsOf('link').filter((offset) => !isErased(offset)));
  const isAllowed = (ids: readonly Id[]) => ids.every((id) => componentOf(allowed, ids[0] as Id).includes(id));
  return graph.every(isAllowed) ? null : 'an erased link is left';
}

/** What is missing at the end although no erasure covers it; null when nothing is. */
export function lostFrom(log: Log, erasures: readonly number[], { rows, graph, choices }: PersonData): string | null {
  const isKept = (offset: number) => !log.isErased(erasures, offset);
  const consents = log.offsetsOf('consent').filter(isKept);
  const wanted = [...log.offsetsOf('event'), ...log.offsetsOf('link')].filter(isKept);
  if ([...wanted, ...consents].some((offset) => !rows.includes(offset)))
    return 'rows of others, or later ones, are lost';
  const isJoined = ([one, other]: readonly Id[]) => componentOf(graph, one as Id).includes(other as Id);
  if (wanted.some((offset) => log.isLink(offset) && !isJoined(log.idsOf(offset)))) return 'a later link is lost';
  const isLast = (offset: number) =>
    !consents.some((each) => each > offset && log.idsOf(each)[0] === log.idsOf(offset)[0]);
  return consents.filter(isLast).every((offset) => choices.includes(offset)) ? null : 'a later consent is lost';
}
