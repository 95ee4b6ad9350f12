import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX } from '@playline/contracts';
import { createDelivery, type Delivered, type DeliveryOptions, parseJson } from '../delivery.ts';
import { count, createLatency, type Differences } from '../report.ts';
import { type Ledger, type Run, toMessageId } from '../run.ts';
import type { PersonTracker } from './persons.ts';
import { type Batch, type BatchResponse, differencesOf, type Encoding, parseBatchResponse } from './traffic.ts';

/** Differences that a game simulation can find. Any difference fails the run. */
export type GameDifferenceKind =
  | 'answer' // a batch did not get the expected response
  | 'probe' // an invalid request did not get the expected response
  | 'missing' // an accepted message is not in the exact view
  | 'doubled' // an accepted message is in the exact view more than once
  | 'uninvited' // a stored message was rejected or never sent
  | 'person'; // the stored persons differ from the model

export type GameDifferences = Differences<GameDifferenceKind>;

export type Tally = ReturnType<typeof createTally>;

export const createTally = () => ({
  batches: 0,
  messages: 0,
  bytes: 0,
  accepted: 0,
  rejected: 0,
  rejectedByCode: new Map<string, number>(),
  resentBatches: 0,
  lostAnswers: 0,
  retries: new Map<string, number>(),
  unknownBatches: 0,
  probes: 0,
  latency: createLatency(),
});

export interface Probe {
  readonly name: string;
  readonly status: number;
  readonly code: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Changes to a valid batch's headers; null removes a header. */
  readonly headers: Readonly<Record<string, string | null>>;
  toBody(): Buffer;
}

export interface ProbeOptions {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly keyHeader: string;
  readonly publishableKey: string;
  /** The environment's secret key; null omits the probe with a secret key. */
  readonly secretKey: string | null;
}

export const MESSAGES_PATH = '/v1/audience/messages';
/** Deep enough to overflow the stack of a recursive JSON parser. */
const DEPTH = 200_000;
const BOMB_BYTES = 64 * BATCH_BYTES_MAX;

function createValidBatch({ run, ledger }: ProbeOptions, count: number, properties: object = {}): Buffer {
  const messages = Array.from({ length: count }, () => {
    const sequence = ledger.take();
    ledger.set(sequence, 'rejected');
    const eventTimestamp = new Date().toISOString();
    return { type: 'track', messageId: toMessageId(run, sequence), eventTimestamp, eventName: 'probe', properties };
  });
  return Buffer.from(JSON.stringify({ messages }));
}

function createProbe(name: string, toBody: () => Buffer, rest: Partial<Probe> = {}): Probe {
  const invalid = { status: 400, code: 'VALIDATION_ERROR' };
  return { name, ...invalid, method: 'POST', path: MESSAGES_PATH, headers: {}, toBody, ...rest };
}

const text = (body: string) => () => Buffer.from(body);

function createBodyProbes(options: ProbeOptions): Probe[] {
  const one = () => createValidBatch(options, 1);
  const broken = Buffer.concat([text('{"messages":[{"a":"')(), Buffer.from([0xff, 0xfe]), text('"}]}')()]);
  const gzip = { headers: { 'content-encoding': 'gzip' } };
  return [
    createProbe('empty batch', text('{"messages":[]}')),
    createProbe('101 messages', () => createValidBatch(options, BATCH_MESSAGES_MAX + 1)),
    createProbe('no messages field', text('{}')),
    createProbe('messages as an object', text('{"messages":{}}')),
    createProbe('an array as the body', text('[]')),
    createProbe('empty body', text('')),
    createProbe('deep nesting', text(`${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`)),
    createProbe('raw NUL', text('{"messages":["\0"]}')),
    createProbe('unreadable JSON', () => one().subarray(0, -1)),
    createProbe('invalid UTF-8', () => broken),
    createProbe('wrong content type', one, { headers: { 'content-type': 'text/plain' } }),
    createProbe('unknown encoding', one, { headers: { 'content-encoding': 'x-unknown' } }),
    createProbe('broken gzip', one, gzip),
    createProbe('body over a mebibyte', () => createValidBatch(options, 50, { blob: 'x'.repeat(24 * 1024) })),
    createProbe('gzip bomb', () => gzipSync(Buffer.alloc(BOMB_BYTES, ' ')), gzip),
  ];
}

/** Creates all invalid requests. The messages in them are valid, but must not be stored. */
export function createProbes(options: ProbeOptions): Probe[] {
  const { keyHeader, publishableKey, secretKey } = options;
  const one = () => createValidBatch(options, 1);
  const unknown = { status: 404, code: 'RESOURCE_NOT_FOUND' };
  const refused = (name: string, key: string) =>
    createProbe(name, one, { headers: { [keyHeader]: key }, status: 401, code: 'UNAUTHORISED_REQUEST' });
  const last = publishableKey.at(-1) === '0' ? '1' : '0';
  return [
    ...createBodyProbes(options),
    createProbe('no key', one, { headers: { [keyHeader]: null } }),
    refused('malformed key', 'nonsense'),
    refused('key with a wrong checksum', publishableKey.slice(0, -1) + last),
    ...(secretKey === null ? [] : [refused('secret key', secretKey)]),
    createProbe('unknown route', one, { path: `${MESSAGES_PATH}/more`, ...unknown }),
    createProbe('wrong method', text(''), { method: 'GET', ...unknown }),
  ];
}

