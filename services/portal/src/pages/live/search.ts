import { type HtmlValue, html } from '@playline/api-docs';
import { choice, copyable, emptyState, field, hidden, number, table, time } from '../../frame/components.ts';
import { CSV_LINES_MAX } from '../../frame/csv.ts';
import { INVALID_TIME, parseTime } from '../../frame/parse-time.ts';
import { FILTER_CHOICES } from '../../live/index.ts';
import type { PortalParts } from '../../portal-parts.ts';
import type { IdAccess, MessagePage, MessageSearch, PortalReads } from '../../reads/index.ts';

/** A stored message, as far as a search shows it. */
export interface FoundMessage {
  readonly messageId: string;
  readonly type: string;
  readonly name: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  readonly surface: string;
  readonly isTest: boolean;
  readonly traceId: string;
}

/**
 * Stored messages of one environment with exactly this message id; more than one where it was sent with several names or
 * on several days.
 * @throws Error when the store cannot answer
 */
export type SearchMessages = (question: {
  readonly environmentId: string;
  readonly id: string;
}) => Promise<readonly FoundMessage[]>;

export const FIND_FIELD = 'find';
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The search over the views of the portal. */
export function createSearchMessages(reads: Pick<PortalReads, 'message'>): SearchMessages {
  return async ({ environmentId, id }) => {
    const found = await reads.message({ environmentId, messageId: id, sight: 'masked ids' });
    return found.map(({ messageId, type, name, receivedMs: receivedAt, surface, isTest, traceId }) => ({
      messageId,
      type,
      name,
      receivedAt,
      surface,
      isTest,
      traceId,
    }));
  };
}

/** What somebody looks for in what is stored; '' says nothing. */
interface StoredSearch {
  /** Id of a message. */
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly surface: string;
  /** `yes` or `no` */
  readonly test: string;
  /** In UTC: `2026-11-01 10:00`. */
  readonly since: string;
  readonly until: string;
  /** Identity keys of a person, as the filter has them. */
  readonly who: string;
  readonly after: string;
}

