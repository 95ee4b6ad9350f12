/** Shows a person: the profile, the timeline and the identities. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import {
  disclosure,
  hidden,
  keyValues,
  number,
  panel,
  segments,
  shortened,
  status,
  table,
  tag,
  time,
} from '../../frame/components.ts';
import { pathInEnvironment } from '../../frame/layout.ts';
import type { PageResponse, Visit } from '../../frame/page.ts';
import type { TimelineEntry, TimelinePart, TimelinePosition } from '../../reads/index.ts';
import { explainEntry, type FoundMember, type FoundPerson } from './find-person.ts';

export const PARTS: readonly { readonly text: string; readonly show: TimelinePart }[] = [
  { text: 'All', show: '' },
  { text: 'Events', show: 'events' },
  { text: 'Identity', show: 'identity' },
  { text: 'Consent', show: 'consent' },
];

/** A link to a person contains an identity key, never an id. */
export function toPersonPath(visit: Visit, keyHex: string, query: Readonly<Record<string, string>> = {}): string {
  const used = Object.entries(query).filter(([, value]) => value !== '');
  return `${pathInEnvironment(visit, 'people')}?${new URLSearchParams([['person', keyHex], ...used])}`;
}

export const countText = (count: number, one: string, many: string): string =>
  count === 1 ? `1 ${one}` : `${number(count)} ${many}`;

/** The id that stands for the person: a user id if one is known. */
export function toName({ members }: FoundPerson): string {
  const named = members.filter(({ id }) => id !== null);
  const { id = null } = named.find(({ kind }) => kind !== 'anonymous') ?? named[0] ?? {};
  return id ?? `Person ${members[0]?.keyHex.slice(0, 8) ?? ''}…`;
}

export interface ShownTimeline {
  readonly show: TimelinePart;
  readonly isFirst: boolean;
  readonly nowMs: number;
}

export function toPersonPage(visit: Visit, found: FoundPerson, shown: ShownTimeline): PageResponse {
  const { keyHex, members } = found;
  const erase = visit.can('erasure.request')
    ? html`<a class="btn danger" href="${toPersonPath(visit, keyHex, { confirm: 'erase' })}">Erase person…</a>`
    : '';
  return {
    kind: 'page',
    title: 'Person',
    heading: html`<bdi>${toName(found)}</bdi> ${tag(countText(members.length, 'identity', 'identities'))}`,
    actions: html`<a class="btn" href="${toPersonPath(visit, keyHex, { as: 'json' })}" download>Export data</a>${erase}`,
    content: html`<div class="split person">${toTimeline(visit, found, shown)}
<div>${toProfile(found)}${toIdentities(visit, found)}</div></div>`,
  };
}

function toTimeline(visit: Visit, found: FoundPerson, { show, isFirst, nowMs }: ShownTimeline): Markup {
  const { keyHex, timeline } = found;
  const choices = PARTS.map((part) => ({
    text: part.text,
    href: toPersonPath(visit, keyHex, { show: part.show }),
    isCurrent: part.show === show,
  }));
  const actions = segments('Timeline shows', choices);
  if (timeline === null)
    return panel(
      'Timeline',
      html`<p>There are too many messages to list. Filter them by time in <a href="${pathInEnvironment(visit, 'explore')}">Explore</a>.</p>`,
      { actions },
    );
  const days = Map.groupBy(timeline.entries, ({ happenedMs }) => toDay(happenedMs, nowMs));
  const toPageLink = (text: string, after: TimelinePosition | null) => {
    const query = { show, after: after === null ? '' : `${after.happenedMs}.${after.id}` };
    return html`<a href="${toPersonPath(visit, keyHex, query)}">${text}</a> `;
  };
  const none = html`<p class="muted">${isFirst ? 'Nothing is stored here yet.' : 'Nothing older is stored.'} New entries appear within seconds.</p>`;
  const content = html`${timeline.entries.length === 0 ? none : ''}${[...days].map(
    ([day, entries]) =>
      html`<h3 class="group">${day}</h3><ul class="timeline">${entries.map((each) => toEntry(visit, found, each))}</ul>`,
  )}
<p>${isFirst ? '' : toPageLink('Newest', null)}${timeline.next === null ? '' : toPageLink('Older', timeline.next)}</p>`;
  return panel('Timeline', content, { actions });
}

