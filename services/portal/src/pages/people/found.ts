import { type Household, keysOf } from '@playline/people';
import type { PortalParts } from '../../portal-parts.ts';
import type { ConsentChange, LinkDecision } from '../../reads/index.ts';
import type { Subject } from './subject.ts';

/** One identity of a person. */
export interface FoundMember {
  readonly keyHex: string;
  /** Null for one that was named by its key and that nobody has linked. */
  readonly kind: string | null;
  /** Null where no event has it. */
  readonly id: string | null;
  /** Epoch milliseconds; null while nobody has linked it. */
  readonly linkedMs: number | null;
  /** The message that linked it first, of those that are shown. */
  readonly linkedBy: LinkDecision | null;
}

/** What is known of a person. */
export interface FoundPerson {
  readonly subject: Subject;
  readonly personHex: string;
  readonly isLinked: boolean;
  /** Whether it is linked, or a message, a consent or a refused link has it. */
  readonly isKnown: boolean;
  readonly members: readonly FoundMember[];
  /** The newest first. */
  readonly links: readonly LinkDecision[];
  readonly consents: readonly ConsentChange[];
}

/** Reads a person: the graph, then what the tables have of everybody in it. @throws what the stores throw */
export async function findPerson(
  { people, reads }: Pick<PortalParts, 'people' | 'reads'>,
  subject: Subject,
  signal: AbortSignal,
): Promise<FoundPerson> {
  const household = await people.household(subject);
  const identityIds = keysOf(household).map((key) => key.toString('hex'));
  const question = { environmentId: subject.environmentId, identityIds };
  const [links, consents, ids] = await Promise.all([
    reads.links(question, { signal }),
    reads.consents(question, { signal }),
    // The page is for those only who may see raw ids.
    reads.ids({ ...question, sight: 'raw ids' }, { signal }),
  ]);
  const members = toMembers(subject, household).map((member) => ({
    ...member,
    id: ids.get(member.keyHex) ?? null,
    linkedBy: links.findLast((link) => link.outcome === 'linked' && isAbout(link, member.keyHex)) ?? null,
  }));
  const personHex = household.personKey.toString('hex');
  const { isLinked } = household;
  const isKnown = isLinked || ids.size + links.length + consents.length > 0;
  return { subject, personHex, isLinked, isKnown, members, links, consents };
}

function toMembers(subject: Subject, { members }: Household) {
  if (members.length === 0)
    return [{ keyHex: subject.key.toString('hex'), kind: subject.named?.kind ?? null, linkedMs: null }];
  return members.map(({ key, kind, linkedAt }) => ({ keyHex: key.toString('hex'), kind, linkedMs: linkedAt }));
}

const isAbout = ({ a, b }: LinkDecision, keyHex: string) => a.identityId === keyHex || b.identityId === keyHex;
