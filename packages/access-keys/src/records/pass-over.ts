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

/** A topic of access as bytes, for the command that skips a record which cannot be read. */
export interface AccessLogBytes {
  bounds(): Promise<readonly LogRange[]>;
  read(range: LogRange): AsyncIterable<LoggedBytes>;
  /**
   * Publishes one record with acks=all.
   * @throws when it is not certain that the record is in the log
   */
  send(record: { readonly partition: number; readonly key: Buffer; readonly value: Buffer | null }): Promise<unknown>;
}

/** What is needed to skip a record of a topic of access. */
export interface PassOverParts<R extends Change> {
  readonly view: Pick<RecordView<R>, 'kind' | 'held' | 'exclusive'>;
  readonly author: Author;
  readonly log: AccessLogBytes;
  readonly schemaOf: SchemaSource;
  /** Id under which the schema of the kind is registered. */
  readonly schemaId: number;
  readonly audit: AuditLog;
}

/** A record that cannot be read, and what counts once it is skipped. */
export interface FoundUnreadable<R> {
  /** Of the record on the log: the id of what it is about. */
  readonly key: Buffer;
  readonly reason: string;
  /** The record that applies without it. Null: nothing else is known under this id, so there will be no record of it. */
  readonly kept: R | null;
}

/**
 * Finds a record that cannot be read. Changes nothing.
 * @throws Error, with a message for the operator, when there is no such record, it can be read, or it is skipped already
 */
export async function findUnreadable<R extends Change>(
  parts: Pick<PassOverParts<R>, 'log' | 'schemaOf' | 'view'>,
  place: LogPosition,
): Promise<FoundUnreadable<R>> {
  const { codec } = parts.view.kind;
  const words = `${place.topic}, partition ${place.partition}, offset ${place.offset}`;
  const { target, key, before, later } = await readOfKey(parts.log, place, words);
  if (later !== null)
    throw new Error(`${words}: a later record of its key is at offset ${later}, so it is passed over already`);
  const decode = createLogDecoder(codec, { schemaOf: parts.schemaOf, topic: place.topic });
  const logged: R[] = [];
  try {
    for await (const { record } of decode([...before, target])) if (record !== null) logged.push(record);
  } catch (fault) {
    if (!(fault instanceof UnreadableRecord)) throw fault;
    return { key, reason: fault.reason, kept: await findKept(parts.view, key.toString(), logged) };
  }
  throw new Error(`${words}: the record can be read, so nothing was done`);
}

interface OfKey {
  readonly target: LoggedBytes;
  readonly key: Buffer;
  readonly before: readonly LoggedBytes[];
  /** Offset of the next record of the key; null: the target is the last one. */
  readonly later: number | null;
}

async function readOfKey(log: AccessLogBytes, place: LogPosition, words: string): Promise<OfKey> {
  const range = (await log.bounds()).find(({ partition }) => partition === place.partition);
  const around: LoggedBytes[] = [];
  if (range !== undefined && place.offset >= range.start && place.offset < range.end)
    for await (const each of log.read({ ...range, start: place.offset, end: place.offset + 1 })) around.push(each);
  const target = around.find(({ offset }) => offset === place.offset);
  if (range === undefined || target === undefined)
    throw new Error(`${words}: there is no record at this offset, or compaction has removed it`);
  const { key } = target;
  if (key === null) throw new Error(`${words}: the record has no key, so it is no record of access`);
  const [before, behind]: [LoggedBytes[], LoggedBytes[]] = [[], []];
  for await (const each of log.read(range)) {
    if (each.key === null || !each.key.equals(key) || each.offset === place.offset) continue;
    (each.offset < place.offset ? before : behind).push(each);
  }
  return { target, key, before, later: behind[0]?.offset ?? null };
}

/** Of what the log has before the unreadable record and of what the view holds, the highest revision counts. */
async function findKept<R extends Change>(
  { kind, held }: Pick<RecordView<R>, 'kind' | 'held'>,
  id: string,
  logged: readonly R[],
): Promise<R | null> {
  const inView = (await held()).map(({ record }) => record).filter((record) => kind.idOf(record) === id);
  return [...logged, ...inView].toSorted((a, b) => a.revision - b.revision).at(-1) ?? null;
}

/**
 * Skips exactly one record that cannot be read. What counts without it is written after it, under its key and into its
 * partition. So every process can continue, and compaction removes the unreadable record. Nothing else of the log is
 * skipped. The audit gets an entry first.
 * @throws as `findUnreadable`; else when it is not certain that the entry or the record is in the log: then repeat the
 * call
 */
export function passOverRecord<R extends Change>(
  parts: PassOverParts<R>,
  place: LogPosition,
): Promise<FoundUnreadable<R>> {
  const { log, view, schemaId, audit, author } = parts;
  return view.exclusive(async () => {
    const found = await findUnreadable(parts, place);
    const { topic, partition, offset } = place;
    const { kept } = found;
    await audit.append({
      actor: author.changedBy,
      action: 'record.pass-over',
      object: `${topic}/${partition}/${offset}`,
      projectId: '',
      environmentId: '',
      address: '',
      requestId: author.requestId,
      detail: { reason: found.reason, kept: kept === null ? 'nothing' : 'the record before it' },
    });
    const next = kept && { ...kept, ...author, revision: kept.revision + 1, changedAt: Date.now() };
    const value = next && frameRecord(schemaId, view.kind.codec.encode(next));
    await log.send({ partition, key: found.key, value });
    return found;
  });
}
