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
import { NOTICE_STEP } from '@playline/stream';
import { type DeadLetter, type Outcome, toPositionText } from './dead-letters.ts';

/** Decoders of values, by topic without prefix. */
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
/** A value of a megabyte would scroll everything else away. */
const DUMP_BYTES_MAX = 4_096;

/** Lines with all contents of a dead letter, which may be personal data. */
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
    step === NOTICE_STEP ? 'a notice, without an original record' : `from ${toPositionText(original)}`,
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

/** JSON with bytes as hexadecimal text. */
function toJsonText(value: unknown): string {
  const replace = (_name: string, item: unknown) => {
    const isBytes =
      typeof item === 'object' && item !== null && 'type' in item && item.type === 'Buffer' && 'data' in item;
    return isBytes ? Buffer.from(item.data as number[]).toString('hex') : item;
  };
  return JSON.stringify(value, replace, 2);
}

/** Replaces characters that control a terminal. */
export function toPrintable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern replaces control characters
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '·');
}

/** Sixteen bytes per line: position, hexadecimal, and printable text. */
export function toDump(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, DUMP_BYTES_MAX); at += ROW_BYTES) {
    const row = bytes.subarray(at, at + ROW_BYTES);
    const hex = row
      .toString('hex')
      .replace(/../g, '$& ')
      .padEnd(3 * ROW_BYTES);
    const text = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`  ${at.toString(16).padStart(6, '0')}  ${hex} ${text}`);
  }
  if (bytes.length > DUMP_BYTES_MAX) lines.push(`  … ${bytes.length - DUMP_BYTES_MAX} bytes more`);
  return lines.length === 0 ? ['  (empty)'] : lines;
}