export interface SenderOptions extends Omit<DeliveryOptions, 'onRetry'> {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly people: PersonTracker;
  readonly tally: Tally;
  readonly differences: GameDifferences;
  readonly keyHeader: string;
  readonly publishableKey: string;
}

const ABORT_MAX_MS = 25;
const SHOWN_CHARACTERS_MAX = 300;

export function createSendBatch(options: SenderOptions): (batch: Batch) => Promise<void> {
  const { ledger, people, tally } = options;
  const deliver = createDelivery({ ...options, onRetry: (reason) => count(tally.retries, reason) });
  return async (batch) => {
    tally.batches++;
    tally.messages += batch.messages;
    tally.bytes += batch.body.length;
    for (const sequence of batch.broken) ledger.set(sequence, 'rejected');
    for (const { sequence } of batch.valid) ledger.set(sequence, 'unknown');
    const request = toRequest(options, batch);
    if (batch.responseLost) {
      tally.lostAnswers++;
      await options.client.send({ ...request, abortAfterMs: Math.random() * ABORT_MAX_MS }).catch(() => null);
    }
    const startMs = performance.now();
    const first = await deliver(request);
    tally.latency.add(performance.now() - startMs);
    const response = compareResponse(options, batch, first);
    if (batch.resent) {
      tally.resentBatches++;
      // A resent batch must get the same response as the original batch.
      compareResponse(options, batch, await deliver(request), 'resent ');
    }
    if (response !== null) return recordResponse(options, batch, response);
    if (first.kind === 'complete' && !first.mayBeStored && !batch.responseLost) {
      for (const { sequence } of batch.valid) ledger.set(sequence, 'rejected');
      return;
    }
    tally.unknownBatches++;
    people.markUncertain(batch.household);
  };
}

function toRequest(options: SenderOptions, { body, encoding }: Batch) {
  const headers = { ...headersOf(options), ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }) };
  return { method: 'POST', path: MESSAGES_PATH, headers, body: encodeBody(body, encoding) } as const;
}

/** Compares a response with the expectation. @returns null unless the response is a batch response */
function compareResponse(
  { run, differences }: SenderOptions,
  batch: Batch,
  delivered: Delivered,
  prefix = '',
): BatchResponse | null {
  // A missing response is not a difference, because the batch may or may not be stored.
  if (delivered.kind === 'given up') return null;
  const { status, text } = delivered.response;
  const response = parseBatchResponse(text);
  const found =
    response === null
      ? [`status ${status}: ${text.slice(0, SHOWN_CHARACTERS_MAX)}`]
      : differencesOf(batch.expectation, status, response);
  const first = toMessageId(run, batch.valid[0]?.sequence ?? batch.broken[0] ?? 0);
  for (const difference of found) differences.add('answer', `${prefix}batch with message ${first}: ${difference}`);
  return response;
}

/** Records outcomes according to the actual response, even if it differs from the expected response. */
function recordResponse({ run, ledger, people, tally }: SenderOptions, batch: Batch, response: BatchResponse): void {
  const refused = new Set(response.rejections.map(({ messageId }) => messageId.toLowerCase()));
  tally.accepted += response.accepted;
  tally.rejected += response.rejected;
  for (const { errors } of response.rejections) for (const { code } of errors) count(tally.rejectedByCode, code);
  for (const message of batch.valid) {
    const isRefused = refused.has(toMessageId(run, message.sequence));
    ledger.set(message.sequence, isRefused ? 'rejected' : 'accepted');
    if (!isRefused) people.accept(batch.household, message);
  }
}

function headersOf({ keyHeader, publishableKey }: SenderOptions): Record<string, string> {
  return { 'content-type': 'application/json', [keyHeader]: publishableKey };
}

export function createSendProbe(options: SenderOptions): (probe: Probe) => Promise<void> {
  const { tally, differences } = options;
  const deliver = createDelivery({ ...options, onRetry: (reason) => count(tally.retries, reason) });
  return async (probe) => {
    tally.probes++;
    const headers = Object.fromEntries(
      Object.entries({ ...headersOf(options), ...probe.headers }).filter(
        (header): header is [string, string] => header[1] !== null,
      ),
    );
    const delivered = await deliver({ method: probe.method, path: probe.path, headers, body: probe.toBody() });
    if (delivered.kind === 'given up') {
      differences.add('probe', `${probe.name}: no response, ${delivered.reason}`);
      return;
    }
    const { status, text } = delivered.response;
    const code = codeOf(text);
    if (status === probe.status && code === probe.code) return;
    const actual = `${status} ${code}: ${text.slice(0, SHOWN_CHARACTERS_MAX)}`;
    differences.add('probe', `${probe.name}: expected ${probe.status} ${probe.code}, got ${actual}`);
  };
}

/** Returns the code of a complete error envelope; otherwise a description of what is missing. */
function codeOf(text: string): string {
  const body = parseJson(text);
  if (typeof body !== 'object' || body === null) return 'not a JSON object';
  const absent = ['message', 'link', 'trace_id', 'code', 'details'].filter((member) => !(member in body));
  return absent.length === 0 ? String((body as { code: unknown }).code) : `an envelope without ${absent.join(', ')}`;
}

function encodeBody(body: string, encoding: Encoding): Buffer {
  const bytes = Buffer.from(body);
  if (encoding === 'gzip') return gzipSync(bytes, { level: 1 });
  if (encoding === 'deflate') return deflateSync(bytes, { level: 1 });
  if (encoding === 'br') return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  return encoding === 'zstd' ? zstdCompressSync(bytes) : bytes;
}
