import { type QueryOptions, type QueryRows, quoteText } from '@playline/stores';
import { type IdAccess, idFor, msOf, queryView, readPages, SEARCH_MAX_MS } from './query-view.ts';

/** A span of time in epoch milliseconds, without its end. */
export interface Span {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Which messages are looked for: '' says nothing. The span is of when they happened, by the clocks of clients. */
export interface MessageSearch extends Span {
  readonly environmentId: string;
  readonly idAccess: IdAccess;
  readonly type?: string;
  readonly name?: string;
  readonly surface?: string;
  /** Tests alone, or no tests. */
  readonly test?: boolean;
  /** 32 hexadecimal digits: messages of this owner. */
  readonly identityId?: string;
  /** The same of anybody: messages that name one of these in any part. */
  readonly identityIds?: readonly string[];
  /** Where the page in front ended. */
  readonly after?: MessagePosition;
  /** 1 to 2,000; 100 when absent. */
  readonly messagesMax?: number;
}

/** A message among those of an environment, by when it happened. */
export interface MessagePosition {
  readonly happenedMs: number;
  readonly messageId: string;
}

/** A message without what is long of it; times in epoch milliseconds. */
export interface MessageLine extends MessagePosition {
  readonly receivedMs: number;
  readonly type: string;
  readonly name: string;
  readonly surface: string;
  readonly library: string;
  readonly libraryVersion: string;
  readonly isTest: boolean;
  readonly consentLevel: string;
  /** As the reader may see them; '' when absent. */
  readonly anonymousId: string;
  readonly userId: string;
  readonly identityType: string;
  /** Keyed hash of the owner: 32 hexadecimal digits, zeros for nobody. */
  readonly identityId: string;
  readonly traceId: string;
}

export interface MessagePage {
  /** The newest first; of copies of a message the one received first. */
  readonly messages: readonly MessageLine[];
  /** What the next page begins after; null when the span holds no more. */
  readonly next: MessagePosition | null;
  /** Where the search had come to when it had enough, or gave up: nothing before it was looked at. */
  readonly searchedSinceMs: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/**
 * How far back each step of a search looks, from the newest on. The engine reads whole days of an environment, so steps
 * below a day cost no less; the first one is answered for who looks at what has just come in.
 */
const STEPS_MS = [10 * MINUTE_MS, DAY_MS, 7 * DAY_MS, 31 * DAY_MS, 92 * DAY_MS, 366 * DAY_MS];
const MESSAGES_MAX = 2_000;
/** A message rarely has more than one copy, and copies stand side by side: twice the page holds enough rows. */
const COPIES_FACTOR = 2;

const LINE_COLUMNS = [
  ...['toString(message_id)', 'type', 'event_name', msOf('event_time'), msOf('received_at'), 'surface', 'library'],
  ...[
    'library_version',
    'test',
    'consent_level',
    'anonymous_id',
    'user_id',
    'identity_type',
    'identity_id',
    'trace_id',
  ],
];

/** A row of `LINE_COLUMNS`, as its reader may see it. */
function toLine(sight: IdAccess, values: readonly unknown[]): MessageLine {
  const [messageId, type, name, happened, received, surface, library, libraryVersion, test, consentLevel] = values;
  const [anonymousId, userId, identityType, identityId, traceId] = values.slice(10).map(String);
  return {
    messageId: String(messageId),
    type: String(type),
    name: String(name),
    happenedMs: Number(happened),
    receivedMs: Number(received),
    surface: String(surface),
    library: String(library),
    libraryVersion: String(libraryVersion),
    isTest: test === true,
    consentLevel: String(consentLevel),
    anonymousId: idFor(sight, anonymousId!),
    userId: idFor(sight, userId!),
    identityType: identityType!,
    identityId: identityId!,
    traceId: traceId!,
  };
}

/** Of copies, which have one id, time, type and name, the one received first; the order stays. */
function foldCopies(lines: readonly MessageLine[]): MessageLine[] {
  const first = new Map<string, MessageLine>();
  for (const line of lines) {
    const key = [line.messageId, line.happenedMs, line.type, line.name, line.identityId].join(' ');
    const before = first.get(key);
    if (before === undefined || line.receivedMs < before.receivedMs) first.set(key, line);
  }
  return [...first.values()];
}

interface Window extends Span {
  /** '' when the end is no part of it. */
  readonly before: string;
  readonly rowsMax: number;
}

function readWindow(query: QueryRows, search: MessageSearch, { signal, ...window }: Window & QueryOptions) {
  const { environmentId, type = '', name = '', surface = '', test, identityId = '', idAccess: sight } = search;
  const { sinceMs, untilMs, before, rowsMax } = window;
  const args = { environment: environmentId, since: sinceMs, until: untilMs, before, name };
  const narrowed = { type, surface, test: test === undefined ? '' : String(test), identity: identityId };
  const of =
    search.identityIds === undefined
      ? { view: 'portal_messages', args: { ...args, ...narrowed } }
      : { view: 'portal_messages_of_people', args: { ...args, identities: search.identityIds } };
  return queryView(
    query,
    {
      ...of,
      columns: LINE_COLUMNS,
      tail: `${search.identityIds === undefined ? '' : toConditions(narrowed)}ORDER BY event_time DESC, message_id DESC`,
      rowsMax,
      toRow: (values) => toLine(sight, values),
    },
    signal === undefined ? {} : { signal },
  );
}

/** Of the messages of a person, which are few: the view that finds them is not told of more. */
function toConditions({ type, surface, test, identity }: Readonly<Record<string, string>>): string {
  const conditions = Object.entries({ type, surface, identity_id: identity })
    .filter(([, value = '']) => value !== '')
    .map(([column, value = '']) => `${column} = ${quoteText(value)}`);
  if (test !== '') conditions.push(test === 'true' ? 'test' : 'NOT test');
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `;
}

/** Looks for messages, the newest first, in steps that grow, and stops when the page is full or the time is over. */
export async function searchMessages(
  query: QueryRows,
  search: MessageSearch,
  options: QueryOptions = {},
): Promise<MessagePage> {
  const { sinceMs, after, messagesMax = 100 } = search;
  const max = Math.min(Math.max(1, Math.trunc(messagesMax)), MESSAGES_MAX);
  const end = after?.happenedMs ?? search.untilMs;
  const begin = performance.now();
  const found: MessageLine[] = [];
  const rowsMax = COPIES_FACTOR * (max + 1);
  let place: MessagePosition = { happenedMs: end, messageId: after?.messageId ?? '' };
  for (let step = 0; performance.now() - begin < SEARCH_MAX_MS; ) {
    const since = Math.max(sinceMs, end - (STEPS_MS[step] ?? Number.POSITIVE_INFINITY));
    const window = { sinceMs: since, untilMs: place.happenedMs, before: place.messageId, rowsMax };
    const lines = await readWindow(query, search, { ...options, ...window });
    for (const each of lines) found.push(each);
    const messages = foldCopies(found);
    if (messages.length > max) return { messages: messages.slice(0, max), ...endOf(messages[max - 1]!) };
    // So many copies that the window holds more than was read of it.
    const isWhole = lines.length < rowsMax;
    if (isWhole && since === sinceMs) return { messages, next: null, searchedSinceMs: since };
    place = isWhole ? { happenedMs: since, messageId: '' } : endOf(lines.at(-1)!).next;
    if (isWhole) step += 1;
  }
  return { messages: foldCopies(found), next: place, searchedSinceMs: place.happenedMs };
}

/**
 * Messages of a search, the newest first, a page of them at a time, however long it takes: each page is a search of its own.
 * @param messages `PortalReads.messages` @param max so many at most
 * @returns where it ended, when there may be more
 */
export function readManyMessages(
  messages: (search: MessageSearch) => Promise<MessagePage>,
  search: MessageSearch,
  max: number,
): AsyncGenerator<readonly MessageLine[], MessagePosition | null> {
  return readPages(
    async (messagesMax, after) => {
      const page = await messages({ ...search, messagesMax, ...(after && { after }) });
      return { lines: page.messages, next: page.next };
    },
    { after: search.after, linesMax: max, perQuery: MESSAGES_MAX },
  );
}

const endOf = ({ happenedMs, messageId }: MessageLine) => ({
  next: { happenedMs, messageId },
  searchedSinceMs: happenedMs,
});

/** A message with all that it holds; what may name somebody is null for whoever sees masked ids. */
export interface WholeMessage extends MessageLine {
  readonly sessionId: string;
  readonly locale: string;
  readonly timezone: string;
  readonly screen: string;
  readonly browserLanguage: string;
  readonly named: {
    readonly fromId: string;
    readonly fromType: string;
    readonly toId: string;
    readonly toType: string;
    readonly deviceId: string;
    readonly userAgent: string;
    readonly pageUrl: string;
    readonly pagePath: string;
    readonly pageReferrer: string;
    readonly pageTitle: string;
    /** JSON text as the client sent it; '' when absent. */
    readonly properties: string;
    readonly traits: string;
  } | null;
}

const WHOLE_COLUMNS = [
  ...['session_id', 'locale', 'timezone', 'screen', 'browser_language'],
  ...['from_id', 'from_type', 'to_id', 'to_type', 'device_id', 'user_agent'],
  ...['page_url', 'page_path', 'page_referrer', 'page_title', 'properties', 'traits'],
];

/** What stands under an id; more than one where a client has used it for more than one message. */
export function readMessage(
  query: QueryRows,
  question: { readonly environmentId: string; readonly messageId: string; readonly sight: IdAccess },
  options?: QueryOptions,
): Promise<WholeMessage[]> {
  const { environmentId, messageId, sight } = question;
  return queryView(
    query,
    {
      view: 'portal_message',
      args: { environment: environmentId, message: messageId },
      columns: [...LINE_COLUMNS, ...WHOLE_COLUMNS],
      rowsMax: 20,
      toRow: (values) => toWhole(sight, values),
    },
    options,
  );
}

function toWhole(sight: IdAccess, values: readonly unknown[]): WholeMessage {
  const texts = values.slice(LINE_COLUMNS.length).map(String);
  const [sessionId = '', locale = '', timezone = '', screen = '', browserLanguage = ''] = texts;
  const [fromId = '', fromType = '', toId = '', toType = '', deviceId = '', userAgent = ''] = texts.slice(5);
  const [pageUrl = '', pagePath = '', pageReferrer = '', pageTitle = '', properties = '', traits = ''] =
    texts.slice(11);
  const named = {
    fromId,
    fromType,
    toId,
    toType,
    deviceId,
    userAgent,
    pageUrl,
    pagePath,
    pageReferrer,
    pageTitle,
    properties,
    traits,
  };
  return {
    ...toLine(sight, values),
    sessionId,
    locale,
    timezone,
    screen,
    browserLanguage,
    named: sight === 'raw ids' ? named : null,
  };
}
