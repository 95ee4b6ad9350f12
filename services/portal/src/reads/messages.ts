import { type MessageFilter, toConditions, toSafeProperties, toWhere } from '@playline/events';
import { type IdAccess, maskId, millis, number, type QueryView, type Row, SEARCH_MAX_MS, text } from './query-view.ts';

/** A time range in epoch milliseconds; `untilMs` is exclusive. */
export interface TimeRange {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The time range applies to the event time, which clients set. */
export interface MessageSearch extends TimeRange, MessageFilter {
  readonly environmentId: string;
  readonly idAccess: IdAccess;
  readonly after?: MessagePosition | undefined;
  /** 1 to 2,000; defaults to 100. */
  readonly messagesMax?: number;
}

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
  // The owner's identity key as 32 hexadecimal digits; all zeros if the message has no owner.
  identityId: text('lower(hex(identity_key))'),
  traceId: text('trace_id'),
};

const DETAIL_COLUMNS = {
  ...COLUMNS,
  fromId: text('from_id'),
  fromType: text('from_type'),
  toId: text('to_id'),
  toType: text('to_type'),
  deviceId: text('device_id'),
  sessionId: text('session_id'),
  userAgent: text('user_agent'),
  locale: text('locale'),
  timezone: text('timezone'),
  screen: text('screen'),
  pageUrl: text('page_url'),
  pageTitle: text('page_title'),
  pageReferrer: text('page_referrer'),
  properties: text('properties'),
  traits: text('traits'),
};

/** A message without its long fields. Times are in epoch milliseconds. */
export type MessageLine = Row<typeof COLUMNS>;
export type MessageDetail = Row<typeof DETAIL_COLUMNS>;
export type MessagePosition = Pick<MessageLine, 'happenedMs' | 'messageId'>;

