/** Reads everything that the portal shows about one person. */
import { explainLink, keysOf } from '@playline/people';
import { exceedsReadLimits, type TimelineEntry, type TimelinePart, type TimelinePosition } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';
import type { Subject } from './subject.ts';

export type PersonParts = Pick<PageParts, 'people' | 'reads'>;

export interface PersonSearch {
  readonly environmentId: string;
  readonly subject: Pick<Subject, 'key' | 'kind'>;
  readonly show: TimelinePart;
  /** Null for the first page. */
  readonly after: TimelinePosition | null;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

export type FoundPerson = Awaited<ReturnType<typeof findPerson>>;
export type FoundMember = FoundPerson['members'][number];

const ENTRIES_SHOWN_MAX = 50;
/** Decisions and consents that explain identities and the profile. */
const HISTORY_MAX = 1_000;
/** Event times may be a day ahead. */
const AHEAD_MAX_MS = 2 * 86_400_000;

/** The position in front of the newest entry. */
export const toNewest = (nowMs: number): TimelinePosition => ({ happenedMs: nowMs + AHEAD_MAX_MS, id: '' });

export async function findPerson({ people, reads }: PersonParts, search: PersonSearch) {
  const { environmentId, subject, show, nowMs, signal } = search;
  const person = await people.members({ environmentId, key: subject.key });
  const identities = { environmentId, identityIds: keysOf(person).map((key) => key.toString('hex')) };
  const newest = toNewest(nowMs);
  const after = search.after ?? newest;
  const [timeline, history, profile, ids] = await Promise.all([
    // A placeholder can have more messages than one query may read.
    reads
      .timeline({ ...identities, show, after, entriesMax: ENTRIES_SHOWN_MAX }, { signal })
      .catch((fault: unknown) => {
        if (exceedsReadLimits(fault)) return null;
        throw fault;
      }),
    reads.timeline({ ...identities, show: 'history', after: newest, entriesMax: HISTORY_MAX }, { signal }),
    reads.profile(identities, { signal }),
    reads.ids({ ...identities, idAccess: 'raw ids' }, { signal }),
  ]);
  const unlinked = [{ key: subject.key, kind: subject.kind, linkedAt: null }];
  const members = (person.members.length === 0 ? unlinked : person.members).map(({ key, kind, linkedAt }) => {
    const keyHex = key.toString('hex');
    const isAboutMember = ({ identityId, otherId }: TimelineEntry) => identityId === keyHex || otherId === keyHex;
    // `id` is null if no event contains the id. `kind` is null for an unlinked identity that was found by key.
    const decisions = history.entries.filter((each) => each.entry === 'link' && isAboutMember(each));
    return { keyHex, kind, linkedMs: linkedAt, id: ids.get(keyHex) ?? null, decisions };
  });
  const isKnown = person.isLinked || profile !== null || history.entries.length > 0;
  return { keyHex: subject.key.toString('hex'), person, members, isKnown, timeline, history: history.entries, profile };
}

const ID_CHARACTERS_MAX = 24;

/** The text that stands for an identity in sentences. */
export function toIdentityName({ members }: FoundPerson, keyHex: string, kind: string): string {
  const id = members.find((each) => each.keyHex === keyHex)?.id ?? `${keyHex.slice(0, 8)}…`;
  const text = id.length <= ID_CHARACTERS_MAX ? id : `${id.slice(0, 16)}…${id.slice(-4)}`;
  return `${kind} id “${text}”`;
}

/** The sentence about a link decision in a timeline. */
export function explainEntry(found: FoundPerson, entry: TimelineEntry): string {
  const { what: link, name: outcome, origin: reason, identityId, kind, otherId, otherKind } = entry;
  const [a, b] = [toIdentityName(found, identityId, kind), toIdentityName(found, otherId, otherKind)];
  return explainLink({ link, outcome, reason }, a!, b!);
}