const DAY_MS = 86_400_000;

function toDay(ms: number, nowMs: number): string {
  const age = Math.floor(nowMs / DAY_MS) - Math.floor(ms / DAY_MS);
  if (age === 0 || age === 1) return age === 0 ? 'Today' : 'Yesterday';
  return new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeZone: 'UTC' }).format(ms);
}

function toEntry(visit: Visit, found: FoundPerson, entry: TimelineEntry): Markup {
  const { happenedMs, messageId, traceId } = entry;
  const iso = new Date(happenedMs).toISOString();
  const { title, note, kind, detail } = toTexts(found, entry);
  const ids: [string, HtmlValue][] = [['Time', time(happenedMs)]];
  if (messageId !== '') {
    const explore = html`<a href="${pathInEnvironment(visit, 'explore')}?message=${messageId}">Open in Explore</a>`;
    ids.push(['Message', html`${shortened(messageId, 'the message id')} ${entry.entry === 'event' ? explore : ''}`]);
  }
  ids.push(['Trace id', shortened(traceId, 'the trace id')]);
  return html`<li class="${entry.entry === 'event' ? '' : 'mark'}"><time class="mono faint" datetime="${iso}" title="${iso.replace('T', ' ').replace('Z', ' UTC')}">${iso.slice(11, 16)}</time>
<details><summary>${kind === null ? html`<b>${title}</b>` : status(kind, title)} <bdi class="muted">${note}</bdi></summary>
${keyValues(ids)}${detail === '' ? '' : html`<pre tabindex="0">${detail}</pre>`}</details></li>\n`;
}

interface EntryTexts {
  readonly title: string;
  readonly note: string;
  /** Null for messages. */
  readonly kind: 'ok' | 'wait' | 'warn' | null;
  readonly detail: string;
}

function toTexts(found: FoundPerson, entry: TimelineEntry): EntryTexts {
  const { what, name, origin, detail } = entry;
  if (entry.entry === 'consent') {
    const note = `${what}${origin === '' ? '' : `, by ${origin}`}`;
    return { title: 'consent changed', note, kind: CONSENT_KINDS[what] ?? 'wait', detail };
  }
  if (entry.entry === 'link') {
    const kind = name === 'linked' || name === 'unlinked' ? 'ok' : 'warn';
    return { title: LINK_TITLES[name] ?? 'ruling', note: explainEntry(found, entry), kind, detail };
  }
  const message = parse(detail);
  const facts = toFacts(what === 'identify' ? message.traits : message.properties).slice(0, 3);
  const note = facts.length === 0 ? origin : facts.map(([fact, value]) => `${fact} ${value}`).join(', ');
  const title = name === '' ? what : what === 'track' ? name : `${what}: ${name}`;
  // Numbers with more digits than a JavaScript number can hold are shown as sent.
  return { title, note, kind: null, detail: /\d{16}/.test(detail) ? detail : JSON.stringify(message, null, 2) };
}

const CONSENT_KINDS: Readonly<Record<string, 'ok' | 'wait' | 'warn'>> = { full: 'ok', anonymous: 'wait', none: 'warn' };
const LINK_TITLES: Readonly<Record<string, string>> = {
  linked: 'linked',
  unlinked: 'split',
  refused: 'link refused',
  ambiguous: 'not linked',
};

