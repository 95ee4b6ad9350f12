/** The search for stored messages on the Live page. Works without JavaScript. */
import { type HtmlValue, html } from '@playline/api-docs';
import { choice, copyable, field, hidden, number, table, time, withAllOption } from '../../frame/components.ts';
import { CSV_LINES_MAX } from '../../frame/csv.ts';
import { INVALID_RANGE, INVALID_TIME, parseTime } from '../../frame/parse-time.ts';
import { FILTER_CHOICES } from '../../live/index.ts';
import type { IdAccess, MessageLine, MessagePage, MessageSearch, PortalReads } from '../../reads/index.ts';

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Search = ReturnType<typeof readSearch>;

export interface SearchScope {
  readonly environmentId: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly idAccess: IdAccess;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

type Reads = Pick<PortalReads, 'message' | 'messages'>;

export async function toSearchSection(reads: Reads, scope: SearchScope): Promise<HtmlValue> {
  const search = readSearch(scope.query);
  const personNote = search.who === '' ? '' : ' Results are limited to the person in the filter above.';
  const result =
    search.id !== '' ? await findById(reads, scope, search) : isList(search) ? await findAll(reads, scope, search) : '';
  return html`<section><h2>Search stored messages</h2>
<p>Search by message id, or by event name, type, surface, test traffic and time.${personNote}</p>
${toForm(scope.path, search)}
${result}</section>`;
}

const isList = ({ name, type, surface, test, since, until, who }: Search) =>
  [name, type, surface, test, since, until, who].some((text) => text !== '');

const FIELD_NAMES = { type: 'stored-type', surface: 'stored-surface', test: 'stored-test' } as const;

/** @returns an error message if a choice is invalid, otherwise null */
function validateChoices(search: Search): string | null {
  for (const name of ['type', 'surface', 'test'] as const) {
    const choices: readonly string[] = FILTER_CHOICES[name];
    if (search[name] !== '' && !choices.includes(search[name]))
      return `Invalid value for ${FIELD_NAMES[name]}: expected one of ${choices.join(', ')}.`;
  }
  return null;
}

/** Returns the search to export; null if the search is invalid or does not return a list. */
export function toExportSearch(scope: SearchScope): MessageSearch | null {
  const search = readSearch(scope.query);
  if (search.id !== '' || !isList(search)) return null;
  const messageSearch = toMessageSearch(scope, search);
  return typeof messageSearch === 'string' ? null : messageSearch;
}

function readSearch(query: URLSearchParams) {
  const text = (name: string) => query.get(name) ?? '';
  return {
    id: text('find').trim().toLowerCase(),
    name: text('event').trim(),
    since: text('since').trim(),
    until: text('until').trim(),
    type: text(FIELD_NAMES.type),
    surface: text(FIELD_NAMES.surface),
    test: text(FIELD_NAMES.test),
    // A person's identity keys, as in the live filter.
    who: text('who'),
    after: text('after'),
  };
}

function toForm(path: string, search: Search): HtmlValue {
  const select = (name: keyof typeof FIELD_NAMES, label: string) =>
    choice({ name: FIELD_NAMES[name], label, value: search[name], choices: withAllOption(FILTER_CHOICES[name]) });
  const person = search.who === '' ? '' : hidden('who', search.who);
  return html`<form class="form filter" method="get" action="${path}" aria-label="Search stored messages">${person}
${field({ name: 'find', label: 'Message id', value: search.id, maxLength: 36 })}
${field({ name: 'event', label: 'Event name', value: search.name, maxLength: 300 })}
${select('type', 'Type')}${select('surface', 'Surface')}${select('test', 'Test traffic')}
${field({ name: 'since', label: 'From (UTC)', value: search.since, maxLength: 19 })}
${field({ name: 'until', label: 'Until (UTC)', value: search.until, maxLength: 19 })}
<button>Search</button>
<p class="hint">A message id is a UUID. Enter times such as 2026-11-01 10:00. If you enter no times, the last day is searched.</p></form>`;
}

async function findById(reads: Reads, { environmentId, signal }: SearchScope, search: Search): Promise<HtmlValue> {
  const { id: messageId, name, type, surface, test } = search;
  if (!ID.test(messageId)) return html`<p role="alert">Enter a message id. It must be a UUID.</p>`;
  const choiceError = validateChoices(search);
  if (choiceError !== null) return html`<p role="alert">${choiceError}</p>`;
  const stored = await reads.message({ environmentId, messageId }, { signal });
  if (stored.length === 0)
    return html`<p>No stored message has this id. Messages appear here within two seconds. Rejected messages are on the Rejections page.</p>`;
  // A message id identifies one message, so the time range and the person filter do not apply.
  const found = stored.filter(
    (each) =>
      (name === '' || each.name === name) &&
      (type === '' || each.type === type) &&
      (surface === '' || each.surface === surface) &&
      (test === '' || each.isTest === (test === 'yes')),
  );
  if (found.length === 0) return html`<p>The message with this id does not match the other fields.</p>`;
  return table(
    'Stored messages',
    ['Received', 'Type', 'Name', 'Surface', 'Message id', 'Trace id'],
    found.map((each) => [time(each.receivedMs), ...toCells(each)]),
  );
}

const toCells = ({ type, name, surface, isTest, messageId, traceId }: MessageLine): HtmlValue[] => [
  type,
  name,
  isTest ? `${surface} (test)` : surface,
  copyable(messageId, 'the message id'),
  copyable(traceId, 'the trace id'),
];

const DAY_MS = 86_400_000;
/** The id is empty if the search timed out between two messages. */
const POSITION = /^(\d{1,14})\.((?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?)$/;

async function findAll(reads: Reads, scope: SearchScope, search: Search): Promise<HtmlValue> {
  const messageSearch = toMessageSearch(scope, search);
  if (typeof messageSearch === 'string') return html`<p role="alert">${messageSearch}</p>`;
  const [, ms, messageId] = POSITION.exec(search.after) ?? [];
  const after = messageId === undefined ? undefined : { happenedMs: Number(ms), messageId };
  return toPage(scope, await reads.messages({ ...messageSearch, after }, { signal: scope.signal }));
}

/** The time range defaults to the last day. @returns an error message if the search is invalid */
function toMessageSearch(scope: SearchScope, search: Search): MessageSearch | string {
  const { environmentId, idAccess, nowMs } = scope;
  const { name, type, surface, test, who } = search;
  const choiceError = validateChoices(search);
  if (choiceError !== null) return choiceError;
  const [since, until] = [parseTime(search.since), parseTime(search.until)];
  if (since === undefined || until === undefined) return INVALID_TIME;
  const untilMs = until ?? nowMs + DAY_MS;
  const sinceMs = since ?? (until ?? nowMs) - DAY_MS;
  if (sinceMs >= untilMs) return INVALID_RANGE;
  return {
    environmentId,
    sinceMs,
    untilMs,
    idAccess,
    name,
    type,
    surface,
    ...(test === '' ? {} : { test: test === 'yes' }),
    ...(who === '' ? {} : { identityIds: who.split('.') }),
  };
}

function toPage({ path, query }: SearchScope, { messages, next, searchedSinceMs }: MessagePage): HtmlValue {
  const rows = messages.map((each) => {
    const [type, name, surface, ...ids] = toCells(each);
    return [time(each.happenedMs), type!, name!, surface!, each.userId || each.anonymousId, ...ids];
  });
  const columns = ['Event time', 'Type', 'Name', 'Surface', 'User', 'Message id', 'Trace id'];
  const [older, file] = [new URLSearchParams(query), new URLSearchParams(query)];
  if (next !== null) older.set('after', `${next.happenedMs}.${next.messageId}`);
  file.delete('after');
  file.set('as', 'csv');
  const shown =
    rows.length === 0
      ? html`<p>No matching messages since ${time(searchedSinceMs)}. Messages appear here within two seconds.</p>`
      : html`${table('Stored messages', columns, rows)}
<p><a href="${`${path}?${file}`}">Export all as CSV</a> (at most the newest ${number(CSV_LINES_MAX, 'rows')})</p>`;
  return html`${shown}${next === null ? '' : html`<p><a href="${`${path}?${older}`}">Older messages</a></p>`}`;
}