export interface MessagePage {
  /** Newest first. If a message was received several times, contains only the first copy. */
  readonly lines: readonly MessageLine[];
  readonly next: MessagePosition | null;
  /** The search is complete back to this time. */
  readonly searchedSinceMs: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/**
 * How far back each search step reaches. ClickHouse reads whole days, so only the first step is shorter than a day. The
 * first step serves viewers who watch new messages.
 */
const STEPS_MS = [10 * MINUTE_MS, DAY_MS, 7 * DAY_MS, 31 * DAY_MS, 92 * DAY_MS, 366 * DAY_MS];
export const MESSAGES_MAX = 2_000;
/** Most messages have at most one duplicate, so reading twice the page size is usually enough. */
const DUPLICATES_FACTOR = 2;

const ID_NAMES = 'anonymousId userId fromId toId deviceId'.split(' ');
/** Text that can identify a person, and the trace id, which finds its log lines. The analysis views exclude it, too. */
const HIDDEN_NAMES = 'traceId userAgent pageUrl pageTitle pageReferrer traits'.split(' ');

/** Without raw ids, shortens ids and removes text that can identify a person. */
function mask<T extends MessageLine>(line: T, idAccess: IdAccess): T {
  if (idAccess === 'raw ids') return line;
  const values = Object.entries(line).map(([name, value]) => {
    if (HIDDEN_NAMES.includes(name)) return [name, ''];
    return [name, ID_NAMES.includes(name) ? maskId(String(value)) : value];
  });
  return Object.fromEntries(values) as T;
}

/** Removes duplicates except the copy that was received first. Preserves the order. */
function removeDuplicates(lines: readonly MessageLine[]): MessageLine[] {
  const first = new Map<string, MessageLine>();
  for (const line of lines) {
    const key = [line.messageId, line.happenedMs, line.type, line.name, line.identityId].join(' ');
    const earlier = first.get(key);
    if (earlier === undefined || line.receivedMs < earlier.receivedMs) first.set(key, line);
  }
  return [...first.values()];
}

interface Window extends TimeRange {
  readonly before: string;
  readonly rowsMax: number;
}

async function readWindow(queryView: QueryView, search: MessageSearch, window: Window): Promise<MessageLine[]> {
  const { sinceMs, untilMs, before, rowsMax } = window;
  const lines = await queryView({
    view: 'portal_messages',
    args: { environment: search.environmentId, since: sinceMs, until: untilMs, before },
    columns: COLUMNS,
    tail: `${toWhere(toConditions(search))} ORDER BY event_time DESC, message_id DESC`,
    rowsMax,
  });
  return lines.map((line) => mask(line, search.idAccess));
}

/** Returns the number of messages in each step of `stepMs` that has any. Copies count once. */
export function countMessages(
  queryView: QueryView,
  search: MessageSearch & { readonly stepMs: number },
): Promise<MessageCount[]> {
  const { environmentId: environment, sinceMs: since, untilMs: until, stepMs } = search;
  const step = `intDiv(toUnixTimestamp64Milli(event_time) - ${since}, ${stepMs})`;
  return queryView({
    view: 'portal_messages',
    args: { environment, since, until, before: '' },
    columns: { stepMs: number(`${since} + ${stepMs} * ${step}`), messages: number('uniqCombined64(message_id)') },
    tail: `${toWhere(toConditions(search))} GROUP BY 1 ORDER BY 1`,
    rowsMax: 10_000,
  });
}

export interface MessageCount {
  readonly stepMs: number;
  readonly messages: number;
}

/** Searches messages from newest to oldest in growing steps, until the page is full or time runs out. */
export async function searchMessages(queryView: QueryView, search: MessageSearch): Promise<MessagePage> {
  const { sinceMs, after, messagesMax = 100 } = search;
  const max = Math.min(Math.max(1, Math.trunc(messagesMax)), MESSAGES_MAX);
  const end = after?.happenedMs ?? search.untilMs;
  const startedAt = performance.now();
  const found: MessageLine[] = [];
  const rowsMax = DUPLICATES_FACTOR * (max + 1);
  let position: MessagePosition = { happenedMs: end, messageId: after?.messageId ?? '' };
  for (let step = 0; performance.now() - startedAt < SEARCH_MAX_MS; ) {
    const since = Math.max(sinceMs, end - (STEPS_MS[step] ?? Number.POSITIVE_INFINITY));
    const window = { sinceMs: since, untilMs: position.happenedMs, before: position.messageId, rowsMax };
    const read = await readWindow(queryView, search, window);
    for (const each of read) found.push(each);
    const lines = removeDuplicates(found);
    if (lines.length > max) return { lines: lines.slice(0, max), ...endOf(lines[max - 1]!) };
    // If there are many duplicates, the window can contain more rows than were read.
    const isComplete = read.length < rowsMax;
    if (isComplete && since === sinceMs) return { lines, next: null, searchedSinceMs: since };
    position = isComplete ? { happenedMs: since, messageId: '' } : endOf(read.at(-1)!).next;
    if (isComplete) step += 1;
  }
  return { lines: removeDuplicates(found), next: position, searchedSinceMs: position.happenedMs };
}

const endOf = ({ happenedMs, messageId }: MessageLine) => ({
  next: { happenedMs, messageId },
  searchedSinceMs: happenedMs,
});

/**
 * Returns all messages with the id, because clients can reuse a message id. Without raw ids, the properties are limited
 * to `safeProperties`.
 */
export async function readMessage(
  queryView: QueryView,
  search: Pick<MessageSearch, 'environmentId' | 'idAccess'> & {
    readonly messageId: string;
    readonly safeProperties: readonly string[];
  },
): Promise<MessageDetail[]> {
  const args = { environment: search.environmentId, message: search.messageId };
  const properties = search.idAccess === 'raw ids' ? 'properties' : toSafeProperties(search.safeProperties);
  const columns = { ...DETAIL_COLUMNS, properties: text(properties) };
  const details = await queryView({ view: 'portal_message', args, columns, rowsMax: 20 });
  return details.map((detail) => mask(detail, search.idAccess));
}