export interface SearchScope {
  readonly environmentId: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly idAccess: IdAccess;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

type Parts = Pick<PortalParts, 'searchMessages' | 'reads'>;

/** What is stored, beside what comes in; the answer stands in the page, so it works without JavaScript. */
export async function toSearch({ searchMessages, reads }: Parts, place: SearchScope): Promise<HtmlValue> {
  if (searchMessages === null)
    return emptyState('Exact search', html`<p>Stored messages cannot be searched from this portal.</p>`);
  const question = readSearch(place.query);
  const id = question.id.trim().toLowerCase();
  return html`<section><h2>Exact search</h2>
<p>Looks through everything that is stored: by the id that a client gave a message, or by the name of an event, by its type, surface and test traffic, and when it happened${question.who === '' ? '' : ', of the person whom the filter names'}.</p>
${toForm(place.path, question)}
${id !== '' ? await toFound(searchMessages, place.environmentId, { ...question, id }) : isOfMany(question) ? await toList(reads, place, question) : ''}</section>`;
}

const isOfMany = ({ name, type, surface, test, since, until, who }: StoredSearch) =>
  [name, type, surface, test, since, until, who].some((text) => text !== '');

/** Fields of the search by those of the filter above it, which has names of its own: each of the two is asked by itself. */
const NARROWING = { type: 'stored-type', surface: 'stored-surface', test: 'stored-test' } as const;

/** Words about what is none of the choices. */
function toProblem(question: StoredSearch): string | null {
  for (const name of ['type', 'surface', 'test'] as const) {
    const choices: readonly string[] = FILTER_CHOICES[name];
    if (question[name] !== '' && !choices.includes(question[name]))
      return `${NARROWING[name]}: expected one of ${choices.join(', ')}.`;
  }
  return null;
}

/** What is to be saved as a file; null where nothing is looked for that a list would show, or not as it may be said. */
export function searchToSave(place: SearchScope): MessageSearch | null {
  const question = readSearch(place.query);
  if (question.id.trim() !== '' || !isOfMany(question)) return null;
  const search = toMessageSearch(place, question);
  return typeof search === 'string' ? null : search;
}

function readSearch(query: URLSearchParams): StoredSearch {
  const text = (name: string) => query.get(name) ?? '';
  return {
    id: text(FIND_FIELD),
    name: text('event').trim(),
    since: text('since').trim(),
    until: text('until').trim(),
    type: text(NARROWING.type),
    surface: text(NARROWING.surface),
    test: text(NARROWING.test),
    who: text('who'),
    after: text('after'),
  };
}

function toForm(path: string, question: StoredSearch): HtmlValue {
  const { id, name, since, until, who } = question;
  const narrowing = (of: keyof typeof NARROWING, label: string) =>
    choice({
      name: NARROWING[of],
      label,
      value: question[of],
      choices: [{ value: '', text: 'all' }, ...FILTER_CHOICES[of].map((value) => ({ value, text: value }))],
    });
  const person = who === '' ? '' : hidden('who', who);
  return html`<form class="form filter" method="get" action="${path}" aria-label="Exact search">${person}
${field({ name: FIND_FIELD, label: 'Message id', value: id, charactersMax: 36 })}
${field({ name: 'event', label: 'Event name', value: name, charactersMax: 300 })}
${narrowing('type', 'Type')}${narrowing('surface', 'Surface')}${narrowing('test', 'Test traffic')}
${field({ name: 'since', label: 'From (UTC)', value: since, charactersMax: 19 })}
${field({ name: 'until', label: 'Until (UTC)', value: until, charactersMax: 19 })}
<button>Search</button>
<p class="hint">The id is a UUID. Times as 2026-11-01 10:00; without them it is the last day.</p></form>`;
}

async function toFound(
  searchMessages: SearchMessages,
  environmentId: string,
  question: StoredSearch,
): Promise<HtmlValue> {
  const { id } = question;
  if (!ID.test(id)) return html`<p role="alert">Give a message id: a UUID, as clients send it.</p>`;
  const mistake = toProblem(question);
  if (mistake !== null) return html`<p role="alert">${mistake}</p>`;
  const stored = await searchMessages({ environmentId, id });
  if (stored.length === 0)
    return html`<p>Nothing is stored under this id here. What was sent less than two seconds ago may be on its way; what was rejected is among the rejections.</p>`;
  const found = stored.filter((each) => isWanted(each, question));
  if (found.length === 0)
    return html`<p>What is stored under this id is of another name, type or surface, or is test traffic where none was looked for, or the other way around.</p>`;
  return table(
    'Stored messages',
    ['Received', 'Type', 'Name', 'Surface', 'Message id', 'Trace id'],
    found.map((each) => [
      ...[time(each.receivedAt), each.type, each.name, toSurface(each)],
      ...[copyable(each.messageId, 'the message id'), copyable(each.traceId, 'the trace id')],
    ]),
  );
}

/** An id is exact: it needs no time, and the filter of a person is not asked. */
const isWanted = (message: FoundMessage, { name, type, surface, test }: StoredSearch) =>
  (name === '' || message.name === name) &&
  (type === '' || message.type === type) &&
  (surface === '' || message.surface === surface) &&
  (test === '' || message.isTest === (test === 'yes'));

/** As the rows of live messages have it. */
const toSurface = ({ surface, isTest }: Pick<FoundMessage, 'surface' | 'isTest'>) =>
  isTest ? `${surface} (test)` : surface;

const DAY_MS = 86_400_000;
/** Without an id where a search ran out of time between two messages: all that is older. */
const POSITION = /^(\d{1,14})\.((?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?)$/;

/** A page of what happened in the span. */
async function toList(reads: Parts['reads'], place: SearchScope, question: StoredSearch): Promise<HtmlValue> {
  const search = toMessageSearch(place, question);
  if (typeof search === 'string') return html`<p role="alert">${search}</p>`;
  const [, ms, messageId] = POSITION.exec(question.after) ?? [];
  const after = messageId === undefined ? {} : { after: { happenedMs: Number(ms), messageId } };
  return toPage(place, await reads.messages({ ...search, ...after }, { signal: place.signal }));
}

/** The span ends now, and is a day long, where it does not say. @returns words about what cannot be looked for */
function toMessageSearch(place: SearchScope, question: StoredSearch): MessageSearch | string {
  const { environmentId, idAccess: sight, nowMs } = place;
  const { name, type, surface, test } = question;
  const mistake = toProblem(question);
  if (mistake !== null) return mistake;
  const [since, until] = [parseTime(question.since), parseTime(question.until)];
  if (since === undefined || until === undefined) return INVALID_TIME;
  const untilMs = until ?? nowMs + DAY_MS;
  const sinceMs = since ?? (until ?? nowMs) - DAY_MS;
  if (sinceMs >= untilMs) return 'The span ends in front of its beginning.';
  return {
    environmentId,
    sinceMs,
    untilMs,
    idAccess: sight,
    name,
    type,
    surface,
    ...(test === '' ? {} : { test: test === 'yes' }),
    ...(question.who === '' ? {} : { identityIds: question.who.split('.') }),
  };
}

function toPage({ path, query }: SearchScope, { messages, next, searchedSinceMs }: MessagePage): HtmlValue {
  const rows = messages.map((each) => [
    ...[time(each.happenedMs), each.type, each.name, toSurface(each), each.userId || each.anonymousId],
    ...[copyable(each.messageId, 'the message id'), copyable(each.traceId, 'the trace id')],
  ]);
  const heads = ['Happened', 'Type', 'Name', 'Surface', 'Who', 'Message id', 'Trace id'];
  const [older, file] = [new URLSearchParams(query), new URLSearchParams(query)];
  if (next !== null) older.set('after', `${next.happenedMs}.${next.messageId}`);
  file.delete('after');
  file.set('as', 'csv');
  const shown =
    rows.length === 0
      ? html`<p>Nothing is stored that is so, back to ${time(searchedSinceMs)}. What was sent less than two seconds ago may be on its way.</p>`
      : html`${table('Stored messages', heads, rows)}
<p><a href="${`${path}?${file}`}">Save all of them as CSV</a>, the newest ${number(CSV_LINES_MAX)} at most.</p>`;
  return html`${shown}${next === null ? '' : html`<p><a href="${`${path}?${older}`}">Older messages</a></p>`}`;
}
