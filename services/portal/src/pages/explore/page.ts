/** Searches stored messages, charts their number, shows a message in full, and gives the query to analysts. */

import { html, type Markup } from '@playline/api-docs';
import { MESSAGE_TYPES, SURFACES } from '@playline/contracts';
import { toAnalystQuery } from '@playline/events';
import {
  chart,
  choice,
  copyableBlock,
  emptyState,
  field,
  filterBar,
  hidden,
  number,
  panel,
  table,
  tag,
  time,
  withAllOption,
} from '../../frame/components.ts';
import { CSV_LINES_MAX, CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import type { FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { rangeOf, rangeSegments } from '../../frame/time-range.ts';
import { hrefWith } from '../../href.ts';
import {
  exceedsReadLimits,
  MESSAGES_MAX,
  type MessageCount,
  type MessageLine,
  type MessagePage,
  type MessagePosition,
  type MessageSearch,
  type PortalReads,
  readPages,
} from '../../reads/index.ts';
import type { PageParts } from '../index.ts';
import { createPersonAction, toPersonFilter } from '../live/person-filter.ts';
import { toDetail } from './detail.ts';
import {
  EXPLORE_RANGES,
  type ExploreFields,
  type ExploreSearch,
  readablePropertiesOf,
  readFields,
  toSearch,
} from './search.ts';

type Parts = Pick<PageParts, 'reads' | 'people' | 'frame' | 'writeAudit'>;

export function createExplorePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/explore',
    access: 'live.read',
    show: async (visit, failure) => {
      const { environment } = scopeOf(visit);
      const fields = readFields(visit.query);
      const search = toSearch(visit, fields, parts.frame.wallClockMs());
      if (visit.query.get('as') === 'csv' && typeof search !== 'string') {
        const [since = '', until = ''] = [search.sinceMs, search.untilMs].map(toIso);
        const detail = { since, until, ids: search.idAccess };
        await parts.writeAudit(visit, { action: 'messages.save', object: environment.id, detail });
        return toMessagesFile(parts.reads, search, visit.signal);
      }
      const [results, detail] = await Promise.all([
        typeof search === 'string' ? toAlert(search) : toResults(parts.reads, visit, search),
        fields.message === '' ? '' : toDetail(parts.reads, visit, fields.message ?? ''),
      ]);
      const range = fields.since === '' && fields.until === '' ? rangeOf(visit.query, EXPLORE_RANGES) : null;
      return {
        kind: 'page',
        title: 'Explore',
        content: html`${toFilter(visit, fields, failure?.values)}
${detail === '' ? results : html`<div class="beside"><div>${results}</div>${detail}</div>`}`,
        actions: rangeSegments(visit, EXPLORE_RANGES, range),
        scripts: ['explore.js'],
      };
    },
    actions: { person: createPersonAction(parts, 'explore') },
  };
}

const toAlert = (text: string): Markup => html`<p class="message failed" role="alert">${text}</p>`;

const toChoices = (texts: Readonly<Record<string, string>>) =>
  Object.entries(texts).map(([value, text]) => ({ value, text }));
const OPERATORS = toChoices({ eq: '=', ne: '≠', exists: 'exists', gt: '>', lt: '<' });
const TRAFFIC = toChoices({ '': 'real', test: 'test' });

