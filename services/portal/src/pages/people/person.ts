/** Shows a person: the profile, the timeline and the identities. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { IDENTITY_KINDS } from '@playline/contracts';
import { explainLink, keysOf } from '@playline/people';
import {
  disclosure,
  hidden,
  keyValues,
  panel,
  segments,
  shortened,
  status,
  table,
  tag,
  time,
} from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import { number } from '../../frame/format.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { FormValues, PageResponse, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { exceedsReadLimits, readPages, type TimelineEntry } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'people' | 'reads'>;
type FoundPerson = Awaited<ReturnType<typeof findPerson>>;

const PARTS = [
  { text: 'All', show: '' },
  { text: 'Events', show: 'events' },
  { text: 'Identity', show: 'identity' },
  { text: 'Consent', show: 'consent' },
] as const;

/** A link to a person contains an identity key, never an id. */
export function toPersonPath(visit: Visit, key: Buffer, query: Readonly<Record<string, string>> = {}): string {
  const person = { person: key.toString('hex') };
  return `${pathInEnvironment(visit, 'people')}?${new URLSearchParams({ ...person, ...query })}`;
}

export const countText = (count: number, one: string, many: string): string =>
  `${number(count)} ${count === 1 ? one : many}`;

const POSITION = /^(\d{1,14})\.([0-9a-f]{32})$/;
const ENTRIES_SHOWN_MAX = 40;
/** Decisions and consents that explain identities and the profile. */
const HISTORY_MAX = 1_000;

/** Null if one of the ids is a placeholder with more messages than a query may read. */
function orTooMany(fault: unknown): null {
  if (exceedsReadLimits(fault)) return null;
  throw fault;
}

export async function findPerson({ people, reads }: Parts, visit: Visit, key: Buffer) {
  const environmentId = scopeOf(visit).environment.id;
  const { signal } = visit;
  const person = await people.members({ environmentId, key });
  const search = { environmentId, identityIds: keysOf(person).map((each) => each.toString('hex')) };
  const [, ms, id = ''] = POSITION.exec(visit.query.get('after') ?? '') ?? [];
  const { show } = PARTS.find((part) => part.show === visit.query.get('show')) ?? PARTS[0];
  const page = { show, after: ms === undefined ? undefined : { happenedMs: Number(ms), id } };
  const [timeline, history, profile, ids] = await Promise.all([
    reads.timeline({ ...search, ...page, linesMax: ENTRIES_SHOWN_MAX }, { signal }).catch(orTooMany),
    reads.timeline({ ...search, show: 'history', linesMax: HISTORY_MAX }, { signal }),
    reads.profile(search, { signal }).catch(orTooMany),
    reads.ids({ ...search, idAccess: 'raw ids' }, { signal }),
  ]);
  const unlinked = [{ key, kind: null, linkedAt: null }];
  const members = (person.isLinked ? person.members : unlinked).map((each) => {
    const keyHex = each.key.toString('hex');
    // Empty if no event contains the id.
    const id = ids.get(keyHex) ?? '';
    const kind = IDENTITY_KINDS.find((one) => people.keyOf(environmentId, one, id).equals(each.key));
    return { kind: each.kind ?? kind ?? 'unknown', keyHex, id };
  });
  const isKnown = person.isLinked || ids.size > 0;
  return { key, person, members, isKnown, page, timeline, history: history.lines, profile };
}

/** The id shown as the name of the person: an email address or another user id, if one is known. */
export function toName({ key, members }: FoundPerson): string {
  const toRank = ({ kind }: { kind: string }) => (kind === 'email' ? 2 : kind === 'anonymous' ? 0 : 1);
  const [first] = members.filter(({ id }) => id !== '').toSorted((a, b) => toRank(b) - toRank(a));
  return first?.id ?? `Person ${key.toString('hex', 0, 4)}…`;
}

/** @param values a submitted form whose page is shown again */
export function toPersonPage(visit: Visit, found: FoundPerson, values?: FormValues): PageResponse {
  const { key, members } = found;
  const erase = html`<a class="btn danger" href="${toPersonPath(visit, key, { confirm: 'erase' })}">Erase person…</a>`;
  return {
    kind: 'page',
    title: 'Person',
    heading: html`<bdi>${toName(found)}</bdi> ${tag(countText(members.length, 'identity', 'identities'))}`,
    actions: html`<a class="btn" href="${toPersonPath(visit, key, { as: 'csv' })}" download>Export data</a>${visit.can('erasure.request') ? erase : ''}`,
    content: html`<div class="split person">${toTimeline(visit, found)}<div>${toProfile(found)}${toIdentities(visit, found, values?.all('member'))}</div></div>`,
  };
}

