import fc from 'fast-check';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { REJECTION_CODES } from './limits.ts';
import { distinctErrors, errorEnvelopeSchema, rejectionErrorSchema, toRejectionErrors } from './message.ts';

function codesOf(schema: z.ZodType, value: unknown): string[] {
  const issues = schema.safeParse(value, { reportInput: true }).error?.issues ?? [];
  return toRejectionErrors(issues).map(({ field, code }) => `${field} ${code}`);
}

it('toRejectionErrors takes the code that a custom issue carries', () => {
  const schema = z.object({ a: z.string().refine(() => false, { params: { code: 'DUPLICATE_MESSAGE_ID' } }) });
  expect(codesOf(schema, { a: 'x' })).toEqual(['a DUPLICATE_MESSAGE_ID']);
});

it('toRejectionErrors calls any other broken rule an invalid value', () => {
  expect(codesOf(z.object({ a: z.string().refine(() => false, { params: { code: 'NO_SUCH' } }) }), { a: '' })).toEqual([
    'a INVALID_VALUE',
  ]);
  expect(codesOf(z.object({ a: z.string().max(1) }), { a: 'xx' })).toEqual(['a INVALID_VALUE']);
});

it('toRejectionErrors names nested fields with a dot and lists each field and code once', () => {
  const twice = z.object({ a: z.object({ b: z.string().max(1).max(2) }) });
  expect(codesOf(twice, { a: { b: 'xxx' } })).toEqual(['a.b INVALID_VALUE']);
});

it('toRejectionErrors gives every issue an error in the shape of the contract, whatever the value', () => {
  const schema = z.object({ type: z.enum(['a']), b: z.number(), c: z.object({ d: z.string() }) });
  fc.assert(
    fc.property(fc.anything(), fc.anything(), (type, d) => {
      const parsed = schema.safeParse({ type, c: { d } }, { reportInput: true });
      const errors = toRejectionErrors(parsed.error?.issues ?? []);
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors) {
        expect(rejectionErrorSchema.parse(error)).toEqual(error);
        expect(REJECTION_CODES).toContain(error.code);
      }
    }),
  );
});

it('distinctErrors keeps two codes of one field and one code of two fields', () => {
  const error = (field: string, code: (typeof REJECTION_CODES)[number]) => ({ field, code, message: '' });
  const errors = [error('a', 'INVALID_VALUE'), error('a', 'INVALID_FORMAT'), error('b', 'INVALID_VALUE')];
  expect(distinctErrors([...errors, ...errors])).toEqual(errors);
});

it('the error envelope has all five members, details null or an object', () => {
  const envelope = { message: 'm', link: 'l', trace_id: 't', code: 'VALIDATION_ERROR', details: null };
  expect(errorEnvelopeSchema.parse(envelope)).toEqual(envelope);
  for (const name of Object.keys(envelope)) {
    expect(errorEnvelopeSchema.safeParse({ ...envelope, [name]: undefined }).success).toBe(false);
  }
});
