import { describe, expect, it } from 'vitest';
import { type LinkSource, toLinkFact } from './facts.ts';
import { createIdentityKeyer } from './keyer.ts';
import { createIsBlocked } from './placeholders.ts';
import { createGraphFact } from './steps.ts';

const source: LinkSource = {
  type: 'track',
  environmentId: 'e',
  messageId: Buffer.alloc(16, 1),
  traceId: 'f'.repeat(32),
  anonymousId: '',
  userId: '',
  identityType: '',
  fromId: '',
  fromType: '',
  toId: '',
  toType: '',
  eventTime: 1,
  receivedAt: 2,
};
const toSteps = createGraphFact({ keyOf: createIdentityKeyer(Buffer.alloc(32)), isBlocked: createIsBlocked() });
const linksOf = (message: Partial<LinkSource>) => {
  const fact = toLinkFact({ ...source, ...message });
  return fact && toSteps(fact, 5).steps.map((step) => `${step.link} ${step.aKind} ${step.bKind}`);
};

it.each<[string, Partial<LinkSource>, string[] | null]>([
  ['a track', { type: 'track', anonymousId: 'a', userId: 'u', identityType: 'steam' }, null],
  ['an identify', { type: 'identify', anonymousId: ' a ', userId: 'u' }, ['identify anonymous untyped']],
  [
    'a typed identify',
    { type: 'identify', anonymousId: 'a', userId: 'u', identityType: 'steam' },
    ['same_id steam untyped', 'identify anonymous steam'],
  ],
  [
    'a typed identify without an anonymous id',
    { type: 'identify', userId: 'u', identityType: 'steam' },
    ['same_id steam untyped'],
  ],
  ['an untyped identify without an anonymous id', { type: 'identify', anonymousId: ' ', userId: 'u' }, null],
  ['an alias', { type: 'alias', fromId: 'f', fromType: 'email', toId: 't' }, ['alias email untyped']],
  [
    'an alias from its anonymous id',
    { type: 'alias', anonymousId: ' v ', fromId: 'v', toId: 'u' },
    ['alias anonymous untyped'],
  ],
  [
    'an alias from a typed id equal to its anonymous id',
    { type: 'alias', anonymousId: ' v ', fromId: 'v', fromType: 'steam', toId: 'u' },
    ['alias steam untyped'],
  ],
  [
    'an alias from an untyped id that is not its anonymous id',
    { type: 'alias', anonymousId: 'w', fromId: 'v', toId: 'u' },
    ['alias untyped untyped'],
  ],
])('%s links the expected kinds of ids', (_what, message, links) => {
  expect(linksOf(message)).toEqual(links);
});

describe('createIsBlocked', () => {
  const isBlocked = createIsBlocked({ e: ['Player One', ' "bot" '] });
  it.each([
    ...['anonymous', 'GUEST', ' distinctid ', 'distinct_id', 'id', 'not_authenticated', 'Email', 'undefined', 'null'],
    ...['none', 'NaN', 'true', 'false', '0', '-1', '[object Object]', '000', '0-0', '-', "'null'", '" guest "'],
    ...['00000000-0000-0000-0000-000000000000', '"\'none\'"', '""', '`id`', 'player one', 'BOT', '"bot"'],
  ])('%s is blocked', (id) => {
    expect(isBlocked('e', id)).toBe(true);
  });
  it.each(['1', '10', '-10', 'ids', 'a@null', "'", '0x1', 'nullable'])('%s is not blocked', (id) => {
    expect(isBlocked('e', id)).toBe(false);
  });
  it('a value blocked in one environment is not blocked in other environments', () => {
    expect(isBlocked('f', 'bot')).toBe(false);
  });
});