function toTimeline(visit: Visit, found: FoundPerson): Markup {
  const { key, page, timeline } = found;
  const choices = PARTS.map(({ text, show }) => {
    return { text, href: toPersonPath(visit, key, { show }), isCurrent: show === page.show };
  });
  const days = Map.groupBy(timeline?.lines ?? [], ({ happenedMs }) => toDay(happenedMs));
  const none = html`<p class="muted">No ${page.after === undefined ? '' : 'older '}entries. New entries appear within seconds.</p>`;
  const tooMany = html`<p>There are too many messages to list. Filter them by time in <a href="${pathInEnvironment(visit, 'explore')}">Explore</a>.</p>`;
  const lists = [...days].map(
    ([day, entries]) =>
      html`<h3 class="group">${day}</h3><ul class="timeline">${entries.map((each) => toEntry(visit, found, each))}</ul>`,
  );
  const { happenedMs, id } = timeline?.next ?? {};
  const olderPath = toPersonPath(visit, key, { show: page.show, after: `${happenedMs}.${id}` });
  const older = id === undefined ? '' : html`<p><a href="${olderPath}">Older</a></p>`;
  const content = html`${timeline === null ? tooMany : days.size === 0 ? none : lists}${older}`;
  return panel('Timeline', content, { actions: segments('Entries', choices) });
}

const toDate = (ms: number) => new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeZone: 'UTC' }).format(ms);
const toDay = (ms: number) => (toDate(ms) === toDate(Date.now()) ? 'Today' : toDate(ms));

