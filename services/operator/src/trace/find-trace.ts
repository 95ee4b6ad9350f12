/** Finds what the tables, the log and the identity graph contain about a request or a message. */
import { TOPICS } from '@playline/contracts';
import { MissingEpochFault, type PersonSource, readPerson } from '@playline/people';
import { type QueryRows, readRows } from '@playline/stores';
import { deadLetterTopicOf, type LogReader } from '@playline/stream';
import { readDeadLetters, toPositionText } from '../dead-letters/dead-letters.ts';

/** A trace id, 32 hexadecimal digits, or a message id, a UUID. */
export interface TraceSubject {
  readonly kind: 'trace' | 'message';
  readonly id: string;
}

const TRACE_ID = /^[0-9a-f]{32}$/;
const MESSAGE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns null if the text is neither a trace id nor a message id. */
export function parseTraceSubject(text: string): TraceSubject | null {
  const id = text.toLowerCase();
  if (TRACE_ID.test(id)) return { kind: 'trace', id };
  return MESSAGE_ID.test(id) ? { kind: 'message', id } : null;
}

export interface TraceSources {
  readonly query: QueryRows;
  readonly log: LogReader;
  /** Null if no Redis address is configured. */
  readonly people: PersonSource | null;
  readonly topicPrefix: string;
  readonly group: string;
  /** Limits the search for a trace id, which no index contains, to messages received in the last days. */
  readonly days: number;
}

export type FoundTrace = Awaited<ReturnType<typeof findTrace>>;

export async function findTrace(sources: TraceSources, subject: TraceSubject) {
  const messages = await findMessages(sources, subject);
  const traceIds = subject.kind === 'trace' ? [subject.id] : [...new Set(messages.map(({ traceId }) => traceId))];
  return {
    ...subject,
    messages,
    links: await findLinks(sources, subject, messages),
    rejections: await findRejections(sources, traceIds),
    // A message that is not stored yet is in the part of the log that the writer has not read, or a dead letter.
    unstored: messages.length > 0 ? [] : await findUnstored(sources, subject),
    requests: await findRequests(sources, traceIds),
  };
}

type FoundMessage = Awaited<ReturnType<typeof findMessages>>[number];

const MESSAGES_MAX = 200;
const NO_KEY = '0'.repeat(32);

async function findMessages(sources: TraceSources, { kind, id }: TraceSubject) {
  const { query, log, topicPrefix, days } = sources;
  const condition =
    kind === 'message'
      ? `message_id = toUUID('${id}')`
      : `trace_id = '${id}' AND received_at >= now64(3) - INTERVAL ${days} DAY`;
  const rows = await readRows(
    query(`SELECT environment_id, toString(message_id), type, event_name, trace_id, lower(hex(identity_key)),
        toUnixTimestamp64Milli(received_at), kafka_partition, toString(kafka_offset)
      FROM events WHERE ${condition} ORDER BY received_at, kafka_partition, kafka_offset LIMIT ${MESSAGES_MAX}`),
  );
  const topic = topicPrefix + TOPICS.messages.name;
  const bounds = rows.length > 0 ? await log.bounds(topic) : [];
  return Promise.all(
    rows.map(async (row) => {
      const [environmentId = '', messageId = '', type = '', name = '', traceId = '', identityKey = ''] =
        row.map(String);
      const [receivedAt = 0, partition = 0, offset = 0] = row.slice(-3).map(Number);
      const range = bounds.find((each) => each.partition === partition);
      return {
        environmentId,
        messageId,
        type,
        name,
        traceId,
        receivedAt,
        position: toPositionText({ topic, partition, offset }),
        isInLog: range !== undefined && offset >= range.start && offset < range.end,
        identityKey: identityKey === NO_KEY ? null : identityKey,
        person: identityKey === NO_KEY ? null : await findPerson(sources, { environmentId, identityKey }),
      };
    }),
  );
}

/** Returns null if no Redis is configured, or if its graph is incomplete. */
async function findPerson(
  { people }: TraceSources,
  { environmentId, identityKey }: { readonly environmentId: string; readonly identityKey: string },
) {
  if (people === null) return null;
  try {
    const key = Buffer.from(identityKey, 'hex');
    const { personKey, isLinked } = await readPerson(people, { environmentId, key });
    return { personKey: personKey.toString('hex'), isLinked };
  } catch (fault) {
    if (fault instanceof MissingEpochFault) return null;
    throw fault;
  }
}

