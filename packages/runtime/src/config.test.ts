import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, parseConfig, settings } from './config.ts';

const schema = z.object({
  KAFKA_BROKERS: settings.brokers(),
  HTTP_PORT: settings.port().default(8080),
  IDENTITY_PEPPER: settings.secretHex(32),
});
const pepper = 'ab'.repeat(32);

describe('parseConfig', () => {
  it('turns text into typed values and fills what has a default', () => {
    const config = parseConfig(schema, { KAFKA_BROKERS: 'a:1, b:2', IDENTITY_PEPPER: pepper, HTTP_PORT: '' });
    expect(config).toEqual({
      KAFKA_BROKERS: ['a:1', 'b:2'],
      HTTP_PORT: 8080,
      IDENTITY_PEPPER: Buffer.from(pepper, 'hex'),
    });
  });

  it('reports every mistake at once, by the name of the variable', () => {
    const parse = () => parseConfig(schema, { KAFKA_BROKERS: 'nowhere', HTTP_PORT: '70000' });
    expect(parse).toThrow(ConfigError);
    for (const name of ['KAFKA_BROKERS', 'HTTP_PORT', 'IDENTITY_PEPPER']) expect(parse).toThrow(name);
  });

  it('never repeats the value of a setting that is wrong', () => {
    expect(() => parseConfig(schema, { KAFKA_BROKERS: 'a:1', IDENTITY_PEPPER: 'hunter2' })).not.toThrow('hunter2');
  });
});
