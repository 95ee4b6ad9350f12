import { frameRecord, type RecordCodec, type SchemaSource } from '@playline/contracts';
import type { AuditLog } from '../audit/audit-log.ts';
import { createLogDecoder, type LoggedBytes, type UnreadablePlace, UnreadableRecord } from './log-bytes.ts';
import type { Change, LogRange, RecordKind } from './record-log.ts';
import type { Author } from './record-store.ts';
import type { RecordView } from './record-view.ts';

/** A topic of access as bytes, for whoever settles a record that cannot be read. */
export interface AccessLogBytes {
  bounds(): Promise<readonly LogRange[]>;
  read(range: LogRange): AsyncIterable<LoggedBytes>;
  /** Publishes one record with acks=all. @throws when nobody knows whether it stands */
  send(record: { readonly partition: number; readonly key: Buffer; readonly value: Buffer | null }): Promise<unknown>;
}

/** What is known of the records of a topic of access, and how they are changed. */
export interface RecordSettling<R> {
  readonly codec: RecordCodec<R>;
  /** What stands without a record, by what the log has of its id in front of it and by the view; null: nothing. */
  standingOf(id: string, logged: readonly R[]): Promise<R | null>;
  /** What is to be on the log again, as a change of the author. */
  stamp(standing: R): R;
  /** Takes a turn with changes. */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
  readonly author: Author;
}

/** What a topic of access is settled by. */
export interface PassOverParts<R> extends RecordSettling<R> {
  readonly log: AccessLogBytes;
  readonly schemaOf: SchemaSource;
  /** Id under which the schema of `codec` is registered. */
  readonly schemaId: number;
  readonly audit: AuditLog;
}

/** A record that cannot be read, and what stands once it is passed over. */
export interface FoundUnreadable<R> {
  /** Of the record on the log: the id of what it is about. */
  readonly key: Buffer;
  readonly reason: string;
  /** Null: nothing is known of it, so there is nothing of that id from then on. */
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
 * Passes over exactly one record that cannot be read: what stands without it is put behind it, under its key and into its
 * partition, so every process goes on, and compaction takes it away. Nothing else of the log is passed over.
 * The audit has an entry of it first.
 * @throws as `findUnreadable`; else when it is not certain that the entry or the record stands: ask again
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

/** How records of a kind are settled: of what the log had and the view holds the greatest revision stands. */
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
