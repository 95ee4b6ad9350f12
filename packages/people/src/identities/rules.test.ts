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

describe('what a message links', () => {
  it.each(['track', 'page', 'screen'])('is nobody when it is a %s, even with both ids', (type) => {
    expect(linksOf({ type, anonymousId: 'a', userId: 'u', identityType: 'steam' })).toBeNull();
  });
  it('is anonymous and user for an identify', () => {
    expect(linksOf({ type: 'identify', anonymousId: ' a ', userId: 'u' })).toEqual(['identify anonymous untyped']);
  });
  it('is first the typed user with the same id untyped, then anonymous and user, for a typed identify', () => {
    const links = ['same_id steam untyped', 'identify anonymous steam'];
    expect(linksOf({ type: 'identify', anonymousId: 'a', userId: 'u', identityType: 'steam' })).toEqual(links);
  });
  it('is the typed user with the same id untyped for a typed identify without an anonymous id', () => {
    expect(linksOf({ type: 'identify', userId: 'u', identityType: 'steam' })).toEqual(['same_id steam untyped']);
  });
  it('is nobody for an untyped identify without an anonymous id', () => {
    expect(linksOf({ type: 'identify', anonymousId: ' ', userId: 'u' })).toBeNull();
  });
  it('is from and to for an alias; a missing type is untyped', () => {
    const alias = { type: 'alias', fromId: 'f', fromType: 'email', toId: 't' };
    expect(linksOf(alias)).toEqual(['alias email untyped']);
  });
  it('is the anonymous identity for an alias from the own anonymous id without a type', () => {
    const alias = { type: 'alias', anonymousId: ' v ', fromId: 'v', toId: 'u' };
    expect(linksOf(alias)).toEqual(['alias anonymous untyped']);
    expect(linksOf({ ...alias, fromType: 'steam' })).toEqual(['alias steam untyped']);
    expect(linksOf({ ...alias, anonymousId: 'w' })).toEqual(['alias untyped untyped']);
  });
});

describe('a blocked value', () => {
  const isBlocked = createIsBlocked({ e: ['Player One', ' "bot" '] });
  it.each([
    ...['anonymous', 'GUEST', ' distinctid ', 'distinct_id', 'id', 'not_authenticated', 'Email', 'undefined', 'null'],
    ...['none', 'NaN', 'true', 'false', '0', '-1', '[object Object]', '000', '0-0', '-', "'null'", '" guest "'],
    ...['00000000-0000-0000-0000-000000000000', '"\'none\'"', '""', '`id`', 'player one', 'BOT', '"bot"'],
  ])('is %s', (id) => {
    expect(isBlocked('e', id)).toBe(true);
  });
  it.each(['1', '10', '-10', 'ids', 'a@null', "'", '0x1', 'nullable'])('is not %s', (id) => {
    expect(isBlocked('e', id)).toBe(false);
  });
  it('of one environment is free in another', () => {
    expect(isBlocked('f', 'bot')).toBe(false);
  });
});