function toFilter(visit: Visit, fields: ExploreFields, submitted?: FormValues): Markup {
  const { event = '', type = '', surface = '', traffic = '', property = '', value = '', identity = '' } = fields;
  const { since = '', until = '', operator = '', message = '', range = '' } = fields;
  const properties = html`${field({ name: 'property', label: 'Property', value: property, maxLength: 256 })}
${choice({ name: 'operator', label: 'Operator', value: operator, choices: OPERATORS })}
${field({ name: 'value', label: 'Value', value, maxLength: 300 })}`;
  const times = html`${field({ name: 'since', label: 'From (UTC)', value: since, maxLength: 19 })}
${field({ name: 'until', label: 'Until (UTC)', value: until, maxLength: 19 })}
<span class="hint">For example 2026-11-01 10:00.</span>`;
  const kept = Object.entries({ identity, range }).filter(([, text]) => text !== '');
  const more = html`${readablePropertiesOf(visit).length === 0 ? '' : toMore('property', properties, property !== '')}
${toMore('times', times, since + until !== '')}`;
  const inputs = html`${kept.map(([name, text]) => hidden(name, text))}
${field({ name: 'event', label: 'Event', value: event })}
${choice({ name: 'type', label: 'Type', value: type, choices: withAllOption(MESSAGE_TYPES) })}
${choice({ name: 'surface', label: 'Surface', value: surface, choices: withAllOption(SURFACES) })}
${choice({ name: 'traffic', label: 'Traffic', value: traffic, choices: TRAFFIC })}
${field({ name: 'message', label: 'Message id', value: message, maxLength: 36 })}`;
  return filterBar(visit, inputs, { more, beside: toPersonFilter(visit, submitted) });
}

const toMore = (text: string, content: Markup, isOpen: boolean): Markup =>
  html`<details class="more"${isOpen ? html` open` : ''}><summary class="chip">+ ${text}</summary><div class="filters">${content}</div></details>`;

async function toResults(reads: Parts['reads'], visit: Visit, search: ExploreSearch): Promise<Markup> {
  const options = { signal: visit.signal };
  const read = <T>(result: Promise<T>) =>
    result.catch((fault) => (exceedsReadLimits(fault) ? (fault as Error).message : Promise.reject(fault)));
  const count = () => read(reads.messageCounts(search, options));
  if (visit.query.get('chart') === 'now') return toChart(visit, search, await count());
  const [page, counts] = await Promise.all([
    read(reads.messages(search, options)),
    loadsChartSeparately(search) ? null : count(),
  ]);
  const chart = toChart(visit, search, counts);
  const list = typeof page === 'string' ? toAlert(page) : toList(visit, search, page);
  const query = html`<details class="disclosure"><summary>Copy SQL</summary>
<p>Run this query with your analyst account. It returns the messages on this page.</p>
${copyableBlock(toAnalystQuery(search), 'the query')}</details>`;
  return html`${chart}${list}${query}`;
}

/** Counting many messages would delay the page, so the script requests the chart of a wide range afterwards. */
const loadsChartSeparately = ({ sinceMs, untilMs, stepMs, identityIds }: ExploreSearch) =>
  untilMs - sinceMs > 86_400_000 + stepMs && identityIds === undefined;

/** Below this number, `uniqCombined64` is exact. */
const EXACT_COUNT_MAX = 1_000;

/** The script draws the chart from its data attribute. @param counts null if the script requests them later */
function toChart(visit: Visit, search: ExploreSearch, counts: readonly MessageCount[] | string | null): Markup {
  const { sinceMs, untilMs, stepMs } = search;
  const note = html`${time(sinceMs)} – ${time(untilMs)}`;
  const later = html`<p class="later"><a href="${hrefWith(visit, { chart: 'now', message: '' })}">Show the number of messages over time</a></p>`;
  if (counts === null || typeof counts === 'string')
    return html`<div class="chart-panel">${panel('Messages over time', counts === null ? later : html`<p>${counts}</p>`, { note })}</div>`;
  const messages = new Map(counts.map((each) => [each.stepMs, each.messages]));
  const steps = Array.from({ length: Math.ceil((untilMs - sinceMs) / stepMs) }, (_, index) => sinceMs + index * stepMs);
  const points = [steps.map((ms) => ms / 1000), steps.map((ms) => messages.get(ms) ?? 0)];
  const total = counts.reduce((sum, each) => sum + each.messages, 0);
  const isExact = counts.every((each) => each.messages <= EXACT_COUNT_MAX);
  const rows = counts.map((each) => [time(each.stepMs), number(each.messages)]);
  const content = panel(
    `${isExact ? '' : 'About '}${number(total)} ${total === 1 ? 'message' : 'messages'}`,
    html`${chart('Messages over time', [['messages', 'bars', 'accent']], points)}
<details class="numbers"><summary>View as table</summary>${table('Messages over time', ['From', { text: 'Messages', align: 'right' }], rows)}</details>`,
    { note },
  );
  return html`<div class="chart-panel">${content}</div>`;
}

