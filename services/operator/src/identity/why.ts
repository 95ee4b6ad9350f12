/** Implements `identity why`: lists a person's links, or the links that connect two identities. */
import { explainLink, keysOf, type PersonMembers } from '@playline/people';
import { type JsonOption, printResult, type Terminal } from '../command.ts';
import { withPeople } from '../rebuild/with-stores.ts';
import { awaitTables, createOpenKeyer, printSummary, type QueryContext, toTimeText } from './context.ts';
import { readMembers } from './resolve.ts';
import { type OtherOptions, otherOf, type Subject, type SubjectOptions, subjectOf } from './subject.ts';
import type { Bounds, IdentityTables, LinkRow, Side, SplitRow } from './tables.ts';

export const LINKS_MAX = 10_000;

interface FoundLinks {
  /** In log order. */
  readonly rows: readonly LinkRow[];
  readonly sentence: string;
}

export async function why(
  context: QueryContext,
  options: SubjectOptions & OtherOptions & JsonOption & Bounds,
  terminal: Terminal,
): Promise<void> {
  const bounds = { limit: options.limit, querySeconds: options.querySeconds };
  const openKeyer = createOpenKeyer(context);
  const subject = subjectOf(options, openKeyer);
  const other = otherOf(options, subject, openKeyer);
  await withPeople(context, async (people) => {
    const tables = await awaitTables(context);
    const members = await readMembers(people, subject);
    const query = { tables, bounds, subject, members };
    const { rows, sentence } =
      other === null
        ? await findLinks(query)
        : await findBetween({ ...query, other, otherMembers: await readMembers(people, other) });
    const requested = [subject, other].flatMap((each) => (each === null ? [] : [each.key.toString('hex')]));
    for (const row of rows) printResult(terminal, options, toJson(row), toLinkLines(row, requested));
    printSummary(terminal, options, sentence);
  });
}

interface LinkQuery {
  readonly tables: IdentityTables;
  readonly bounds: Bounds;
  readonly subject: Subject;
  readonly members: PersonMembers;
}

async function findLinks({ tables, bounds, subject, members }: LinkQuery): Promise<FoundLinks> {
  const { rows, more } = await readNewest(tables, subject.environmentId, { filter: { keys: keysOf(members) }, bounds });
  const { length } = keysOf(members);
  const subjectText = members.isLinked ? `a person with ${length} identities` : 'an unlinked identity';
  const none = members.isLinked ? ': the event writer may be lagging (npm run status)' : '';
  const count = rows.length === 1 ? '1 decision' : `${rows.length} decisions`;
  return { rows, sentence: `${count} about ${subjectText}${rows.length === 0 ? none : ''}${more}.` };
}

/** Reads one extra row, to detect whether older rows exist. */
async function readNewest(
  tables: IdentityTables,
  environmentId: string,
  { filter, bounds }: { filter: Parameters<IdentityTables['linksOf']>[1]; bounds: Bounds },
): Promise<{ rows: LinkRow[]; more: string }> {
  const rows = await tables.linksOf(environmentId, filter, { ...bounds, limit: bounds.limit + 1 });
  if (rows.length <= bounds.limit) return { rows, more: '' };
  return { rows: rows.slice(1), more: `; older decisions were omitted (--limit shows up to ${LINKS_MAX})` };
}

