/** Implements `identity resolve` and `identity members`. */
import * as people from '@playline/people';
import { keysOf, type Person, type PersonMembers } from '@playline/people';
import { type JsonOption, printResult, type Terminal, UnreachableError } from '../command.ts';
import { toPrintable } from '../dead-letters/dead-letters.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { awaitTables, createOpenKeyer, printSummary, type QueryContext, toTimeText } from './context.ts';
import { type Subject, type SubjectOptions, subjectOf } from './subject.ts';
import type { StoredPerson } from './tables.ts';

/** Time limit for scanning the keys of an environment. Only unlinked identities require the scan. */
const QUERY_SECONDS = 30;

/** Shows an identity's person in Redis and in the tables. */
export async function resolve(context: QueryContext, options: SubjectOptions & JsonOption, terminal: Terminal) {
  const subject = subjectOf(options, createOpenKeyer(context));
  await withPeople(context, async (people) => {
    const tables = await awaitTables(context);
    // The tables are read first, so that links decided in between do not appear as a difference.
    const stored = await tables.personOf(subject);
    const person = await readPerson(people, subject);
    const { environmentId, key } = subject;
    const isKnown =
      person.isLinked || stored !== null || (await tables.rawIdsOf(environmentId, [key], QUERY_SECONDS)).size > 0;
    const resolved = toResolved(subject, { ...person, isKnown }, stored);
    const isEmpty = !isKnown && !(await tables.hasEvents(environmentId));
    const lines = [...toLines(resolved), ...(isEmpty ? [`No events are stored for ${environmentId}.`] : [])];
    const { summary: says, ...found } = resolved;
    printResult(terminal, options, { ...found, says }, lines);
  });
}

/** `isKnown` is true if the identity is linked, or an event contains the identity. */
type KnownPerson = Pick<Person, 'personKey' | 'isLinked'> & { readonly isKnown: boolean };
type ResolvedIdentity = ReturnType<typeof toResolved>;

function toResolved(subject: Subject, found: KnownPerson, stored: StoredPerson | null) {
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
    summary: sentenceOf(found, stored, agrees),
  };
}

const LAGGING =
  'the event writer is lagging (see npm run status); until it has caught up, queries assign the events of this identity to';

/** @param agrees whether the tables and Redis contain the same person */
function sentenceOf({ isLinked, isKnown }: KnownPerson, stored: StoredPerson | null, agrees: boolean): string {
  if (!isKnown)
    return (
      'the identity is unknown: it is not linked, and no event contains it. Its first event creates a person, unless the ' +
      'id is a placeholder'
    );
  if (agrees)
    return isLinked ? 'the tables contain the same person' : 'the identity is a separate person: it is not linked';
  if (stored === null) return `the tables do not contain the link yet: ${LAGGING} a separate person`;
  if (isLinked) return `the tables contain a different person: ${LAGGING} that person`;
  return (
    'the identity is linked in the tables, but not in Redis: it was erased, or Redis lost its most recent writes, which the ' +
    'linkers restore automatically. If the difference persists, Redis is outdated or belongs to another deployment'
  );
}

function toLines({ environmentId, identityKey, kind, personKey, stored, agrees, summary }: ResolvedIdentity): string[] {
  const tables = stored === null ? 'no row' : `${stored.personKey}  linked ${toTimeText(stored.linkedAt)}`;
  return [
    `identity  ${identityKey}  ${kind === null ? '' : `${kind}, `}${environmentId}`,
    `person    ${personKey}${personKey === identityKey ? '  (same key)' : ''}`,
    `tables    ${tables}`,
    `${agrees ? '' : 'DIFFERENT: '}${summary}.`,
  ];
}

interface MemberLine {
  readonly key: string;
  /** Null for an unlinked identity that was selected by key. */
  readonly kind: string | null;
  /** Epoch milliseconds, or null for an unlinked identity. */
  readonly linkedAt: number | null;
  readonly personKey: string;
  /** Present if raw ids were requested; null if no event contains the id. */
  readonly id?: string | null;
}

export async function members(
  context: QueryContext,
  options: SubjectOptions & JsonOption & { readonly raw?: boolean | undefined; readonly querySeconds: number },
  terminal: Terminal,
): Promise<void> {
  const subject = subjectOf(options, createOpenKeyer(context));
  await withPeople(context, async (people) => {
    const tables = options.raw === true ? await awaitTables(context) : null;
    const personMembers = await readMembers(people, subject);
    const ids = (await tables?.rawIdsOf(subject.environmentId, keysOf(personMembers), options.querySeconds)) ?? null;
    const found = toMemberLines(subject, personMembers).map((line) =>
      ids === null ? line : { ...line, id: ids.get(line.key) ?? null },
    );
    for (const line of found) printResult(terminal, options, line, toLine(line));
    if (!personMembers.isLinked)
      printSummary(terminal, options, 'The identity is a separate person: it is not linked.');
  });
}

function toMemberLines({ key, kind }: Subject, { personKey, members: linked }: PersonMembers): MemberLine[] {
  const person = { personKey: personKey.toString('hex') };
  if (linked.length === 0) return [{ key: key.toString('hex'), kind, linkedAt: null, ...person }];
  return linked.map((member) => {
    return { key: member.key.toString('hex'), kind: member.kind, linkedAt: member.linkedAt, ...person };
  });
}

const KIND_WIDTH = 'anonymous'.length;

function toLine({ key, kind, linkedAt, personKey, id }: MemberLine): string {
  const since = linkedAt === null ? 'not linked' : `linked ${toTimeText(linkedAt)}`;
  const raw = id === undefined ? [] : [id === null ? '-' : toPrintable(id)];
  const person = key === personKey ? ['person key'] : [];
  return [key, (kind ?? '-').padEnd(KIND_WIDTH), since, ...raw, ...person].join('  ');
}

const NO_EPOCH =
  'Redis has no epoch, so its identity graph is incomplete: run npm run rebuild, or run npm run identity -- init ' +
  'in a new deployment';
function requireCompleteGraph<T>(reading: Promise<T>): Promise<T> {
  return reading.catch((fault: unknown) => {
    throw fault instanceof people.MissingEpochFault ? new UnreachableError(NO_EPOCH) : fault;
  });
}

/** @throws UnreachableError when the graph is incomplete */
const readPerson = (source: people.PersonSource, subject: Subject): Promise<people.Person> =>
  requireCompleteGraph(people.readPerson(source, subject));

/** @throws UnreachableError when the graph is incomplete */
export const readMembers = (source: people.PersonSource, subject: Subject): Promise<people.PersonMembers> =>
  requireCompleteGraph(people.readPersonMembers(source, subject));
