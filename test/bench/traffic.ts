import { randomBytes } from 'node:crypto';
import { createBody, createMessage, fillWithFields } from './messages.ts';

/**
 * What the messages of a load have of their own: nothing (`usual`); one of each batch is not acceptable; ids that were
 * never sent before, of messages, people and devices; fields of a game in the place of a run of one letter.
 */
export const TRAFFICS = ['usual', 'one bad a batch', 'every id new', 'real fields'] as const;
export type Traffic = (typeof TRAFFICS)[number];

/** JSON text of a batch of `size` messages that begins with the n-th. */
export function createBodyOf(traffic: Traffic, { n, size, now }: { n: number; size: number; now: Date }): Buffer {
  if (traffic === 'usual' || traffic === 'every id new') return createBody(n, size, now);
  const messages = Array.from({ length: size }, (_, index) => createMessage(n + index, now));
  if (traffic === 'real fields') for (const message of messages) fillWithFields(message);
  // Another place in each batch: what one client version does always the same way.
  const bad = messages[(n / size) % size];
  if (traffic === 'one bad a batch' && bad !== undefined) bad.type = 'trak';
  return Buffer.from(JSON.stringify({ messages }));
}

/** Digits of an id that are written anew. */
const FRESH_DIGITS = 12;
/** Where ids end with digits that any others may stand for. */
const ID_DIGITS = /"(?:messageId":"[0-9a-f-]{24}|anonymousId":"anon-[0-9a-f]{20})/g;

/** Gives each id of a request new digits, in place, each time it is sent. */
export function createRenewal(requests: readonly Buffer[]): (index: number) => Buffer {
  const places = requests.map((request) => {
    const text = request.toString('latin1');
    return [...text.matchAll(ID_DIGITS)].map(({ index, 0: found }) => index + found.length);
  });
  // No other load writes the same: its first digits are its own.
  const own = randomBytes(3).toString('hex');
  let count = 0;
  return (index) => {
    const request = requests[index] as Buffer;
    for (const at of places[index] ?? [])
      request.write(own + (count++).toString(16).padStart(FRESH_DIGITS - own.length, '0'), at, 'latin1');
    return request;
  };
}