function toEntry(visit: Visit, found: FoundPerson, entry: TimelineEntry): Markup {
  const { happenedMs, messageId, traceId, what, name, origin, detail } = entry;
  const rows: [string, HtmlValue][] = [['Time', time(happenedMs)]];
  if (messageId !== '') rows.push(['Message id', shortened(messageId, 'the message id')]);
  rows.push(['Trace id', shortened(traceId, 'the trace id')]);
  if (entry.entry === 'event') rows.push(['Surface', origin]);
  const show = (title: HtmlValue, note: string, more: HtmlValue = '') =>
    html`<li class="${entry.entry}"><span class="mono muted">${toIso(happenedMs).slice(11, 16)}</span>
<details><summary>${title} <bdi class="muted">${note}</bdi></summary>${keyValues(rows)}${more}</details></li>\n`;
  if (entry.entry === 'consent') return show(html`<b>consent changed</b>`, `${what}, by ${origin || 'the client'}`);
  if (entry.entry === 'link')
    return show(status(name === 'refused' ? 'warn' : 'ok', `${what} ${name}`), explain(found, entry));
  const message = parse(detail);
  const facts = toFacts(what === 'identify' ? message.traits : message.properties).slice(0, 3);
  const note = facts.map(([fact, value]) => `${fact} ${value}`).join(', ') || origin;
  // Numbers with more digits than a JavaScript number can hold are shown as sent.
  const text = /[:[,] *-?\d{16}/.test(detail) ? detail : JSON.stringify(message, null, 2);
  const explore = html`<p><a href="${pathInEnvironment(visit, 'explore')}?${new URLSearchParams({ message: messageId }).toString()}">Open in Explore</a></p>`;
  const title = what === 'track' ? name : [what, name].filter((each) => each !== '').join(': ');
  return show(html`<b>${title}</b>`, note, html`<pre tabindex="0">${text}</pre>${explore}`);
}

/** Explains a decision in a sentence. */
function explain(
  { members }: FoundPerson,
  { what: link, name: outcome, origin: reason, ...ids }: TimelineEntry,
): string {
  const toText = (keyHex: string, kind: string) =>
    `${kind} id “${members.find((each) => each.keyHex === keyHex)?.id || `${keyHex.slice(0, 8)}…`}”`;
  const [a, b] = [toText(ids.identityId, ids.kind), toText(ids.otherId, ids.otherKind)];
  return explainLink({ link, outcome, reason }, a, b);
}

function parse(json: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(json)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const FACT_CHARACTERS_MAX = 200;

/** The values of an object that are not objects, each shortened. */
const toFacts = (value: unknown): [name: string, value: string][] =>
  Object.entries(Object(value) as object)
    .filter(([, each]) => typeof each !== 'object')
    .map(([name, each]) => [name, String(each).slice(0, FACT_CHARACTERS_MAX)]);

const TRAITS_SHOWN_MAX = 12;

function toProfile({ profile, history, person }: FoundPerson): Markup {
  const current = history
    .filter(({ entry, name }) => entry === 'consent' && name === 'current')
    .map(({ what }) => what);
  const consents = [...new Set(current)].map((each) => html`${status(each === 'full' ? 'ok' : 'wait', each)} `);
  const { firstSeenMs, lastSeenMs, firstSurface, lastSurface, events = 0, sessions = 0, traits = '' } = profile ?? {};
  const toSeen = (ms = 0, surface = '') => (ms === 0 ? '–' : html`${time(ms)} ${tag(surface)}`);
  return panel(
    'Profile',
    keyValues([
      ['First seen', toSeen(firstSeenMs, firstSurface)],
      ['Last seen', toSeen(lastSeenMs, lastSurface)],
      ['Events', `${number(events)} in ${countText(sessions, 'session', 'sessions')}`],
      ['Consent', consents.length === 0 ? 'not set' : consents],
      ...toFacts(parse(traits)).slice(0, TRAITS_SHOWN_MAX),
      ['Person key', shortened(person.personKey.toString('hex'), 'the person key')],
    ]),
  );
}

const DECISIONS_SHOWN_MAX = 5;

function toIdentities(visit: Visit, found: FoundPerson, chosen: readonly string[] = []): Markup {
  const { key, members, history } = found;
  const rows = members.map(({ kind, id, keyHex }) => {
    const decisions = history.filter(
      (each) => each.entry === 'link' && [each.identityId, each.otherId].includes(keyHex),
    );
    const reasons = decisions
      .slice(0, DECISIONS_SHOWN_MAX)
      .map((each) => html`<p>${time(each.happenedMs)}: ${explain(found, each)}</p>`);
    const detail = html`${reasons.length === 0 ? html`<p>No link to another id is recorded.</p>` : reasons}<p>Identity key ${shortened(keyHex, 'the identity key')}</p>`;
    return { cells: [tag(kind), shortened(id || keyHex, 'the id')], detail };
  });
  const boxes = members.map(
    ({ keyHex, kind, id }) =>
      html`<label><input type="checkbox" name="member" value="${keyHex}"${chosen.includes(keyHex) ? html` checked` : ''}> ${kind} <code>${id || keyHex}</code></label><br>`,
  );
  const split = html`<p>The selected identities become a separate person. Messages received before the split cannot join the two persons again, but later messages can. Events stay with their identities.</p>
${hidden('person', key.toString('hex'))}${boxes}<button class="danger">Split person</button>`;
  const form =
    visit.can('people.unlink') && members.length > 1
      ? disclosure('Split person…', visit.form('unlink', split), chosen.length > 0)
      : '';
  const note = 'Open a row to see why it is linked';
  return panel('Identities', html`${table('Identities', ['Type', 'Id'], rows)}${form}`, { note });
}

const FILE_COLUMNS =
  'time|entry|type|name|source|type of id|identity key|other type|other key|message id|trace id|data'.split('|');

/** Everything that is stored about a person, for requests under privacy laws. */
export async function toPersonFile({ people, reads }: Parts, visit: Visit, key: Buffer): Promise<PageResponse> {
  const environmentId = scopeOf(visit).environment.id;
  const identityIds = keysOf(await people.members({ environmentId, key })).map((each) => each.toString('hex'));
  const search = { environmentId, identityIds, show: '' as const };
  const lists = readPages(
    (linesMax, after?: TimelineEntry) => reads.timeline({ ...search, linesMax, after }, { signal: visit.signal }),
    { linesMax: CSV_LINES_MAX, perQuery: HISTORY_MAX },
  );
  const toCells = ({ happenedMs, id: _, entry, ...rest }: TimelineEntry) => [
    toIso(happenedMs),
    entry,
    ...Object.values(rest),
  ];
  const toLastLine = () => `This export is limited to ${number(CSV_LINES_MAX, 'entries')}.`;
  const chunks = toCsv(lists, { columns: FILE_COLUMNS, toCells, toLastLine });
  return { kind: 'streamed file', name: `person-${key.toString('hex')}.csv`, type: CSV_TYPE, chunks };
}
