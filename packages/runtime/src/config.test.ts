import { expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, parseConfig, settings } from './config.ts';

const schema = z.object({
  KAFKA_BROKERS: settings.brokers(),
  HTTP_PORT: settings.port().default(8080),
  IDENTITY_PEPPER: settings.secretHex(32),
});
const pepper = 'ab'.repeat(32);

it('parseConfig converts strings and applies defaults', () => {
  const config = parseConfig(schema, { KAFKA_BROKERS: 'a:1, b:2', IDENTITY_PEPPER: pepper, HTTP_PORT: '' });
  expect(config).toEqual({
    KAFKA_BROKERS: ['a:1', 'b:2'],
    HTTP_PORT: 8080,
    IDENTITY_PEPPER: Buffer.from(pepper, 'hex'),
  });
});

it('parseConfig reports every invalid variable by name and no values', () => {
  const invalid = { KAFKA_BROKERS: 'nowhere', HTTP_PORT: '70000', IDENTITY_PEPPER: 'hunter2' };
  const parse = () => parseConfig(schema, invalid);
  expect(parse).toThrow(ConfigError);
  for (const name of Object.keys(invalid)) expect(parse).toThrow(name);
  expect(parse).not.toThrow('hunter2');
});
