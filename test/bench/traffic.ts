import { randomBytes } from 'node:crypto';
import { createBody, createMessage, fillWithFields } from './messages.ts';

/** How the messages of a load differ from the usual ones. `real fields` replace the filler by properties of a game. */
export const TRAFFICS = ['usual', 'one bad a batch', 'every id new', 'real fields'] as const;
export type Traffic = (typeof TRAFFICS)[number];

/** JSON text of a batch of `size` messages, from the n-th on. */
export function createBodyOf(traffic: Traffic, { n, size, now }: { n: number; size: number; now: Date }): Buffer {
  if (traffic === 'usual' || traffic === 'every id new') return createBody(n, size, now);
  const messages = Array.from({ length: size }, (_, index) => createMessage(n + index, now));
  if (traffic === 'real fields') for (const message of messages) fillWithFields(message);
  // At another index in each batch.
  const bad = messages[(n / size) % size];
  if (traffic === 'one bad a batch' && bad !== undefined) bad.type = 'trak';
  return Buffer.from(JSON.stringify({ messages }));
}

const FRESH_DIGITS = 12;
/** Ends where the digits of an id begin that may be replaced. */
const ID_DIGITS = /"(?:messageId":"[0-9a-f-]{24}|anonymousId":"anon-[0-9a-f]{20})/g;

/** Replaces digits of each id in a request, in its buffer, each time it is sent. */
export function createRenewal(requests: readonly Buffer[]): (index: number) => Buffer {
  const offsets = requests.map((request) => {
    const text = request.toString('latin1');
    return [...text.matchAll(ID_DIGITS)].map(({ index, 0: found }) => index + found.length);
  });
  // No other load creates the same ids.
  const own = randomBytes(3).toString('hex');
  let count = 0;
  return (index) => {
    const request = requests[index] as Buffer;
    for (const at of offsets[index] ?? [])
      request.write(own + (count++).toString(16).padStart(FRESH_DIGITS - own.length, '0'), at, 'latin1');
    return request;
  };
}