function toList(visit: Visit, search: MessageSearch, { lines, next, searchedSinceMs }: MessagePage): Markup {
  if (lines.length === 0 && next === null) return toEmpty(visit, search);
  const rows = lines.map((each) => [
    time(each.happenedMs),
    html`<a href="${hrefWith(visit, { message: each.messageId })}">${each.name || each.type}</a>`,
    each.type,
    tag(each.surface),
    each.userId || each.anonymousId || '–',
    `${each.library} ${each.libraryVersion}`.trim() || '–',
  ]);
  const columns = ['Happened', 'Event', 'Type', 'Surface', 'Player', 'Client'];
  const older = next === null ? '' : hrefWith(visit, { after: `${next.happenedMs}.${next.messageId}`, message: '' });
  const file = html`<a class="btn" href="${hrefWith(visit, { as: 'csv', after: '', message: '' })}">Export as CSV</a>`;
  const note = lines.length === 0 ? html`No matching messages since ${time(searchedSinceMs)}` : 'Newest first';
  return html`${panel('Messages', table('Stored messages', columns, rows), { note, actions: file })}
${older === '' ? '' : html`<p><a class="btn" href="${older}">Older messages</a></p>`}`;
}

function toEmpty(visit: Visit, { test }: MessageSearch): Markup {
  const other = test
    ? html`<a href="${hrefWith(visit, { traffic: '' })}">Search messages of real players</a>`
    : html`<a href="${hrefWith(visit, { traffic: 'test' })}">Search test messages</a>, which are not shown here`;
  return emptyState(
    'No matching messages',
    html`<p>Messages appear here within seconds after the gateway accepted them. Try a longer time range. ${other}.</p>`,
    { path: '/docs/quickstart', text: 'Send a first message' },
  );
}

const FILE_COLUMNS =
  'happened|received|type|name|surface|test|library|version|anonymous id|user id|message id|trace id'.split('|');

function toCells(line: MessageLine): readonly string[] {
  const { type, name, surface, library, libraryVersion } = line;
  const times = [toIso(line.happenedMs), toIso(line.receivedMs)];
  const ids = [line.anonymousId, line.userId, line.messageId, line.traceId];
  return [...times, type, name, surface, line.isTest ? 'yes' : 'no', library, libraryVersion, ...ids];
}

/** Times in searches have a resolution of one second, so the next export repeats the messages of the last second. */
function toLastLine({ happenedMs }: MessagePosition): string {
  const until = toIso(Math.ceil(happenedMs / 1000) * 1000).slice(0, 19);
  return `This export is limited to ${number(CSV_LINES_MAX, 'messages')}. For older messages, search until ${until}.`;
}

export function toMessagesFile(
  reads: Pick<PortalReads, 'messages'>,
  search: MessageSearch,
  signal: AbortSignal,
): Extract<PageResponse, { kind: 'streamed file' }> {
  const lists = readPages(
    (messagesMax, after?: MessagePosition) => reads.messages({ ...search, messagesMax, after }, { signal }),
    { after: search.after, linesMax: CSV_LINES_MAX, perQuery: MESSAGES_MAX },
  );
  const chunks = toCsv(lists, { columns: FILE_COLUMNS, toCells, toLastLine });
  return { kind: 'streamed file', name: `messages-${search.environmentId}.csv`, type: CSV_TYPE, chunks };
}
