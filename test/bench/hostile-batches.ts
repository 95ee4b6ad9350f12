import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { BATCH_MESSAGES_MAX } from '@playline/contracts';
import { createBody } from './messages.ts';

/** Limit on the bytes that a request adds to the log, relative to the size of its headers and decompressed body. */
export const AMPLIFICATION_MAX = 3;

export interface BatchCase {
  readonly name: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Node accepts at most 16 KiB of request headers. */
const LONG_HEADER_CHARACTERS = 15_000;
const TRACE = `${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

const shortest = (now: Date, fields: object) => ({
  messageId: randomUUID(),
  eventTimestamp: `${now.toISOString().slice(0, 19)}Z`,
  ...fields,
});

export const SMALL_MESSAGES: Readonly<Record<string, (now: Date) => unknown>> = {
  'shortest track': (now) => shortest(now, { type: 'track', eventName: 'e' }),
  'shortest track with an owner': (now) => shortest(now, { type: 'track', eventName: 'e', anonymousId: 'a' }),
  'shortest identify': (now) => shortest(now, { type: 'identify', userId: 'u', anonymousId: 'a' }),
  'shortest typed identify': (now) => shortest(now, { type: 'identify', userId: 'u', identityType: 'steam' }),
  'shortest alias': (now) => shortest(now, { type: 'alias', fromId: 'a', toId: 'b' }),
  'track just long enough for a header': (now) =>
    shortest(now, { type: 'track', eventName: 'e', properties: { a: 'x'.repeat(70) } }),
  'rejected number': () => 0,
  'rejected empty object': () => ({}),
  'rejected with many errors': () =>
    Object.fromEntries(
      ['messageId', 'eventTimestamp', 'eventName', 'surface', 'test', 'context', 'traits', 'userId'].map((field) => [
        field,
        [],
      ]),
    ),
  'rejected with a long library': () => ({
    context: { library: 'l'.repeat(64), libraryVersion: 'v'.repeat(64), locale: 0, screen: 0 },
  }),
};

export function createTypicalBatches(now: Date): BatchCase[] {
  return [1, 20, 100].map((size) => ({
    name: `${size} typical messages`,
    body: createBody(1, size, now),
    headers: { traceparent: `00-${TRACE}` },
  }));
}

export function createHostileBatches(now: Date): BatchCase[] {
  const toBody = (messages: readonly unknown[]) => Buffer.from(JSON.stringify({ messages }));
  const full = (create: (now: Date) => unknown, size = BATCH_MESSAGES_MAX) =>
    toBody(Array.from({ length: size }, () => create(now)));
  const [number, alias] = [SMALL_MESSAGES['rejected number']!, SMALL_MESSAGES['shortest alias']!];
  const mixed = toBody([...Array.from({ length: BATCH_MESSAGES_MAX - 1 }, () => number(now)), alias(now)]);
  const long = { traceparent: `01-${TRACE}-${'x'.repeat(LONG_HEADER_CHARACTERS)}` };
  return [
    ...Object.entries(SMALL_MESSAGES).flatMap(([name, create]) => [
      { name: `1 ${name}`, body: full(create, 1), headers: {} },
      { name: `100 ${name}`, body: full(create), headers: {} },
    ]),
    { name: '99 rejected numbers and an alias', body: mixed, headers: {} },
    { name: '100 shortest alias, a traceparent of 15 KB', body: full(alias), headers: long },
    { name: '100 rejected number, a traceparent of 15 KB', body: full(number), headers: long },
  ];
}

/** Posts on a new connection with as few headers as Node allows. @returns the status and the bytes sent */
export async function postCounted(
  target: { port: number; path: string },
  { body, headers }: Pick<BatchCase, 'body' | 'headers'>,
): Promise<{ status: number; bytes: number }> {
  const fields = { 'content-type': 'application/json', 'content-length': body.length, ...headers };
  const sent = request({ ...target, agent: new Agent({ keepAlive: false }), method: 'POST', headers: fields });
  const statusReceived = new Promise<number>((resolve, reject) => {
    sent.once('error', reject);
    sent.once('response', (response) => response.resume().once('end', () => resolve(response.statusCode ?? 0)));
  });
  sent.end(body);
  return { status: await statusReceived, bytes: sent.socket?.bytesWritten ?? Number.NaN };
}
