import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { Admin, type UserError } from './broker-client.ts';

test('the Kafka client rejects options that violate its schema, and names the option and the rule', () => {
  const open = () => new Admin({ clientId: 'schemas', bootstrapBrokers: ['127.0.0.1:1'], timeout: -1, strict: true });
  expect(open).toThrow(expect.objectContaining({ code: 'PLT_KFK_USER' }) as UserError);
  expect(open).toThrow(/timeout.*>= 0/);
});

test('a schema is compiled when it first validates a value, and its validator then reports errors', () => {
  const ajv = new Ajv2020();
  const invalid = ajv.compile({ type: 'nothing' });
  expect(() => invalid(1)).toThrow(/schema is invalid/);

  const validate = ajv.compile({ type: 'number', minimum: 3 });
  expect(validate(2)).toBe(false);
  expect(validate.errors).toMatchObject([{ keyword: 'minimum' }]);
  expect(validate(3)).toBe(true);
  expect(validate.errors).toBeNull();
});
