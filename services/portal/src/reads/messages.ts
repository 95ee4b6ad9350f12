import { type QueryOptions, type QueryRows, quoteText } from '@playline/stores';
import { type IdAccess, idFor, millis, queryView, readPages, SEARCH_MAX_MS, text } from './query-view.ts';

/** Epoch milliseconds, without the end. */
export interface Span {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** An empty filter matches everything. The span is of when messages happened, by the clocks of clients. */
export interface MessageSearch extends Span {
  readonly environmentId: string;
  readonly idAccess: IdAccess;
  readonly type?: string;
  readonly name?: string;
  readonly surface?: string;
  /** Only test traffic, or none. */
  readonly test?: boolean;
  /** Identity keys: messages that name one of these in any field. */
  readonly identityIds?: readonly string[];
  readonly after?: MessagePosition | undefined;
  /** 1 to 2,000; 100 when absent. */
  readonly messagesMax?: number;
}

/** Position of a message in an environment. */
export interface MessagePosition {
  readonly happenedMs: number;
  readonly messageId: string;
}

/** A message without its long fields; times in epoch milliseconds. */
export interface MessageLine extends MessagePosition {
  readonly receivedMs: number;
  readonly type: string;
  readonly name: string;
  readonly surface: string;
  readonly library: string;
  readonly libraryVersion: string;
  readonly isTest: boolean;
  readonly consentLevel: string;
  readonly anonymousId: string;
  readonly userId: string;
  readonly identityType: string;
  /** Keyed hash of the owner: 32 hexadecimal digits, zeros without one. */
  readonly identityId: string;
  readonly traceId: string;
}

export interface MessagePage {
  /** Newest first; of copies of a message the one received first. */
  readonly messages: readonly MessageLine[];
  /** Null when the span has no more. */
  readonly next: MessagePosition | null;
  /** The search read nothing older than this. */
  readonly searchedSinceMs: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/**
 * How far back each step of a search reaches. ClickHouse reads whole days of an environment, so only the first step,
 * for people who follow what arrives, is below a day.
 */
const STEPS_MS = [10 * MINUTE_MS, DAY_MS, 7 * DAY_MS, 31 * DAY_MS, 92 * DAY_MS, 366 * DAY_MS];
const MESSAGES_MAX = 2_000;
/** A message rarely has more than one copy, and copies are adjacent: twice the page holds enough rows. */
const COPIES_FACTOR = 2;

const COLUMNS = {
  messageId: text('toString(message_id)'),
  type: text('type'),
  name: text('event_name'),
  happenedMs: millis('event_time'),
  receivedMs: millis('received_at'),
  surface: text('surface'),
  library: text('library'),
  libraryVersion: text('library_version'),
  isTest: { sql: 'test', read: (value: unknown) => value === true },
  consentLevel: text('consent_level'),
  anonymousId: text('anonymous_id'),
  userId: text('user_id'),
  identityType: text('identity_type'),
  identityId: text('identity_id'),
  traceId: text('trace_id'),
};

const maskLine = (line: MessageLine, idAccess: IdAccess): MessageLine => ({
  ...line,
  anonymousId: idFor(idAccess, line.anonymousId),
  userId: idFor(idAccess, line.userId),
});

/** Keeps of each group of copies the one received first; the order stays. */
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
  /** '' when the window excludes its end. */
  readonly before: string;
  readonly rowsMax: number;
}

async function readWindow(query: QueryRows, search: MessageSearch, window: Window, options: QueryOptions) {
  const { environmentId, type = '', name = '', surface = '', test, identityIds, idAccess } = search;
  const { sinceMs, untilMs, before, rowsMax } = window;
  const args = { environment: environmentId, since: sinceMs, until: untilMs, before, name };
  const filters = { type, surface, test: test === undefined ? '' : String(test) };
  const order = 'ORDER BY event_time DESC, message_id DESC';
  const source =
    identityIds === undefined
      ? { view: 'portal_messages', args: { ...args, ...filters, identity: '' }, tail: order }
      : {
          view: 'portal_messages_of_people',
          args: { ...args, identities: identityIds },
          tail: `${toConditions(filters)}${order}`,
        };
  const lines = await queryView<MessageLine>(query, { ...source, columns: COLUMNS, rowsMax }, options);
  return lines.map((line) => maskLine(line, idAccess));
}

/** The view of people has no such arguments, because people have few messages. */
function toConditions({ type, surface, test }: { type: string; surface: string; test: string }): string {
  const conditions = Object.entries({ type, surface })
    .filter(([, value]) => value !== '')
    .map(([column, value]) => `${column} = ${quoteText(value)}`);
  if (test !== '') conditions.push(test === 'true' ? 'test' : 'NOT test');
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `;
}

/** Searches messages, newest first, in growing steps, until the page is full or the time is over. */
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
  let position: MessagePosition = { happenedMs: end, messageId: after?.messageId ?? '' };
  for (let step = 0; performance.now() - begin < SEARCH_MAX_MS; ) {
    const since = Math.max(sinceMs, end - (STEPS_MS[step] ?? Number.POSITIVE_INFINITY));
    const window = { sinceMs: since, untilMs: position.happenedMs, before: position.messageId, rowsMax };
    const lines = await readWindow(query, search, window, options);
    for (const each of lines) found.push(each);
    const messages = foldCopies(found);
    if (messages.length > max) return { messages: messages.slice(0, max), ...endOf(messages[max - 1]!) };
    // Not whole: there are so many copies that the window has more rows than were read.
    const isWhole = lines.length < rowsMax;
    if (isWhole && since === sinceMs) return { messages, next: null, searchedSinceMs: since };
    position = isWhole ? { happenedMs: since, messageId: '' } : endOf(lines.at(-1)!).next;
    if (isWhole) step += 1;
  }
  return { messages: foldCopies(found), next: position, searchedSinceMs: position.happenedMs };
}

const endOf = ({ happenedMs, messageId }: MessageLine) => ({
  next: { happenedMs, messageId },
  searchedSinceMs: happenedMs,
});

/** Messages of a search, newest first, one page at a time. @returns where the result was cut off */
export function readManyMessages(
  messages: (search: MessageSearch) => Promise<MessagePage>,
  search: MessageSearch,
  max: number,
): AsyncGenerator<readonly MessageLine[], MessagePosition | null> {
  return readPages(
    async (messagesMax, after) => {
      const page = await messages({ ...search, messagesMax, after });
      return { lines: page.messages, next: page.next };
    },
    { after: search.after, linesMax: max, perQuery: MESSAGES_MAX },
  );
}

/** Messages with an id, ids of people masked. More than one when a client reused the id. */
export async function readMessage(
  query: QueryRows,
  { environmentId, messageId }: { readonly environmentId: string; readonly messageId: string },
  options?: QueryOptions,
): Promise<MessageLine[]> {
  const args = { environment: environmentId, message: messageId };
  const viewQuery = { view: 'portal_message', args, columns: COLUMNS, rowsMax: 20 };
  const lines = await queryView<MessageLine>(query, viewQuery, options);
  return lines.map((line) => maskLine(line, 'masked ids'));
}
