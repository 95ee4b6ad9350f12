import { gzipSync } from 'node:zlib';
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX } from '@playline/contracts';
import type { Ledger } from './ledger.ts';
import { type Run, toMessageId } from './run.ts';

/** An invalid request, and the error envelope that it must get. */
export interface Probe {
  readonly name: string;
  readonly status: number;
  readonly code: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Changes to the headers of an ordinary batch; null removes one. */
  readonly headers: Readonly<Record<string, string | null>>;
  toBody(): Buffer;
}

export interface ProbeOptions {
  readonly run: Run;
  readonly ledger: Ledger;
  /** Name of the header for the publishable key. */
  readonly keyHeader: string;
  readonly publishableKey: string;
  /** Secret key of the same environment; without it the probe that needs it is left out. */
  readonly secretKey: string | null;
}

export const MESSAGES_PATH = '/v1/audience/messages';
/** 64 times the allowed size when inflated, from some 64 KiB. */
const BOMB_BYTES = 64 * BATCH_BYTES_MAX;

/** A batch of valid messages that must not be stored. */
function createSoundBatch({ run, ledger }: ProbeOptions, count: number, properties: object = {}): Buffer {
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

/** Bodies that are not a batch. */
function createBodyProbes(options: ProbeOptions): Probe[] {
  const one = () => createSoundBatch(options, 1);
  const broken = Buffer.concat([text('{"messages":[{"a":"')(), Buffer.from([0xff, 0xfe]), text('"}]}')()]);
  const gzip = { headers: { 'content-encoding': 'gzip' } };
  return [
    createProbe('empty batch', text('{"messages":[]}')),
    createProbe('101 messages', () => createSoundBatch(options, BATCH_MESSAGES_MAX + 1)),
    createProbe('no messages member', text('{}')),
    createProbe('messages an object', text('{"messages":{}}')),
    createProbe('body an array', text('[]')),
    createProbe('empty body', text('')),
    createProbe('unreadable JSON', () => one().subarray(0, -1)),
    createProbe('invalid UTF-8', () => broken),
    createProbe('wrong content type', one, { headers: { 'content-type': 'text/plain' } }),
    createProbe('unknown encoding', one, { headers: { 'content-encoding': 'x-unknown' } }),
    createProbe('broken gzip', one, gzip),
    createProbe('body over a mebibyte', () => createSoundBatch(options, 50, { blob: 'x'.repeat(24 * 1024) })),
    createProbe('gzip bomb', () => gzipSync(Buffer.alloc(BOMB_BYTES, ' ')), gzip),
  ];
}

/** Every way to break a request as a whole. Its messages are valid, but must not be stored. */
export function createProbes(options: ProbeOptions): Probe[] {
  const { keyHeader, publishableKey, secretKey } = options;
  const one = () => createSoundBatch(options, 1);
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
