import {
  accessKeyCodec,
  activityCodec,
  consentCodec,
  createRecordReader,
  erasureRequestCodec,
  identityDecisionCodec,
  identityLinkCodec,
  messageRecordCodec,
  projectCodec,
  rateLimitKeyCodec,
  rejectionCodec,
  type SchemaSource,
  TOPICS,
  tokenCodec,
} from '@playline/contracts';
import {
  deadLetterTopicOf,
  type LogReader,
  NOTICE_STEP,
  SETTLED_OFFSET,
  type StreamRecord,
  type TransactionRecord,
  traceHeadersOf,
} from '@playline/stream';

export interface RecordPosition {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

export interface DeadLetter {
  readonly position: RecordPosition;
  readonly original: RecordPosition;
  /** When the record became a dead letter, in epoch milliseconds. */
  readonly deadLetteredAtMs: number;
  readonly reason: string;
  /** The consumer's processing step that failed. */
  readonly step: string;
  readonly record: StreamRecord;
}

/** An operator's decision about a dead letter; a dead letter without an outcome is open. */
export interface Outcome {
  readonly kind: 'replayed' | 'dropped';
  readonly atMs: number;
  readonly note: string;
}

/** Headers of the record that stores an outcome in the dead letter's partition. */
const HEADERS = { offset: SETTLED_OFFSET, kind: 'settled-as', at: 'settled-at', note: 'settled-note' } as const;
/** Header of a replayed record that contains the position of the dead letter. */
export const REPLAYED_FROM = 'replayed-from';

export function toPositionText({ topic, partition, offset }: RecordPosition): string {
  return `${topic}/${partition}/${offset}`;
}

/** Parses `topic/partition/offset`. @returns null for other formats */
export function parsePosition(text: string): RecordPosition | null {
  const found = /^([^/]+)\/(\d{1,5})\/(\d{1,15})$/.exec(text);
  return found === null ? null : { topic: found[1]!, partition: Number(found[2]), offset: Number(found[3]) };
}

const textOf = (record: StreamRecord, name: string): string => String(record.headers[name] ?? '');

function toNumber(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

/** Parses a record in a dead-letter topic. @returns null for outcomes and records from other software */
export function parseDeadLetter(record: StreamRecord): DeadLetter | null {
  const original = {
    topic: textOf(record, 'original-topic'),
    partition: toNumber(textOf(record, 'original-partition')),
    offset: toNumber(textOf(record, 'original-offset')),
  };
  const { topic, partition, offset } = record;
  // Headers cannot redirect a dead letter to a different topic.
  if (deadLetterTopicOf(original.topic) !== topic || Number.isNaN(original.partition + original.offset)) return null;
  return {
    position: { topic, partition, offset },
    original,
    deadLetteredAtMs: record.timestampMs,
    reason: textOf(record, 'reason'),
    step: textOf(record, 'step'),
    record,
  };
}

/** Creates the record that stores an outcome. Retention removes it after the dead letter, which has a lower offset. */
export function toOutcomeRecord({ position }: Pick<DeadLetter, 'position'>, outcome: Outcome): TransactionRecord {
  return {
    topic: position.topic,
    partition: position.partition,
    key: null,
    value: Buffer.alloc(0),
    headers: {
      [HEADERS.offset]: String(position.offset),
      [HEADERS.kind]: outcome.kind,
      [HEADERS.at]: String(outcome.atMs),
      [HEADERS.note]: outcome.note,
    },
  };
}

/** Parses an outcome and the offset of its dead letter. @returns null for other records */
export function parseOutcome(record: StreamRecord): { offset: number; outcome: Outcome } | null {
  const [offset, kind] = [toNumber(textOf(record, HEADERS.offset)), textOf(record, HEADERS.kind)];
  if (Number.isNaN(offset) || (kind !== 'replayed' && kind !== 'dropped')) return null;
  return { offset, outcome: { kind, atMs: toNumber(textOf(record, HEADERS.at)), note: textOf(record, HEADERS.note) } };
}

/** Creates the record to replay. A record without a key is published to its original partition. */
export function toReplayRecord({ position, original, record }: DeadLetter): TransactionRecord {
  const headers = { ...traceHeadersOf(record), [REPLAYED_FROM]: toPositionText(position) };
  const { topic, partition } = original;
  const { key } = record;
  return { topic, ...(key === null ? { partition } : {}), key, value: record.value ?? Buffer.alloc(0), headers };
}

/** Reads the dead letters of a topic, partition by partition, up to the current end offsets. */
export async function* readDeadLetters(log: LogReader, topic: string): AsyncGenerator<DeadLetter> {
  for (const { partition, start, end } of await log.bounds(topic))
    for await (const record of log.read({ topic, partition, start, end })) {
      const deadLetter = parseDeadLetter(record);
      if (deadLetter !== null) yield deadLetter;
    }
}

/** Reads the outcomes in a dead-letter topic, by dead letter position. */
export async function readOutcomes(log: LogReader, topic: string): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  for (const { partition, start, end } of await log.bounds(topic))
    for await (const record of log.read({ topic, partition, start, end })) {
      const found = parseOutcome(record);
      if (found !== null) outcomes.set(toPositionText({ topic, partition, offset: found.offset }), found.outcome);
    }
  return outcomes;
}

/** Criteria for dead letters. Undefined fields match all dead letters. */
export interface Selection {
  readonly positions?: readonly RecordPosition[];
  /** Full name of the original topic. */
  readonly topic?: string;
  readonly reason?: string;
  readonly step?: string;
}

/** Creates the predicate of a selection. Reasons match by prefix, because they often end with input values. */
export function createIsSelected(selection: Selection): (deadLetter: DeadLetter) => boolean {
  const positions = selection.positions === undefined ? null : new Set(selection.positions.map(toPositionText));
  const { topic, reason, step } = selection;
  return (deadLetter) =>
    (positions === null || positions.has(toPositionText(deadLetter.position))) &&
    (topic === undefined || deadLetter.original.topic === topic) &&
    (reason === undefined || deadLetter.reason.startsWith(reason)) &&
    (step === undefined || deadLetter.step === step);
}

/** Value decoders, by topic without prefix. */
const DECODERS = new Map<string, (schema: string) => (body: Buffer) => unknown>([
  [TOPICS.messages.name, messageRecordCodec.decoderOf],
  [TOPICS.identityLinks.name, identityLinkCodec.decoderOf],
  [TOPICS.parkedLinks.name, identityLinkCodec.decoderOf],
  [TOPICS.identityDecisions.name, identityDecisionCodec.decoderOf],
  [TOPICS.rejections.name, rejectionCodec.decoderOf],
  [TOPICS.consents.name, consentCodec.decoderOf],
  [TOPICS.erasures.name, erasureRequestCodec.decoderOf],
  [TOPICS.accessKeys.name, accessKeyCodec.decoderOf],
  [TOPICS.projects.name, projectCodec.decoderOf],
  [TOPICS.rateLimitKeys.name, rateLimitKeyCodec.decoderOf],
  [TOPICS.activities.name, activityCodec.decoderOf],
  [TOPICS.tokens.name, tokenCodec.decoderOf],
]);

const ROW_BYTES = 16;
/** Larger values would flood the terminal. */
const DUMP_BYTES_MAX = 4_096;

/** Formats the complete contents of a dead letter, which may include personal data. */
export async function describeDeadLetter(
  deadLetter: DeadLetter,
  outcome: Outcome | undefined,
  options: { schemaOf: SchemaSource; topicPrefix: string },
): Promise<string[]> {
  const { position, original, record, step } = deadLetter;
  const headers = Object.entries(record.headers).map(([name, value]) => `  ${name}: ${toPrintable(String(value))}`);
  const settled =
    outcome === undefined ? 'open' : `${outcome.kind} ${new Date(outcome.atMs).toISOString()} ${outcome.note}`;
  const lines = [
    `dead letter ${toPositionText(position)}  ${settled.trim()}`,
    step === NOTICE_STEP ? 'a notice, which has no original record' : `from ${toPositionText(original)}`,
    'headers',
    ...headers,
  ];
  const decoded = await decode(deadLetter, options);
  if ('value' in decoded) return [...lines, 'value', ...toJsonText(decoded.value).split('\n')];
  const key = record.key === null ? ['key: none'] : ['key', ...toDump(record.key)];
  return [...lines, `not decoded: ${decoded.fault}`, ...key, 'value', ...toDump(record.value ?? Buffer.alloc(0))];
}

async function decode(
  { original, record: { value } }: DeadLetter,
  { schemaOf, topicPrefix }: { schemaOf: SchemaSource; topicPrefix: string },
): Promise<{ value: unknown } | { fault: string }> {
  const createReader = DECODERS.get(original.topic.slice(topicPrefix.length));
  if (createReader === undefined) return { fault: 'unknown topic' };
  try {
    const read = await createRecordReader({ schemaOf, createReader })(value);
    return read.kind === 'record' ? { value: read.record } : { fault: read.reason };
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}

/** Formats a value as JSON, with bytes in hexadecimal. */
function toJsonText(value: unknown): string {
  const replace = (_name: string, item: unknown) => {
    const isBytes =
      typeof item === 'object' && item !== null && 'type' in item && item.type === 'Buffer' && 'data' in item;
    return isBytes ? Buffer.from(item.data as number[]).toString('hex') : item;
  };
  return JSON.stringify(value, replace, 2);
}

/** Replaces terminal control characters. */
export function toPrintable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern replaces control characters
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '·');
}

/** Formats a hex dump with sixteen bytes per line: position, hexadecimal bytes and printable characters. */
export function toDump(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let offset = 0; offset < Math.min(bytes.length, DUMP_BYTES_MAX); offset += ROW_BYTES) {
    const row = bytes.subarray(offset, offset + ROW_BYTES);
    const hex = row
      .toString('hex')
      .replace(/../g, '$& ')
      .padEnd(3 * ROW_BYTES);
    const text = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`  ${offset.toString(16).padStart(6, '0')}  ${hex} ${text}`);
  }
  if (bytes.length > DUMP_BYTES_MAX) lines.push(`  … ${bytes.length - DUMP_BYTES_MAX} more bytes`);
  return lines.length === 0 ? ['  (empty)'] : lines;
}
