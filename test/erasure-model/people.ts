/** Ids: `s` and `d` are one person, `b` is a stranger. */
export type Id = 's' | 'd' | 'b';

/** What clients send, in the order in which the gateway takes it; what stands before `request` is not later than T. */
export const SENT = [
  { kind: 'event', owner: 's' },
  { kind: 'event', owner: 'd' },
  { kind: 'event', owner: 'b' },
  // The device is the person's: known to the log by T, to the graph once the linker has read it.
  { kind: 'link', ids: ['s', 'd'] },
  { kind: 'request' },
  // The person comes back, on the stranger's machine.
  { kind: 'event', owner: 's' },
  { kind: 'link', ids: ['d', 'b'] },
  { kind: 'event', owner: 'b' },
] as const;

const placesOf = (kind: 'event' | 'link' | 'request') =>
  SENT.flatMap((sent, place) => (sent.kind === kind ? [place] : []));
/** Places in `SENT`. */
export const EVENTS = placesOf('event');
export const LINKS = placesOf('link');
export const REQUEST_AT = placesOf('request')[0] as number;

/** Whom the erasure is about: everybody who is linked to `s` by what was accepted by T. */
const SUBJECT: readonly Id[] = ['s', 'd'];

export const ownerOf = (place: number): Id => (SENT[place] as { owner: Id }).owner;
export const idsOf = (place: number): readonly Id[] => (SENT[place] as { ids: readonly Id[] }).ids;
export const isByT = (place: number): boolean => place < REQUEST_AT;

/** Everybody who is one person with an id by these links, in the order of the alphabet. */
export function componentOf(graph: readonly number[], id: Id): Id[] {
  const found = new Set<Id>([id]);
  for (let grown = true; grown; ) {
    const joined = graph.filter((link) => new Set(idsOf(link).map((each) => found.has(each))).size === 2);
    for (const link of joined) for (const each of idsOf(link)) found.add(each);
    grown = joined.length > 0;
  }
  return [...found].sort();
}

/** What of the person, by T, rows and graph still hold; null when nothing. */
export function leftIn(rows: readonly number[], graph: readonly number[]): string | null {
  if (rows.some((place) => isByT(place) && SUBJECT.includes(ownerOf(place)))) return 'erased rows are left';
  return graph.some(isByT) ? 'an erased link is left' : null;
}

/** What of the stranger, or of later than T, rows and graph lack; null when nothing. */
export function lostFrom(rows: readonly number[], graph: readonly number[]): string | null {
  const kept = EVENTS.filter((place) => !(isByT(place) && SUBJECT.includes(ownerOf(place))));
  if (kept.some((place) => !rows.includes(place))) return 'rows of others, or of later, are lost';
  return LINKS.some((place) => !isByT(place) && !graph.includes(place)) ? 'a later link is lost' : null;
}
