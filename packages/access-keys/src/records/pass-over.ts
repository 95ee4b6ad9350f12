import { frameRecord, type RecordCodec, type SchemaSource } from '@playline/contracts';
import type { AuditLog } from '../audit/audit-log.ts';
import { createLogDecoder, type LoggedBytes, type UnreadablePlace, UnreadableRecord } from './log-bytes.ts';
import type { Change, LogRange, RecordKind } from './record-log.ts';
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

/** How records of a topic of access are restored after one of them was skipped. */
export interface RecordSettling<R> {
  readonly codec: RecordCodec<R>;
  /**
   * The record of an id without the unreadable one: from what the log has before it and from the view; null when there
   * is none.
   */
  standingOf(id: string, logged: readonly R[]): Promise<R | null>;
  /** That record as a new change, made by the author of the command. */
  stamp(standing: R): R;
  /** Takes a turn with changes. */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
  readonly author: Author;
}

/** What is needed to skip a record of a topic of access. */
export interface PassOverParts<R> extends RecordSettling<R> {
  readonly log: AccessLogBytes;
  readonly schemaOf: SchemaSource;
  /** Id under which the schema of `codec` is registered. */
  readonly schemaId: number;
  readonly audit: AuditLog;
}

/** A record that cannot be read, and what counts once it is skipped. */
export interface FoundUnreadable<R> {
  /** Of the record on the log: the id of what it is about. */
  readonly key: Buffer;
  readonly reason: string;
  /** Null: nothing else is known under this id, so afterwards there is no record of it. */
  readonly standing: R | null;
}

/**
 * Looks at a record that cannot be read. Changes nothing.
 * @throws Error, with words for the operator, when there is no such record, it can be read, or it is passed over already
 */
export async function findUnreadable<R>(
  parts: Pick<PassOverParts<R>, 'log' | 'codec' | 'schemaOf' | 'standingOf'>,
  place: UnreadablePlace,
): Promise<FoundUnreadable<R>> {
  const words = `${place.topic}, partition ${place.partition}, offset ${place.offset}`;
  const { target, key, before, later } = await readOfKey(parts.log, place, words);
  if (later !== null)
    throw new Error(`${words}: a later record of its key stands at ${later}, so it is passed over already`);
  const decode = createLogDecoder(parts.codec, { schemaOf: parts.schemaOf, topic: place.topic });
  const logged: R[] = [];
  try {
    for await (const { record } of decode([...before, target])) if (record !== null) logged.push(record);
  } catch (fault) {
    if (!(fault instanceof UnreadableRecord)) throw fault;
    return { key, reason: fault.reason, standing: await parts.standingOf(key.toString(), logged) };
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

async function readOfKey(log: AccessLogBytes, place: UnreadablePlace, words: string): Promise<OfKey> {
  const range = (await log.bounds()).find(({ partition }) => partition === place.partition);
  const around: LoggedBytes[] = [];
  if (range !== undefined && place.offset >= range.start && place.offset < range.end)
    for await (const each of log.read({ ...range, start: place.offset, end: place.offset + 1 })) around.push(each);
  const target = around.find(({ offset }) => offset === place.offset);
  if (range === undefined || target === undefined) throw new Error(`${words}: there is no record, or not any more`);
  const { key } = target;
  if (key === null) throw new Error(`${words}: the record has no key, so it is no record of access`);
  const [before, behind]: [LoggedBytes[], LoggedBytes[]] = [[], []];
  for await (const each of log.read(range)) {
    if (each.key === null || !each.key.equals(key) || each.offset === place.offset) continue;
    (each.offset < place.offset ? before : behind).push(each);
  }
  return { target, key, before, later: behind[0]?.offset ?? null };
}

/**
 * Skips exactly one record that cannot be read. What counts without it is written after it, under its key and into its
 * partition. So every process can go on, and compaction removes the unreadable record. Nothing else of the log is
 * skipped. The audit gets an entry first.
 * @throws as `findUnreadable`; else when it is not certain that the entry or the record is in the log: then repeat the
 * call
 */
export function passOverRecord<R>(parts: PassOverParts<R>, place: UnreadablePlace): Promise<FoundUnreadable<R>> {
  const { log, codec, schemaId, audit, author } = parts;
  return parts.exclusive(async () => {
    const found = await findUnreadable(parts, place);
    const { topic, partition, offset } = place;
    await audit.append({
      ...{ actor: author.changedBy, action: 'record.pass-over', object: `${topic}/${partition}/${offset}` },
      ...{ projectId: '', environmentId: '', address: '', requestId: author.requestId },
      detail: { reason: found.reason, kept: found.standing === null ? 'nothing' : 'what stood before' },
    });
    const value = found.standing === null ? null : frameRecord(schemaId, codec.encode(parts.stamp(found.standing)));
    await log.send({ partition, key: found.key, value });
    return found;
  });
}

/** How to restore records of a kind: of what the log had and what the view holds, the highest revision counts. */
export function settlingOf<R extends Change>(
  kind: RecordKind<R>,
  { view, author }: { readonly view: Pick<RecordView<R>, 'held' | 'exclusive'>; readonly author: Author },
): RecordSettling<R> {
  return {
    ...{ codec: kind.codec, exclusive: (work) => view.exclusive(work), author },
    standingOf: async (id, logged) => {
      const held = (await view.held()).map(({ record }) => record).filter((record) => kind.idOf(record) === id);
      return [...logged, ...held].toSorted((a, b) => a.revision - b.revision).at(-1) ?? null;
    },
    stamp: (standing) => ({ ...standing, ...author, revision: standing.revision + 1, changedAt: Date.now() }),
  };
}