function parse(json: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(json)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const FACT_CHARACTERS_MAX = 40;

/** The values of an object that fit in one line. */
function toFacts(value: unknown): [name: string, value: string][] {
  return Object.entries(Object(value) as Record<string, unknown>).flatMap(([name, each]): [string, string][] => {
    const text = typeof each === 'object' ? '' : String(each);
    return text === '' || text.length > FACT_CHARACTERS_MAX ? [] : [[name, text]];
  });
}

const TRAITS_SHOWN_MAX = 12;

function toProfile({ profile, history, person }: FoundPerson): Markup {
  const rows: [string, HtmlValue][] = [];
  if (profile !== null) {
    const { firstSeenMs, lastSeenMs, firstSurface, counts } = profile;
    const sessions = counts === null ? '' : ` in ${countText(counts.sessions, 'session', 'sessions')}`;
    rows.push(['First seen', html`${time(firstSeenMs)} ${tag(firstSurface)}`]);
    rows.push(['Last seen', html`${time(lastSeenMs)} ${counts === null ? '' : tag(counts.lastSurface)}`]);
    rows.push(['Events', counts === null ? 'too many to count' : `${number(counts.events)}${sessions}`]);
  }
  const current = Map.groupBy(
    history.filter(({ entry, name }) => entry === 'consent' && name === 'current'),
    ({ what }) => what,
  );
  const statuses = [...current].map(([what, { length }]) => {
    const ids = current.size === 1 ? '' : ` for ${countText(length, 'id', 'ids')}`;
    return html`${status(CONSENT_KINDS[what] ?? 'wait', `${what}${ids}`)} `;
  });
  rows.push(['Consent', statuses.length === 0 ? html`<span class="muted">not set</span>` : statuses]);
  for (const [name, value] of toFacts(parse(profile?.traits ?? '{}')).slice(0, TRAITS_SHOWN_MAX))
    rows.push([name, html`<bdi>${value}</bdi>`]);
  rows.push(['Person key', shortened(person.personKey.toString('hex'), 'the person key')]);
  return panel('Profile', keyValues(rows));
}

const MEMBERS_SHOWN_MAX = 20;
const DECISIONS_SHOWN_MAX = 5;

function toIdentities(visit: Visit, found: FoundPerson): Markup {
  const toRows = (members: readonly FoundMember[]) =>
    table(
      'Identities',
      ['Type', 'Id'],
      members.map((member) => ({
        cells: [tag(member.kind ?? 'unknown'), shortened(member.id ?? member.keyHex, 'the id')],
        detail: toReason(found, member),
      })),
    );
  const [first, rest] = [found.members.slice(0, MEMBERS_SHOWN_MAX), found.members.slice(MEMBERS_SHOWN_MAX)];
  const others = rest.length === 0 ? '' : disclosure(`Show ${number(rest.length)} more`, toRows(rest));
  return panel('Identities', html`${toRows(first)}${others}${toSplitForm(visit, found)}`, {
    note: 'Open a row to see why it is linked',
  });
}

function toReason(found: FoundPerson, { keyHex, linkedMs, decisions }: FoundMember): Markup {
  const none =
    linkedMs === null
      ? 'Not linked to any other id.'
      : 'The messages that linked this id are not among the newest decisions.';
  const sentences = decisions
    .slice(0, DECISIONS_SHOWN_MAX)
    .map(
      (each) =>
        html`<p>${time(each.happenedMs)}: ${explainEntry(found, each)} Message ${shortened(each.messageId, 'the message id')}</p>`,
    );
  return html`${sentences.length === 0 ? html`<p>${none}</p>` : sentences}
<p class="muted">Identity key ${shortened(keyHex, 'the identity key')}</p>`;
}

function toSplitForm(visit: Visit, { keyHex, members }: FoundPerson): HtmlValue {
  if (!visit.can('people.unlink') || members.length < 2) return '';
  const boxes = members.map(
    (each) =>
      html`<label><input type="checkbox" name="member" value="${each.keyHex}"> ${each.kind ?? ''} <code>${each.id ?? each.keyHex}</code></label><br>`,
  );
  const form = visit.form(
    'unlink',
    html`<p>The selected identities become a separate person. Messages received before the split cannot join the two persons again, but later messages can. Events stay with their identities.</p>
${hidden('person', keyHex)}${boxes}
<button class="danger">Split person</button>`,
  );
  return disclosure('Split person…', form);
}
