import {
  deadLetterTopicOf,
  type LogReader,
  SETTLED_OFFSET,
  type StreamRecord,
  type TransactionRecord,
} from '@playline/stream';

/** The place of a record. */
export interface RecordPosition {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** A record that could not be processed, in its dead-letter topic. */
export interface DeadLetter {
  readonly position: RecordPosition;
  readonly original: RecordPosition;
  /** When it became a dead letter, epoch milliseconds. */
  readonly deadAtMs: number;
  readonly reason: string;
  /** The step of the consumer that failed. */
  readonly step: string;
  readonly record: StreamRecord;
}

/** The decision about a letter. A letter without one is open. */
export interface Outcome {
  readonly kind: 'replayed' | 'dropped';
  readonly atMs: number;
  /** Why, as written by the operator; may be empty. */
  readonly note: string;
}

/** Headers of a mark, which records the fate of a letter in the same partition. */
const MARK = { offset: SETTLED_OFFSET, fate: 'settled-as', at: 'settled-at', note: 'settled-note' } as const;
/** Name of the header of a replayed record: the place of its letter. */
export const REPLAYED_FROM = 'replayed-from';

export function toPositionText({ topic, partition, offset }: RecordPosition): string {
  return `${topic}/${partition}/${offset}`;
}

/** Parses `topic/partition/offset`. @returns null for any other text */
export function parsePosition(text: string): RecordPosition | null {
  const found = /^([^/]+)\/(\d{1,5})\/(\d{1,15})$/.exec(text);
  return found === null ? null : { topic: found[1]!, partition: Number(found[2]), offset: Number(found[3]) };
}

const textOf = (record: StreamRecord, name: string): string => String(record.headers[name] ?? '');

function toNumber(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

/** Parses a record of a dead-letter topic; null for a mark, and for records of other software. */
export function parseDeadLetter(record: StreamRecord): DeadLetter | null {
  const original = {
    topic: textOf(record, 'original-topic'),
    partition: toNumber(textOf(record, 'original-partition')),
    offset: toNumber(textOf(record, 'original-offset')),
  };
  const { topic, partition, offset } = record;
  // Whatever a header says, a letter may only return to the topic of this dead-letter topic.
  if (deadLetterTopicOf(original.topic) !== topic || Number.isNaN(original.partition + original.offset)) return null;
  return {
    position: { topic, partition, offset },
    original,
    deadAtMs: record.timestampMs,
    reason: textOf(record, 'reason'),
    step: textOf(record, 'step'),
    record,
  };
}

/** The mark that settles a letter. It is behind the letter in the same partition, so retention removes it later. */
export function toOutcomeRecord({ position: place }: Pick<DeadLetter, 'position'>, fate: Outcome): TransactionRecord {
  return {
    topic: place.topic,
    partition: place.partition,
    key: null,
    value: Buffer.alloc(0),
    headers: {
      [MARK.offset]: String(place.offset),
      [MARK.fate]: fate.kind,
      [MARK.at]: String(fate.atMs),
      [MARK.note]: fate.note,
    },
  };
}

/** The fate in a mark, and the offset of its letter; null for any other record. */
export function parseOutcome(record: StreamRecord): { offset: number; fate: Outcome } | null {
  const [offset, kind] = [toNumber(textOf(record, MARK.offset)), textOf(record, MARK.fate)];
  if (Number.isNaN(offset) || (kind !== 'replayed' && kind !== 'dropped')) return null;
  return { offset, fate: { kind, atMs: toNumber(textOf(record, MARK.at)), note: textOf(record, MARK.note) } };
}

/** Headers of the message itself: its trace (W3C trace context). */
const OWN_HEADERS = ['traceparent', 'tracestate'];

/** The original record for its original topic: to the partition of its key, or without a key to its original one. */
export function toReplayRecord({ position: place, original, record }: DeadLetter): TransactionRecord {
  const headers: Record<string, string | Buffer> = { [REPLAYED_FROM]: toPositionText(place) };
  for (const name of OWN_HEADERS) {
    const value = record.headers[name];
    if (value !== undefined) headers[name] = value;
  }
  const { topic, partition } = original;
  const { key } = record;
  return { topic, ...(key === null ? { partition } : {}), key, value: record.value ?? Buffer.alloc(0), headers };
}

/** Every letter of a dead-letter topic, partition by partition, up to the current ends. */
export async function* readDeadLetters(log: LogReader, topic: string): AsyncGenerator<DeadLetter> {
  for (const { partition, start, end } of await log.bounds(topic))
    for await (const record of log.read({ topic, partition, start, end })) {
      const letter = parseDeadLetter(record);
      if (letter !== null) yield letter;
    }
}

/** The fates of the letters of a dead-letter topic, by place. */
export async function readOutcomes(log: LogReader, topic: string): Promise<Map<string, Outcome>> {
  const fates = new Map<string, Outcome>();
  for (const { partition, start, end } of await log.bounds(topic))
    for await (const record of log.read({ topic, partition, start, end })) {
      const found = parseOutcome(record);
      if (found !== null) fates.set(toPositionText({ topic, partition, offset: found.offset }), found.fate);
    }
  return fates;
}

/** Which letters to select; absent members match all. */
export interface Selection {
  readonly positions?: readonly RecordPosition[];
  /** The original topic of the letters, its full name on the broker. */
  readonly topic?: string;
  readonly reason?: string;
  readonly step?: string;
}

/** Creates the predicate. A reason matches by its beginning, since its end is often the input. */
export function createIsSelected(selection: Selection): (letter: DeadLetter) => boolean {
  const places = selection.positions === undefined ? null : new Set(selection.positions.map(toPositionText));
  const { topic, reason, step } = selection;
  return (letter) =>
    (places === null || places.has(toPositionText(letter.position))) &&
    (topic === undefined || letter.original.topic === topic) &&
    (reason === undefined || letter.reason.startsWith(reason)) &&
    (step === undefined || letter.step === step);
}
