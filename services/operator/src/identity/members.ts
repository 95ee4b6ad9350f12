import { type Household, keysOf } from '@playline/people';
import type { Terminal } from '../command.ts';
import { toPrintable } from '../dead-letters/contents.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { readHousehold } from './person.ts';
import {
  awaitTables,
  createOpenKeyer,
  parseQuestion,
  QUERY_OPTIONS,
  type QuestionContext,
  querySecondsOf,
  say,
  toTimeText,
} from './question.ts';
import { SUBJECT_OPTIONS, type Subject, subjectOf } from './subject.ts';

const OPTIONS = { ...SUBJECT_OPTIONS, ...QUERY_OPTIONS, raw: { type: 'boolean', default: false } } as const;

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
export async function members(context: QuestionContext, args: readonly string[], terminal: Terminal): Promise<void> {
  const values = parseQuestion(args, OPTIONS);
  const querySeconds = querySecondsOf(values);
  const subject = subjectOf(values, createOpenKeyer(context));
  await withPeople(context, async (people) => {
    const tables = values.raw === true ? await awaitTables(context) : null;
    const household = await readHousehold(people, subject);
    const ids = (await tables?.rawIdsOf(subject.environmentId, keysOf(household), querySeconds)) ?? null;
    const found = toMemberLines(subject, household).map((line) =>
      ids === null ? line : { ...line, id: ids.get(line.key) ?? null },
    );
    for (const line of found) terminal.result(values.json === true ? JSON.stringify(line) : toLine(line));
    if (!household.isLinked) say(terminal, values, 'Nobody has linked it: it is a person of its own.');
  });
}

function toMemberLines({ key, kind }: Subject, { personKey, members: linked }: Household): MemberLine[] {
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
