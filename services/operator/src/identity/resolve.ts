import type { Person } from '@playline/people';
import type { Terminal } from '../command.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { readPerson } from './person.ts';
import { awaitTables, createOpenKeyer, parseQuestion, type QuestionContext, toTimeText } from './question.ts';
import { SUBJECT_OPTIONS, type Subject, subjectOf } from './subject.ts';
import type { StoredPerson } from './tables.ts';

/** For a look through the keys of the environment's events, only for an identity that is not linked. */
const QUERY_SECONDS = 30;

/** `identity resolve`: the person of an identity, in Redis and in the tables. */
export async function resolve(context: QuestionContext, args: readonly string[], terminal: Terminal): Promise<void> {
  const values = parseQuestion(args, SUBJECT_OPTIONS);
  const subject = subjectOf(values, createOpenKeyer(context));
  await withPeople(context, async (people) => {
    const tables = await awaitTables(context);
    // The tables first, so that a difference is not just a change between the two queries.
    const stored = await tables.personOf(subject);
    const person = await readPerson(people, subject);
    const { environmentId, key } = subject;
    const isKnown =
      person.isLinked || stored !== null || (await tables.rawIdsOf(environmentId, [key], QUERY_SECONDS)).size > 0;
    const answer = toAnswer(subject, { ...person, isKnown }, stored);
    const isEmpty = !isKnown && !(await tables.knows(environmentId));
    const lines = [...toLines(answer), ...(isEmpty ? [`There is no event of ${environmentId} at all.`] : [])];
    for (const line of values.json === true ? [JSON.stringify(answer)] : lines) terminal.result(line);
  });
}

interface ResolveAnswer {
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

type KnownPerson = Person & Pick<ResolveAnswer, 'isKnown'>;

function toAnswer(subject: Subject, found: KnownPerson, stored: StoredPerson | null): ResolveAnswer {
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
}: Pick<ResolveAnswer, 'isLinked' | 'isKnown' | 'stored' | 'agrees'>): string {
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

function toLines({ environmentId, identityKey, kind, personKey, stored, agrees, says }: ResolveAnswer): string[] {
  const tables = stored === null ? 'no row' : `${stored.personKey}  linked ${toTimeText(stored.linkedAt)}`;
  return [
    `identity  ${identityKey}  ${kind === null ? '' : `${kind}, `}${environmentId}`,
    `person    ${personKey}${personKey === identityKey ? '  itself' : ''}`,
    `tables    ${tables}`,
    `${agrees ? '' : 'THEY DIFFER: '}${says}.`,
  ];
}
