/** Ids: `s` is the one that is erased; who else is the same person, and who a stranger, is for the world to say. */
export type Id = 's' | 'd' | 'b' | 'c';

/** Times are those of the gateway that accepted it. What stands behind another may be the earlier one: gateways are slow. */
export type Sent =
  | { readonly kind: 'event' | 'consent'; readonly at: number; readonly ids: readonly [Id] }
  | { readonly kind: 'link'; readonly at: number; readonly ids: readonly [Id, Id] }
  /** The gateway has chosen T before; from here on the subject is held. */
  | { readonly kind: 'hold' | 'request'; readonly erasure: number };

/** An erasure that is asked for: nothing of the subject that was accepted by `cutoff`, its T, may be left. */
export interface Wish {
  readonly subject: Id;
  readonly cutoff: number;
}

/** Components of two or more, each in the order of the alphabet, as is their list. */
export type Graph = readonly (readonly Id[])[];

/** By id, up to when it is erased. */
export type Cutoffs = Readonly<Partial<Record<Id, number>>>;

export const idsOf = (cutoffs: Cutoffs): Id[] => Object.keys(cutoffs).sort() as Id[];

export const event = (at: number, id: Id): Sent => ({ kind: 'event', at, ids: [id] });
export const consent = (at: number, id: Id): Sent => ({ kind: 'consent', at, ids: [id] });
export const link = (at: number, ...ids: [Id, Id]): Sent => ({ kind: 'link', at, ids });
export const hold = (erasure: number): Sent => ({ kind: 'hold', erasure });
export const request = (erasure: number): Sent => ({ kind: 'request', erasure });

/** Everybody who is one person with the id, itself too. */
export function componentOf(graph: Graph, id: Id): readonly Id[] {
  return graph.find((ids) => ids.includes(id)) ?? [id];
}

/** The same where these are one person too. */
export function joinAll(graph: Graph, ids: readonly Id[]): Graph {
  const joined = [...new Set(ids.flatMap((id) => componentOf(graph, id)))].sort();
  const others = graph.filter((each) => !each.some((id) => joined.includes(id)));
  return joined.length < 2 ? others : [...others, joined].sort();
}

/** Those who stay are still one person. */
export function withoutIds(graph: Graph, erased: readonly Id[]): Graph {
  return graph.map((ids) => ids.filter((id) => !erased.includes(id))).filter((ids) => ids.length > 1);
}

/** What is sent, by its place in the list, and what must become of it. */
export class Log {
  readonly sent: readonly Sent[];
  readonly wishes: readonly Wish[];
  /** By erasure, the places that it is about. */
  readonly #erased: readonly ReadonlySet<number>[];

  constructor({ sent, wishes }: { sent: readonly Sent[]; wishes: readonly Wish[] }) {
    this.sent = sent;
    this.wishes = wishes;
    this.#erased = wishes.map((wish) => new Set(this.#erasedBy(wish)));
  }

  placesOf(kind: Sent['kind']): number[] {
    return this.sent.flatMap((sent, place) => (sent.kind === kind ? [place] : []));
  }

  idsOf(place: number): readonly Id[] {
    const sent = this.sent[place];
    return sent !== undefined && 'ids' in sent ? sent.ids : [];
  }

  atOf(place: number): number {
    const sent = this.sent[place];
    return sent !== undefined && 'at' in sent ? sent.at : 0;
  }

  isLink(place: number): boolean {
    return this.sent[place]?.kind === 'link';
  }

  isConsent(place: number): boolean {
    return this.sent[place]?.kind === 'consent';
  }

  /** Who is one person by these links. */
  graphOf(links: readonly number[]): Graph {
    return links.reduce((graph, place) => joinAll(graph, this.idsOf(place)), [] as Graph);
  }

  /** Whether it is of one of these ids, and not later than its cut-off. */
  isBy(cutoffs: Cutoffs, place: number): boolean {
    return this.idsOf(place).some((id) => this.atOf(place) <= (cutoffs[id] ?? Number.NEGATIVE_INFINITY));
  }

  /** Whether one of these erasures, by number, is about what stands at this place. */
  isErased(erasures: readonly number[], place: number): boolean {
    return erasures.some((erasure) => this.#erased[erasure]?.has(place));
  }

  /** What all that was accepted by T says about the person: in whatever order it came to the log. */
  #erasedBy({ subject, cutoff }: Wish): number[] {
    const known = this.placesOf('link').filter((place) => this.atOf(place) <= cutoff);
    const person = componentOf(this.graphOf(known), subject);
    const cutoffs = Object.fromEntries(person.map((id) => [id, cutoff]));
    return this.sent.flatMap((_, place) => (this.isBy(cutoffs, place) ? [place] : []));
  }
}

/** What of a person stands somewhere: numbers are places in the log. */
export interface Standing {
  readonly rows: readonly number[];
  readonly graph: Graph;
  /** Of each id the consent that is answered. */
  readonly choices: readonly number[];
}

/** What is left of what these erasures are about; null when nothing is. */
export function leftIn(log: Log, erasures: readonly number[], { rows, graph, choices }: Standing): string | null {
  const isErased = (place: number) => log.isErased(erasures, place);
  if (rows.some(isErased)) return 'erased rows are left';
  if (choices.some(isErased)) return 'an erased consent is left';
  const allowed = log.graphOf(log.placesOf('link').filter((place) => !isErased(place)));
  const isAllowed = (ids: readonly Id[]) => ids.every((id) => componentOf(allowed, ids[0] as Id).includes(id));
  return graph.every(isAllowed) ? null : 'an erased link is left';
}

/** What of others, or of later, is not there in the end; null when all of it is. */
export function lostFrom(log: Log, erasures: readonly number[], { rows, graph, choices }: Standing): string | null {
  const isKept = (place: number) => !log.isErased(erasures, place);
  const consents = log.placesOf('consent').filter(isKept);
  const wanted = [...log.placesOf('event'), ...log.placesOf('link')].filter(isKept);
  if ([...wanted, ...consents].some((place) => !rows.includes(place))) return 'rows of others, or of later, are lost';
  const isJoined = ([one, other]: readonly Id[]) => componentOf(graph, one as Id).includes(other as Id);
  if (wanted.some((place) => log.isLink(place) && !isJoined(log.idsOf(place)))) return 'a later link is lost';
  const isLast = (place: number) =>
    !consents.some((each) => each > place && log.idsOf(each)[0] === log.idsOf(place)[0]);
  return consents.filter(isLast).every((place) => choices.includes(place)) ? null : 'a later consent is lost';
}
