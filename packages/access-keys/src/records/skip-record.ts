import { frameRecord, type SchemaSource } from '@playline/contracts';
import type { AuditLog } from '../audit/audit-log.ts';
import {
  type Change,
  createLogDecoder,
  type LoggedBytes,
  type LogPosition,
  type LogRange,
  UnreadableRecord,
} from './record-log.ts';
import type { Author } from './record-store.ts';
import type { RecordView } from './record-view.ts';

export interface AccessLogBytes {
  bounds(): Promise<readonly LogRange[]>;
  read(range: LogRange): AsyncIterable<LoggedBytes>;
  /** Publishes with acks=all. @throws unless the broker confirms the record */
  send(record: { readonly partition: number; readonly key: Buffer; readonly value: Buffer | null }): Promise<unknown>;
}

export interface SkipRecordParts<R extends Change> {
  readonly view: Pick<RecordView<R>, 'kind' | 'readStored' | 'exclusive'>;
  readonly author: Author;
  readonly log: AccessLogBytes;
  readonly schemaOf: SchemaSource;
  /** Id of this record kind's registered schema. */
  readonly schemaId: number;
  readonly audit: AuditLog;
}

/** An unreadable record, and the record that replaces it. */
export interface FoundUnreadable<R> {
  /** The record's Kafka key, which contains the record id. */
  readonly key: Buffer;
  readonly reason: string;
  /** The replacement; null if no readable record with this id is known. */
  readonly kept: R | null;
}

/** Finds an unreadable record and changes nothing. @throws Error if the record is missing, readable or superseded */
export async function findUnreadable<R extends Change>(
  parts: Pick<SkipRecordParts<R>, 'log' | 'schemaOf' | 'view'>,
  position: LogPosition,
): Promise<FoundUnreadable<R>> {
  const { codec } = parts.view.kind;
  const label = `${position.topic}, partition ${position.partition}, offset ${position.offset}`;
  const { target, key, before, later } = await readOfKey(parts.log, position, label);
  if (later !== null)
    throw new Error(`${label}: nothing to skip; offset ${later} has a later record with the same key`);
  const decode = createLogDecoder(codec, { schemaOf: parts.schemaOf, topic: position.topic });
  const logged: R[] = [];
  try {
    for await (const { record } of decode([...before, target])) if (record !== null) logged.push(record);
  } catch (fault) {
    if (!(fault instanceof UnreadableRecord)) throw fault;
    return { key, reason: fault.reason, kept: await findKept(parts.view, key.toString(), logged) };
  }
  throw new Error(`${label}: the record is readable, so nothing was changed`);
}

interface RecordsOfKey {
  readonly target: LoggedBytes;
  readonly key: Buffer;
  readonly before: readonly LoggedBytes[];
  /** Offset of the next record with the same key, or null. */
  readonly later: number | null;
}

async function readOfKey(log: AccessLogBytes, position: LogPosition, label: string): Promise<RecordsOfKey> {
  const range = (await log.bounds()).find(({ partition }) => partition === position.partition);
  const found: LoggedBytes[] = [];
  if (range !== undefined && position.offset >= range.start && position.offset < range.end)
    for await (const each of log.read({ ...range, start: position.offset, end: position.offset + 1 })) found.push(each);
  const target = found.find(({ offset }) => offset === position.offset);
  if (range === undefined || target === undefined)
    throw new Error(`${label}: this offset has no record, or compaction has removed the record`);
  const { key } = target;
  if (key === null) throw new Error(`${label}: the record has no key and is therefore not an access record`);
  const [before, after]: [LoggedBytes[], LoggedBytes[]] = [[], []];
  for await (const each of log.read(range)) {
    if (each.key === null || !each.key.equals(key) || each.offset === position.offset) continue;
    (each.offset < position.offset ? before : after).push(each);
  }
  return { target, key, before, later: after[0]?.offset ?? null };
}

/** Returns the highest revision among the view's record and the log records before the unreadable record. */
async function findKept<R extends Change>(
  { kind, readStored }: Pick<RecordView<R>, 'kind' | 'readStored'>,
  id: string,
  logged: readonly R[],
): Promise<R | null> {
  const inView = (await readStored()).map(({ record }) => record).filter((record) => kind.idOf(record) === id);
  return [...logged, ...inView].toSorted((a, b) => a.revision - b.revision).at(-1) ?? null;
}

/**
 * Skips one unreadable record after writing an audit entry. Appends the replacement to the same partition under the
 * same key, so that compaction removes the unreadable record.
 * @throws see `findUnreadable`; after any other error, repeat the call
 */
export function skipRecord<R extends Change>(
  parts: SkipRecordParts<R>,
  position: LogPosition,
): Promise<FoundUnreadable<R>> {
  const { log, view, schemaId, audit, author } = parts;
  return view.exclusive(async () => {
    const found = await findUnreadable(parts, position);
    const { topic, partition, offset } = position;
    const { kept } = found;
    await audit.append({
      actor: author.changedBy,
      action: 'record.pass-over',
      object: `${topic}/${partition}/${offset}`,
      projectId: '',
      environmentId: '',
      address: '',
      requestId: author.requestId,
      detail: { reason: found.reason, kept: kept === null ? 'nothing' : 'the previous record' },
    });
    const next = kept && { ...kept, ...author, revision: kept.revision + 1, changedAt: Date.now() };
    const value = next && frameRecord(schemaId, view.kind.codec.encode(next));
    await log.send({ partition, key: found.key, value });
    return found;
  });
}
