import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { Admin, type UserError } from './broker-client.ts';

test('the client still refuses options that break its schema, and says which and why', () => {
  const open = () => new Admin({ clientId: 'schemas', bootstrapBrokers: ['127.0.0.1:1'], timeout: -1, strict: true });
  expect(open).toThrow(expect.objectContaining({ code: 'PLT_KFK_USER' }) as UserError);
  expect(open).toThrow(/timeout.*>= 0/);
});

test('a schema is compiled when its first value is checked, and its errors are those of that value', () => {
  const ajv = new Ajv2020();
  // Wrong in itself, which only a compiler can tell.
  const wrong = ajv.compile({ type: 'nothing' });
  expect(() => wrong(1)).toThrow(/schema is invalid/);

  const validate = ajv.compile({ type: 'number', minimum: 3 });
  expect(validate(2)).toBe(false);
  expect(validate.errors).toMatchObject([{ keyword: 'minimum' }]);
  expect(validate(3)).toBe(true);
  expect(validate.errors).toBeNull();
});