async function findLinks({ query }: TraceSources, { kind, id }: TraceSubject, messages: readonly FoundMessage[]) {
  const environments = [...new Set(messages.map(({ environmentId }) => `'${environmentId}'`))];
  if (environments.length === 0) return [];
  const condition = kind === 'message' ? `message_id = toUUID('${id}')` : `trace_id = '${id}'`;
  const rows = await readRows(
    query(`SELECT toString(message_id), link, outcome, reason, lower(hex(person_key)) FROM identity_links FINAL
      WHERE environment_id IN (${environments}) AND ${condition} ORDER BY link_offset, step LIMIT ${MESSAGES_MAX}`),
  );
  return rows.map((row) => {
    const [messageId = '', link = '', outcome = '', reason = '', personKey = ''] = row.map(String);
    return { messageId, link, outcome, reason, personKey };
  });
}

async function findRejections({ query, topicPrefix }: TraceSources, traceIds: readonly string[]) {
  if (traceIds.length === 0) return [];
  const rows = await readRows(
    query(`SELECT environment_id, code, field, library, library_version, trace_id, toUnixTimestamp64Milli(received_at),
        kafka_partition, toString(kafka_offset)
      FROM message_rejections FINAL WHERE trace_id IN (${toList(traceIds)})
      ORDER BY received_at, kafka_partition, kafka_offset LIMIT ${MESSAGES_MAX}`),
  );
  return rows.map((row) => {
    const [environmentId = '', code = '', field = '', library = '', libraryVersion = '', traceId = ''] =
      row.map(String);
    const [receivedAt = 0, partition = 0, offset = 0] = row.slice(-3).map(Number);
    const position = toPositionText({ topic: topicPrefix + TOPICS.rejections.name, partition, offset });
    return { environmentId, code, field, library, libraryVersion, traceId, receivedAt, position };
  });
}

/** Consent changes, erasures and mints that requests with these trace ids caused. */
async function findRequests({ query }: TraceSources, traceIds: readonly string[]) {
  if (traceIds.length === 0) return [];
  const condition = `trace_id IN (${toList(traceIds)})`;
  const rows = await readRows(
    query(`SELECT 'consent' AS kind, environment_id, status AS detail, toUnixTimestamp64Milli(received_at) AS at
        FROM consent_log FINAL WHERE ${condition}
      UNION ALL
      SELECT 'erasure', environment_id, toString(erasure_id), toUnixTimestamp64Milli(requested_at)
        FROM erasure_requests FINAL WHERE ${condition}
      UNION ALL
      SELECT 'mint', environment_id, concat(status, ', ', stage, ', reference id ', reference_id),
        toUnixTimestamp64Milli(requested_at)
        FROM mint_requests FINAL WHERE ${condition}`),
  );
  return rows.map(([kind, environmentId, detail, at]) => {
    return { kind: String(kind), environmentId: String(environmentId), detail: String(detail), receivedAt: Number(at) };
  });
}

const toList = (traceIds: readonly string[]) => traceIds.map((id) => `'${id}'`).join();

/** Limits the search to a minute of records at most. */
const UNREAD_MAX = 200_000;

async function findUnstored({ log, topicPrefix, group }: TraceSources, { kind, id }: TraceSubject) {
  const topic = topicPrefix + TOPICS.messages.name;
  // Records contain both ids, in this form.
  const bytes = kind === 'trace' ? Buffer.from(id) : Buffer.from(id.replaceAll('-', ''), 'hex');
  const found: { readonly position: string; readonly reason: string }[] = [];
  for await (const { position, record, reason } of readDeadLetters(log, deadLetterTopicOf(topic)))
    if (record.value?.includes(bytes))
      found.push({ position: toPositionText(position), reason: `dead letter: ${reason}` });
  const committed = await log.committed(group, topic);
  for (const { partition, start, end } of await log.bounds(topic)) {
    const from = Math.max(start, committed.get(partition) ?? start);
    for await (const record of log.read({ topic, partition, start: from, end: Math.min(end, from + UNREAD_MAX) }))
      if (record.value?.includes(bytes))
        found.push({ position: toPositionText(record), reason: 'not stored yet: the event writer has not read it' });
  }
  return found;
}
