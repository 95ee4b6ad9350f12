import { gzipSync } from 'node:zlib';
import type { Random } from '@playline/testkit/random';
import { createMessage, type Message } from '../world/messages.ts';

/** A hostile body and its expected outcome: a status, and the messages that are stored. */
export interface HostileBody {
  readonly name: string;
  readonly body: string | Buffer;
  readonly headers?: Record<string, string>;
  readonly method?: string;
  readonly status: 200 | 400 | 404;
  /** Ids of the messages that must be accepted. */
  readonly stored: readonly string[];
  /** Expected number of rejected messages and of entries in the answer; absent for a body that is no batch. */
  readonly batch?: readonly [rejected: number, entries: number];
}

const MIB = 1024 * 1024;
const DEPTH = 200_000;

const nested = (levels: number) => JSON.parse('{"a":'.repeat(levels) + 0 + '}'.repeat(levels));

/** Bodies of which nothing is stored. */
function refusedBodies(random: Random): HostileBody[] {
  const text = JSON.stringify({ messages: [createMessage(random)] });
  const refused = (name: string, body: string | Buffer, more: Partial<HostileBody> = {}): HostileBody => ({
    name,
    body,
    status: 400,
    stored: [],
    ...more,
  });
  return [
    refused('gzip bomb', gzipSync(Buffer.alloc(256 * MIB, ' ')), { headers: { 'content-encoding': 'gzip' } }),
    refused('no gzip at all', text, { headers: { 'content-encoding': 'gzip' } }),
    refused('2 MiB', Buffer.alloc(2 * MIB, ' ')),
    refused('invalid UTF-8', Buffer.from('{"messages":[{"type":"\xff"}]}', 'latin1')),
    refused('a raw NUL', '{"messages":["\0"]}'),
    refused('deep nesting', `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`),
    refused('empty', ''),
    refused('not JSON', 'messages=1'),
    refused('cut short', text.slice(0, -5)),
    refused('wrong content type', text, { headers: { 'content-type': 'text/plain' } }),
    refused('wrong method', text, { method: 'PUT', status: 404 }),
    refused('fields in a prototype', text.replace('[{', '[{"__proto__":{').replace(/}]}$/, '}}]}'), { batch: [1, 1] }),
    refused('properties a level too deep', bodyOf([{ ...createMessage(random), properties: nested(65) }]), {
      batch: [1, 1],
    }),
    refused('a lone surrogate in an id', bodyOf([{ ...createMessage(random), userId: '\ud800' }]), {
      batch: [1, 1],
    }),
  ];
}

/** Unusual bodies that are valid. */
function storedBodies(random: Random): HostileBody[] {
  const withProperties = (name: string, properties: string): HostileBody => {
    const { messageId, eventTimestamp } = createMessage(random);
    const head = JSON.stringify({ messageId, eventTimestamp, type: 'track', eventName: 'odd' }).slice(0, -1);
    const body = `{"messages":[${head},"properties":${properties}}]}`;
    return { name, body, status: 200, stored: [messageId], batch: [0, 0] };
  };
  return [
    withProperties('properties as deep as they may be', `{"a":${'['.repeat(63)}${']'.repeat(63)}}`),
    withProperties('duplicate keys', '{"k":1,"k":2}'),
    withProperties('__proto__', '{"__proto__":{"polluted":true},"constructor":1}'),
    withProperties('escaped NUL and lone surrogate', '{"nul":"\\u0000","lone":"\\ud800"}'),
    withProperties('numbers beyond what is stored as such', '{"wei":20000000000000000000,"huge":1e400}'),
  ];
}

const bodyOf = (messages: readonly object[]) => JSON.stringify({ messages });
const ids = (messages: readonly Message[]) => messages.map(({ messageId }) => messageId);
const good = (random: Random, count: number) => Array.from({ length: count }, () => createMessage(random));

/** One message is too large; the others are stored. */
function hugeBody(random: Random): HostileBody {
  const huge = { ...createMessage(random), type: 'track', eventName: 'huge', properties: { x: 'x'.repeat(64 * 1024) } };
  const few = good(random, 3);
  return { name: 'one huge message', body: bodyOf([huge, ...few]), status: 200, stored: ids(few), batch: [1, 1] };
}

/** Two messages with the same id, and one invalid message among a hundred. The others are stored. */
export function createMixedBodies(random: Random): HostileBody[] {
  const twin = createMessage(random);
  const ninetyNine = good(random, 99);
  const bad = random.integer(0, ninetyNine.length);
  const mixed = [...ninetyNine.slice(0, bad), { ...createMessage(random), type: 'nonsense' }, ...ninetyNine.slice(bad)];
  return [
    { name: 'two messages with one id', body: bodyOf([twin, twin]), status: 400, stored: [], batch: [2, 1] },
    { name: 'one bad among 100', body: bodyOf(mixed), status: 200, stored: ids(ninetyNine), batch: [1, 1] },
  ];
}

export function createHostileBodies(random: Random): HostileBody[] {
  return random.shuffle([...refusedBodies(random), ...storedBodies(random), hugeBody(random)]);
}