/** Finds the chain of links within one person, or the links requested between two persons. */
async function findBetween(query: LinkQuery & { other: Subject; otherMembers: PersonMembers }): Promise<FoundLinks> {
  const { tables, bounds, subject, members, other, otherMembers } = query;
  const { environmentId } = subject;
  if (!members.personKey.equals(otherMembers.personKey)) {
    const filter = { keys: keysOf(members), others: keysOf(otherMembers) };
    const { rows, more } = await readNewest(tables, environmentId, { filter, bounds });
    const none = rows.length === 0 ? ': no message has requested a link between the persons' : '';
    return { rows, sentence: `The identities belong to two persons${none}${more}.` };
  }
  const joins = await tables.joinsOf(environmentId, keysOf(members), bounds.querySeconds);
  const sides = await tables.sidesOf(environmentId, keysOf(members), bounds.querySeconds);
  const chain = findChain(omitUndone(joins, sides), subject.key.toString('hex'), other.key.toString('hex'));
  const broken =
    'but the tables do not contain the links: the event writer is lagging (npm run status), or a connecting identity was erased';
  const links = chain?.length === 1 ? 'link' : `${chain?.length} links`;
  const sentence = chain === null ? broken : `connected by the ${links} above`;
  return { rows: chain ?? [], sentence: `The identities belong to one person, ${sentence}.` };
}

function toLinkLines(row: LinkRow, requested: readonly string[]): string[] {
  const { receivedAt, link, outcome, messageId, traceId } = row;
  const toSide = ({ kind, key }: Side) =>
    `  ${kind.padEnd(9)}  ${key}${requested.includes(key) ? '  <- requested' : ''}`;
  const { generation, partition, offset, step } = row.position;
  return [
    `${toTimeText(receivedAt)}  ${link}  ${outcome}: ${explain(row)}`,
    toSide(row.a),
    toSide(row.b),
    `  message ${messageId}  trace ${traceId}  fact ${generation}/${partition}/${offset} step ${step}`,
  ];
}

const toJson = ({ position, ...row }: LinkRow) => ({ ...row, place: position, says: explain(row) });

const explain = (row: Pick<LinkRow, 'link' | 'outcome' | 'reason' | 'a' | 'b'>): string => {
  const [a = '', b = ''] = [row.a, row.b].map(({ kind, key }) => `${kind} id ${key.slice(0, 8)}…`);
  return explainLink(row, a, b);
};

/** Finds a chain of joining links between two identities; if there is none, also uses unchanged links. */
export function findChain(rows: readonly LinkRow[], from: string, to: string): LinkRow[] | null {
  const joined = rows.filter(({ outcome }) => outcome === 'linked');
  return findPath(joined, from, to) ?? findPath(rows, from, to);
}

/** Omits links that a later unlink has undone. */
function omitUndone(rows: readonly LinkRow[], sides: readonly SplitRow[]): LinkRow[] {
  const sidesOf = new Map<string, SplitRow[]>();
  for (const side of sides) sidesOf.set(side.key, [...(sidesOf.get(side.key) ?? []), side]);
  const isLater = (side: SplitRow, { position }: LinkRow) =>
    side.generation > position.generation || (side.generation === position.generation && side.offset > position.offset);
  const isSplit = (row: LinkRow) =>
    (sidesOf.get(row.a.key) ?? []).some(
      (ofA) =>
        isLater(ofA, row) &&
        (sidesOf.get(row.b.key) ?? []).some(
          (ofB) => ofB.generation === ofA.generation && ofB.offset === ofA.offset && ofB.side !== ofA.side,
        ),
    );
  return rows.filter((row) => !isSplit(row));
}

function findPath(rows: readonly LinkRow[], from: string, to: string): LinkRow[] | null {
  const linksAt = new Map<string, LinkRow[]>();
  for (const row of rows) for (const { key } of [row.a, row.b]) linksAt.set(key, [...(linksAt.get(key) ?? []), row]);
  const reachedBy = new Map<string, { row: LinkRow; before: string } | null>([[from, null]]);
  for (const key of reachedBy.keys())
    for (const row of linksAt.get(key) ?? []) {
      const next = row.a.key === key ? row.b.key : row.a.key;
      if (!reachedBy.has(next)) reachedBy.set(next, { row, before: key });
    }
  if (!reachedBy.has(to)) return null;
  const chain: LinkRow[] = [];
  for (let step = reachedBy.get(to); step; step = reachedBy.get(step.before)) chain.unshift(step.row);
  return chain;
}
