import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, type TimeWindow } from '@playline/contracts';
import { validateBatch } from '@playline/contracts/test';
import { createRandom } from '@playline/testkit/random';
import type { EncodedRecord } from '../../record/encode-batch.ts';
import { createBatchEncoder } from '../../record/encode-batch.ts';
import { encodeByCodec, type KeyOf } from '../../test/expected-records.ts';
import { BODY_ERROR, createScanner, validateScanned } from '../batch.ts';
import type { MessageError } from '../explain.ts';
import { VALID } from '../ranges.ts';
import { type DocumentResult, readDocument, toReadableJson } from './document.ts';
import { createDamagedBody } from './fuzz-bodies.ts';

/**
 * Differential fuzz test of the scan and the contract. For each body, both must accept the same messages with the same
 * record bytes, and must return the same errors.
 */

export interface FuzzCounts {
  bodies: number;
  /** Bodies that are JSON. */
  json: number;
  /** Messages in valid batches. */
  messages: number;
  accepted: number;
  /** Messages that the scan found valid without `explain`. */
  valid: number;
}

const scanner = createScanner();
const encodeBatch = createBatchEncoder();
const ENVELOPE = { schemaId: 7, environmentId: 'fuzz-test', receivedAt: 1_790_000_000_000, traceId: 'ab'.repeat(16) };

/** Derives a key from kind and id, so that the bytes show which identity was used. */
const toReadableKey: KeyOf = (kind, id) => {
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
      return key.equals(other.key) && value.equals(other.value);
    })
  );
}

/** The result of validating a body. */
interface Validated {
  /** The error message if the whole body is refused, otherwise null. */
  refusal: string | null;
  records: EncodedRecord[];
  rejections: unknown;
  rejected: unknown;
}

const REFUSED = { records: [], rejections: [], rejected: [] };

function validateByContract(read: DocumentResult, window: TimeWindow): Validated {
  if (!read.ok) return { refusal: 'not JSON', ...REFUSED };
  const result = validateBatch(read.document, { window, sources: read.sources });
  if (result.kind === 'refused') return { refusal: result.message, ...REFUSED };
  const messages = result.accepted.map(({ index, message }) => {
    const { propertiesText, traitsText } = read.sources[index]!;
    const readable = (text: string | undefined) => (text === undefined ? undefined : toReadableJson(text));
    return { message, propertiesText: readable(propertiesText), traitsText: readable(traitsText) };
  });
  return {
    refusal: null,
    records: encodeByCodec(messages, ENVELOPE, toReadableKey),
    rejections: result.response.rejections,
    rejected: result.rejected,
  };
}

/** The contract's error messages for bodies that are refused as a whole. */
const REFUSALS: Readonly<Record<number, string>> = {
  [BODY_ERROR.notJson]: 'not JSON',
  [BODY_ERROR.notAnObject]: 'body is not a JSON object',
  [BODY_ERROR.noMessages]: 'messages is not an array',
  [BODY_ERROR.tooFew]: 'messages is empty',
  [BODY_ERROR.tooMany]: 'messages has more than 100 items',
};

const toErrors = (errors: readonly MessageError[]) => errors.map(({ error }) => error);

function validateByScan(body: Buffer, window: TimeWindow): Validated {
  const count = scanner.scan(body, window);
  if (count < 0) return { refusal: REFUSALS[count] ?? String(count), ...REFUSED };
  const { rejected, entries } = validateScanned(scanner.state);
  return {
    refusal: null,
    records: encodeBatch(scanner.state.batch, ENVELOPE, (kind, id) => toReadableKey(kind, Buffer.from(id).toString())),
    rejections: entries.map(({ messageId, errors }) => ({ messageId, errors: toErrors(errors) })),
    rejected: rejected.map(({ message, errors }) => ({ index: message, errors: toErrors(errors) })),
  };
}

/** Compares the sources found in the bytes with the parsed document. */
function findSourceError(read: DocumentResult): string | null {
  if (!read.ok || typeof read.document !== 'object' || read.document === null) return null;
  const messages: unknown = 'messages' in read.document ? read.document.messages : undefined;
  if (!Array.isArray(messages))
    return read.sources.length === 0 ? null : 'sources found although there are no messages';
  if (messages.length !== read.sources.length && messages.length <= 100)
    return 'the numbers of sources and messages differ';
  for (const [index, source] of read.sources.entries()) {
    const { properties, traits, messageId } = (messages[index] ?? {}) as Record<string, unknown>;
    const pairs = [
      [properties, source.propertiesText],
      [traits, source.traitsText],
      [messageId, source.messageIdText || undefined],
    ] as const;
    for (const [value, text] of pairs) {
      const found = text === undefined ? undefined : JSON.stringify(JSON.parse(text));
      if (JSON.stringify(value) !== found) return `the source of message ${index} differs`;
    }
  }
  return null;
}

/** Counts for a body on which the scan and the contract agree. */
export interface Agreement {
  isJson: boolean;
  messages: number;
  accepted: number;
  /** Messages that the scan found valid without `explain`. */
  valid: number;
}

/**
 * Validates a body with the scan and with the contract.
 * @throws Error with the body if the results differ
 */
export function compare(body: Buffer, window: TimeWindow): Agreement {
  const read = readDocument(body);
  const sourceError = findSourceError(read);
  if (sourceError !== null) throw new Error(`${sourceError}: ${body.toString()}`);
  const expected = validateByContract(read, window);
  const found = validateByScan(body, window);
  for (const name of ['refusal', 'rejected', 'rejections'] as const) {
    const [actual, contract] = [JSON.stringify(found[name]), JSON.stringify(expected[name])];
    if (actual !== contract) throw new Error(`${name}: scan ${actual}, contract ${contract}: ${body.toString()}`);
  }
  if (!isSame(found.records, expected.records)) throw new Error(`the records differ: ${body.toString()}`);
  const { state } = scanner;
  const messages = found.refusal === null ? state.batch.count : 0;
  const valid = state.verdicts.subarray(0, messages).filter((verdict) => verdict === VALID).length;
  return { isJson: read.ok, messages, accepted: found.records.length, valid };
}

export interface FuzzOptions {
  seed: number;
  nowMs: number;
  /** Called before each body with the number of bodies so far. Returns false to end the run. */
  shouldContinue: (bodies: number) => boolean;
}

/** @throws Error with the body if the scan and the contract disagree */
export function runFuzz({ seed, nowMs, shouldContinue }: FuzzOptions): FuzzCounts {
  const window = { fromMs: nowMs - EVENT_AGE_MAX_MS, toMs: nowMs + EVENT_AHEAD_MAX_MS };
  const random = createRandom(seed);
  const counts: FuzzCounts = { bodies: 0, json: 0, messages: 0, accepted: 0, valid: 0 };
  for (; shouldContinue(counts.bodies); counts.bodies++) {
    const { isJson, messages, accepted, valid } = compare(createDamagedBody(random, nowMs), window);
    if (isJson) counts.json++;
    counts.messages += messages;
    counts.accepted += accepted;
    counts.valid += valid;
  }
  return counts;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } } });
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed);
  const startedAt = Date.now();
  const endMs = performance.now() + Number(values.seconds) * 1000;
  const counts = runFuzz({ seed, nowMs: startedAt, shouldContinue: () => performance.now() < endMs });
  process.stdout.write(`${JSON.stringify({ seed, ...counts })}\n`);
}
