import * as people from '@playline/people';
import { keysOf, type Person, type PersonMembers } from '@playline/people';
import { type Terminal, UnreachableError } from '../command.ts';
import { toPrintable } from '../dead-letters/contents.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import {
  awaitTables,
  createOpenKeyer,
  type JsonOptions,
  printSummary,
  type QueryContext,
  toTimeText,
} from './context.ts';
import { type Subject, type SubjectOptions, subjectOf } from './subject.ts';
import type { StoredPerson } from './tables.ts';

/** For a look through the keys of the environment's events, only for an identity that is not linked. */
const QUERY_SECONDS = 30;

/** `identity resolve`: the person of an identity, in Redis and in the tables. */
export async function resolve(
  context: QueryContext,
  options: SubjectOptions & JsonOptions,
  terminal: Terminal,
): Promise<void> {
  const subject = subjectOf(options, createOpenKeyer(context));
  await withPeople(context, async (people) => {
    const tables = await awaitTables(context);
    // The tables first, so that a difference is not just a change between the two queries.
    const stored = await tables.personOf(subject);
    const person = await readPerson(people, subject);
    const { environmentId, key } = subject;
    const isKnown =
      person.isLinked || stored !== null || (await tables.rawIdsOf(environmentId, [key], QUERY_SECONDS)).size > 0;
    const answer = toResolved(subject, { ...person, isKnown }, stored);
    const isEmpty = !isKnown && !(await tables.hasEvents(environmentId));
    const lines = [...toLines(answer), ...(isEmpty ? [`There is no event of ${environmentId} at all.`] : [])];
    for (const line of options.json === true ? [JSON.stringify(answer)] : lines) terminal.result(line);
  });
}

interface ResolvedIdentity {
  readonly environmentId: string;
  readonly identityKey: string;
  readonly kind: string | null;
  readonly personKey: string;
  readonly isLinked: boolean;
  /** Whether it is linked, or an event carries it. */
  readonly isKnown: boolean;
  readonly stored: StoredPerson | null;
  /** Whether queries of the tables find the same person as Redis. */
  readonly agrees: boolean;
  readonly says: string;
}

type KnownPerson = Person & Pick<ResolvedIdentity, 'isKnown'>;

function toResolved(subject: Subject, found: KnownPerson, stored: StoredPerson | null): ResolvedIdentity {
  const { personKey, isLinked, isKnown } = found;
  const person = personKey.toString('hex');
  const agrees = isLinked ? stored?.personKey === person : stored === null;
  return {
    environmentId: subject.environmentId,
    identityKey: subject.key.toString('hex'),
    kind: subject.kind,
    personKey: person,
    isLinked,
    isKnown,
    stored,
    agrees,
    says: sentenceOf({ isLinked, isKnown, stored, agrees }),
  };
}

const BEHIND =
  'the event writer is behind the linkers (npm run status shows its lag), and until it has caught up queries count the ' +
  'events of this identity under';

function sentenceOf({
  isLinked,
  isKnown,
  stored,
  agrees,
}: Pick<ResolvedIdentity, 'isLinked' | 'isKnown' | 'stored' | 'agrees'>): string {
  if (!isKnown)
    return (
      'No person has this id: nobody has linked it, and no event carries it. With its first event it is a person of its own, ' +
      'unless it is a placeholder'
    );
  if (agrees) return isLinked ? 'the tables say the same' : 'nobody has linked it: it is a person of its own';
  if (stored === null) return `the tables do not say so yet: ${BEHIND} a person of its own`;
  if (isLinked) return `the tables say another person: ${BEHIND} that one`;
  return (
    'Redis knows nobody whom it is linked to, but the tables do: it was erased, or Redis has lost its last second, ' +
    'which the linkers bring back by themselves. If it stays so, Redis is not the one of the linkers, or an old copy'
  );
}

function toLines({ environmentId, identityKey, kind, personKey, stored, agrees, says }: ResolvedIdentity): string[] {
  const tables = stored === null ? 'no row' : `${stored.personKey}  linked ${toTimeText(stored.linkedAt)}`;
  return [
    `identity  ${identityKey}  ${kind === null ? '' : `${kind}, `}${environmentId}`,
    `person    ${personKey}${personKey === identityKey ? '  itself' : ''}`,
    `tables    ${tables}`,
    `${agrees ? '' : 'THEY DIFFER: '}${says}.`,
  ];
}

interface MemberLine {
  readonly key: string;
  /** Null for an identity given by its key that was never linked. */
  readonly kind: string | null;
  /** Epoch milliseconds; null when it was never linked. */
  readonly linkedAt: number | null;
  readonly personKey: string;
  /** Only when raw ids were requested; null where no event has it. */
  readonly id?: string | null;
}

/** `identity members`: all identities of a person; with `--raw` also the ids that clients sent. */
export async function members(
  context: QueryContext,
  options: SubjectOptions & JsonOptions & { readonly raw?: boolean | undefined; readonly querySeconds: number },
  terminal: Terminal,
): Promise<void> {
  const subject = subjectOf(options, createOpenKeyer(context));
  await withPeople(context, async (people) => {
    const tables = options.raw === true ? await awaitTables(context) : null;
    const household = await readHousehold(people, subject);
    const ids = (await tables?.rawIdsOf(subject.environmentId, keysOf(household), options.querySeconds)) ?? null;
    const found = toMemberLines(subject, household).map((line) =>
      ids === null ? line : { ...line, id: ids.get(line.key) ?? null },
    );
    for (const line of found) terminal.result(options.json === true ? JSON.stringify(line) : toLine(line));
    if (!household.isLinked) printSummary(terminal, options, 'Nobody has linked it: it is a person of its own.');
  });
}

function toMemberLines({ key, kind }: Subject, { personKey, members: linked }: PersonMembers): MemberLine[] {
  const person = { personKey: personKey.toString('hex') };
  if (linked.length === 0) return [{ key: key.toString('hex'), kind, linkedAt: null, ...person }];
  return linked.map((member) => ({
    key: member.key.toString('hex'),
    kind: member.kind,
    linkedAt: member.linkedAt,
    ...person,
  }));
}

/** Width of the widest kind. */
const KIND_WIDTH = 'anonymous'.length;

function toLine({ key, kind, linkedAt, personKey, id }: MemberLine): string {
  const since = linkedAt === null ? 'not linked' : `linked ${toTimeText(linkedAt)}`;
  const raw = id === undefined ? [] : [id === null ? '-' : toPrintable(id)];
  const person = key === personKey ? ['person key'] : [];
  return [key, (kind ?? '-').padEnd(KIND_WIDTH), since, ...raw, ...person].join('  ');
}

const NO_EPOCH =
  'Redis holds no identity graph that is whole (it has no epoch), so it cannot tell who belongs to whom: npm run ' +
  'rebuild puts back what it held; a new deployment is set up by npm run identity -- init';

/** Turns an incomplete graph into an UnreachableError with advice. */
function requireCompleteGraph<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((fault: unknown) => {
    throw fault instanceof people.MissingEpochFault ? new UnreachableError(NO_EPOCH) : fault;
  });
}

/** @throws UnreachableError when the graph is incomplete */
const readPerson = (source: people.PersonSource, subject: Subject): Promise<people.Person> =>
  requireCompleteGraph(people.readPerson(source, subject));

/** @throws UnreachableError when the graph is incomplete */
export const readHousehold = (source: people.PersonSource, subject: Subject): Promise<people.PersonMembers> =>
  requireCompleteGraph(people.readPersonMembers(source, subject));
