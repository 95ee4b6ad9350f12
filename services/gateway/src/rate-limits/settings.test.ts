import { ConfigError, parseConfig } from '@playline/runtime';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { createPolicies } from './message-limit.ts';
import { rateLimitSettings } from './settings.ts';

const schema = z.object(rateLimitSettings);
const parse = (environment: Record<string, string>) => parseConfig(schema, environment);

it('the rate limit settings have the documented defaults', () => {
  expect(parse({})).toEqual({
    RATE_LIMIT_MESSAGES_PER_S: 5000,
    RATE_LIMIT_BURST: 10_000,
    RATE_LIMITS_BY_ENVIRONMENT: new Map(),
    RATE_LIMIT_FAILED_KEYS_PER_MINUTE: 60,
    RATE_LIMIT_CONSENTS_PER_S: 100,
    RATE_LIMIT_CONSENTS_BURST: 200,
    TRUSTED_PROXIES: 0,
  });
});

it('RATE_LIMITS_BY_ENVIRONMENT overrides only the rates of the listed environments', () => {
  const policyOf = createPolicies(
    parse({ RATE_LIMITS_BY_ENVIRONMENT: 'demo-development=500/1000, demo_2=20000/40000' }),
  );
  expect(policyOf('demo-development')).toEqual({ name: 'messages', perSecond: 500, burst: 1000 });
  expect(policyOf('demo_2')).toEqual({ name: 'messages', perSecond: 20_000, burst: 40_000 });
  expect(policyOf('demo')).toEqual({ name: 'messages', perSecond: 5000, burst: 10_000 });
  expect(policyOf('constructor')).toEqual({ name: 'messages', perSecond: 5000, burst: 10_000 });
});

it.each(['a', 'a=1', 'a=1/', 'a=1/2/3', 'A=1/2', 'a=0/1', 'a=1/0', 'a=1.5/2', 'a=1/2,a=3/4', '=1/2', 'a=1e3/1'])(
  'RATE_LIMITS_BY_ENVIRONMENT refuses %j with an error that names the setting',
  (text) => {
    expect(() => parse({ RATE_LIMITS_BY_ENVIRONMENT: text })).toThrow(ConfigError);
    expect(() => parse({ RATE_LIMITS_BY_ENVIRONMENT: text })).toThrow('RATE_LIMITS_BY_ENVIRONMENT');
  },
);
