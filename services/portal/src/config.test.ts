import { ConfigError, parseConfig } from '@playline/runtime';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { configSchema, toOpenId } from './config.ts';

const required = {
  PORTAL_SECRET: '01'.repeat(32),
  IDENTITY_PEPPER: '02'.repeat(32),
  KAFKA_BROKERS: 'a:1',
  SCHEMA_REGISTRY_URL: 'http://a',
  REDIS_URL: 'redis://a',
  CLICKHOUSE_URL: 'http://a',
  CLICKHOUSE_USER: 'portal',
  CLICKHOUSE_PASSWORD: 'x',
  CLICKHOUSE_DATABASE: 'playline',
};
const provider = {
  OPENID_ISSUER: 'https://id.example.com/realms/team',
  OPENID_CLIENT_ID: 'portal',
  OPENID_CLIENT_SECRET: 'the secret',
};
const read = (environment: Record<string, string>) =>
  toOpenId(parseConfig(configSchema, { ...required, ...environment }));

it('OpenID Connect is disabled if its settings are missing or empty', () => {
  expect(read({})).toBeNull();
  const names = [...Object.keys(provider), 'OPENID_LABEL', 'OPENID_ALSO_AT'];
  expect(read(Object.fromEntries(names.map((name) => [name, ''])))).toBeNull();
});

it('the OpenID settings define the provider, its label and its additional origins', () => {
  expect(read(provider)).toEqual({
    issuer: new URL('https://id.example.com/realms/team'),
    clientId: 'portal',
    clientSecret: 'the secret',
    label: 'single sign-on',
    additionalOrigins: [],
  });
  const optional = { OPENID_LABEL: 'Work', OPENID_ALSO_AT: 'https://a.example, https://b.example:8443/' };
  expect(read({ ...provider, ...optional })).toMatchObject({
    label: 'Work',
    additionalOrigins: ['https://a.example', 'https://b.example:8443'],
  });
  expect(read({ ...provider, OPENID_ISSUER: 'http://localhost:4000' })?.issuer.origin).toBe('http://localhost:4000');
});

it.each(Object.keys(provider))('the OpenID settings are rejected if only %s is missing', (name) => {
  expect(() => read({ ...provider, [name]: '' })).toThrow(new RegExp(`${name}: required if any other`));
});

it.each<Record<string, string>>([
  { OPENID_ISSUER: 'http://id.example.com' },
  { OPENID_ISSUER: 'id.example.com' },
  { OPENID_ISSUER: 'https://id.example.com/?a=b' },
  { OPENID_ISSUER: 'https://ada@id.example.com/' },
  { OPENID_ALSO_AT: 'https://a.example/path' },
  { OPENID_ALSO_AT: 'http://a.example' },
  { OPENID_ALSO_AT: 'https://*' },
  { OPENID_ALSO_AT: "https://a.example 'unsafe-inline'" },
  { OPENID_ALSO_AT: 'https://a.example; script-src *' },
])('the OpenID settings %j are rejected', (invalid) => {
  expect(() => read({ ...provider, ...invalid })).toThrow(
    new RegExp(`^These settings are missing or invalid:\n  ${Object.keys(invalid)[0]}: expected`),
  );
  expect(() => read({ ...provider, ...invalid })).not.toThrow('the secret');
});

const smtp = { SMTP_URL: 'smtps://user:the-password@mail.example', SMTP_FROM: 'Playline <alerts@example.com>' };

it.each<Record<string, string>>([
  { SMTP_URL: '' },
  { SMTP_FROM: '' },
  { SMTP_URL: 'mail.example:the-password' },
  { SMTP_URL: 'https://user:the-password@mail.example' },
  { SMTP_URL: 'smtp://user:the-password@mail.example/path' },
])('the SMTP settings %j are rejected, and the error does not contain the password', (invalid) => {
  const parse = (environment: Record<string, string>) => parseConfig(configSchema, { ...required, ...environment });
  expect(parse(smtp)).toMatchObject(smtp);
  expect(parse({})).toMatchObject({ ALERT_PRIVATE_WEBHOOKS: false });
  expect(() => parse({ ...smtp, ...invalid })).toThrow(new RegExp(`${Object.keys(invalid)[0]}: (expected|required)`));
  expect(() => parse({ ...smtp, ...invalid })).not.toThrow('the-password');
});

it('OPENID_ALSO_AT accepts only origins that are safe in a content security policy', () => {
  const text = fc.array(
    fc.constantFrom('https://', 'a.example', ',', ';', ' ', "'self'", '*', ':8', '/', '\n', '#', '@'),
  );
  fc.assert(
    fc.property(text, (parts) => {
      try {
        const origins = read({ ...provider, OPENID_ALSO_AT: parts.join('') })?.additionalOrigins ?? [];
        for (const origin of origins) expect(origin).toMatch(/^https:\/\/[a-z0-9.-]+(:\d+)?$/);
      } catch (fault) {
        expect(fault).toBeInstanceOf(ConfigError);
      }
    }),
    { numRuns: 100 },
  );
});
