import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, judgeBatch, type TimeWindow } from '@playline/contracts';
import { createScannedEncoder, type EncodedRecord, encodeMessages, type KeyOf } from '@playline/events';
import { createScanner } from './batch.ts';
import { type ReadDocument, readDocument } from './document.ts';
import { createRandom, damagedBody } from './fuzz-bodies.ts';

/**
 * Differential fuzz of the scan against the contract: whatever the scan accepts, JSON.parse and the contract accept,
 * and both encoders write the same bytes.
 */

export interface FuzzCounts {
  bodies: number;
  /** Bodies that are JSON. */
  json: number;
  /** Bodies whose every message the contract accepts. */
  acceptable: number;
  /** Bodies that the scan decided. */
  scanned: number;
}

const scanner = createScanner();
const encodeScanned = createScannedEncoder();
const ENVELOPE = { schemaId: 7, environmentId: 'fuzz-test', receivedAt: 1_790_000_000_000, traceId: 'ab'.repeat(16) };

/** A key that shows kind and id, so that a mix-up shows in the bytes. */
export const legibleKeyOf: KeyOf = (kind, id) => {
  const key = Buffer.alloc(16);
  key.write(kind.slice(0, 4), 0);
  let hash = 7;
  for (const character of id) hash = (Math.imul(hash, 31) + character.codePointAt(0)!) >>> 0;
  key.writeUInt32BE(hash, 4);
  key.writeUInt32BE(id.length, 8);
  return key;
};

function isSame(left: readonly EncodedRecord[], right: readonly EncodedRecord[]): boolean {
  return (
    left.length === right.length &&
    left.every(({ key, value }, index) => {
      const other = right[index]!;
      const isSameKey = key === null ? other.key === null : other.key !== null && key.equals(other.key);
      return isSameKey && value.equals(other.value);
    })
  );
}

/** What the slow path makes of a body: records when every message is acceptable, else null. */
function slowRecords(read: ReadDocument, window: TimeWindow): EncodedRecord[] | null {
  if (!read.ok) return null;
  const verdict = judgeBatch(read.document, { window, sources: read.sources });
  if (verdict.kind === 'fault' || verdict.response.rejected > 0) return null;
  const messages = verdict.accepted.map(({ index, message }) => ({ message, ...read.sources[index] }));
  return encodeMessages(messages, ENVELOPE, legibleKeyOf);
}

/** The sources found in the bytes must be those of the parsed document. */
function findSourceFault(read: ReadDocument): string | null {
  if (!read.ok || typeof read.document !== 'object' || read.document === null) return null;
  const messages: unknown = 'messages' in read.document ? read.document.messages : undefined;
  if (!Array.isArray(messages)) return read.sources.length === 0 ? null : 'sources of no messages';
  if (messages.length !== read.sources.length && messages.length <= 100) return 'sources and messages differ in number';
  for (const [index, source] of read.sources.entries()) {
    const { properties, traits, messageId } = (messages[index] ?? {}) as Record<string, unknown>;
    const pairs = [
      [properties, source.propertiesText],
      [traits, source.traitsText],
      [messageId, source.messageIdText || undefined],
    ] as const;
    for (const [value, text] of pairs) {
      const found = text === undefined ? undefined : JSON.stringify(JSON.parse(text));
      if (JSON.stringify(value) !== found) return `text of message ${index} differs`;
    }
  }
  return null;
}

/** What was found out about one body on which both sides agree. */
export interface Agreement {
  isJson: boolean;
  /** The contract accepts every message. */
  isAcceptable: boolean;
  isScanned: boolean;
}

/**
 * Puts one body through both paths.
 * @throws Error with the body when the scan accepts what the contract rejects, or the records differ.
 */
export function compare(body: Buffer, window: TimeWindow): Agreement {
  const read = readDocument(body);
  const expected = slowRecords(read, window);
  const fault = findSourceFault(read);
  if (fault !== null) throw new Error(`${fault}: ${body.toString()}`);
  const agreement = { isJson: read.ok, isAcceptable: expected !== null };
  if (scanner.scan(body, window) < 0) return { ...agreement, isScanned: false };
  if (expected === null) throw new Error(`the scan accepts what the contract rejects: ${body.toString()}`);
  const records = encodeScanned(scanner.batch, ENVELOPE, legibleKeyOf);
  if (!isSame(records, expected)) throw new Error(`the encoders write different bytes: ${body.toString()}`);
  return { ...agreement, isScanned: true };
}

export interface FuzzOptions {
  seed: number;
  nowMs: number;
  /** Asked before each body, with the number so far. */
  goesOn: (bodies: number) => boolean;
}

/** @throws Error with the body when the scan and the contract disagree. */
export function runFuzz({ seed, nowMs, goesOn }: FuzzOptions): FuzzCounts {
  const window = { fromMs: nowMs - EVENT_AGE_MAX_MS, toMs: nowMs + EVENT_AHEAD_MAX_MS };
  const random = createRandom(seed);
  const counts: FuzzCounts = { bodies: 0, json: 0, acceptable: 0, scanned: 0 };
  for (; goesOn(counts.bodies); counts.bodies++) {
    const { isJson, isAcceptable, isScanned } = compare(damagedBody(random, nowMs), window);
    if (isJson) counts.json++;
    if (isAcceptable) counts.acceptable++;
    if (isScanned) counts.scanned++;
  }
  return counts;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } } });
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed);
  const nowMs = Date.now();
  const endMs = nowMs + Number(values.seconds) * 1000;
  const counts = runFuzz({ seed, nowMs, goesOn: () => Date.now() < endMs });
  process.stdout.write(`${JSON.stringify({ seed, ...counts })}\n`);
}
