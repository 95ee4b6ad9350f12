import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ERROR_CODES, ERRORS, PublicError, toEnvelope } from './index.ts';

const context = { traceId: 'a'.repeat(32), link: (code: string) => `/errors/${code}` };

it('each error code has the status that the contract specifies', () => {
  const statuses = Object.fromEntries(ERROR_CODES.map((code) => [code, ERRORS[code].status]));
  expect(statuses).toEqual({
    VALIDATION_ERROR: 400,
    UNAUTHORISED_REQUEST: 401,
    AUTHENTICATION_ERROR: 403,
    RESOURCE_NOT_FOUND: 404,
    CONFLICT_ERROR: 409,
    TOO_MANY_REQUESTS_ERROR: 429,
    INTERNAL_SERVER_ERROR: 500,
  });
});

it('only errors with status 429 and 500 are retryable', () => {
  const retried = ERROR_CODES.filter((code) => new PublicError(code).retry).map((code) => ERRORS[code].status);
  expect(retried).toEqual([429, 500]);
});

it('only errors with status 429 have a retry delay, in whole seconds', () => {
  const delays = ERROR_CODES.map((code) => new PublicError(code, { retryAfterS: 2.5 }).retryAfterS);
  expect(delays.filter((delay) => delay !== null)).toEqual([3]);
  expect(new PublicError('TOO_MANY_REQUESTS_ERROR').retryAfterS).toBe(1);
});

const INTERNAL = {
  status: 500,
  body: {
    message: ERRORS.INTERNAL_SERVER_ERROR.message,
    link: '/errors/INTERNAL_SERVER_ERROR',
    trace_id: 'a'.repeat(32),
    code: 'INTERNAL_SERVER_ERROR',
    details: null,
  },
};

it('an envelope contains the public part of a public error and no part of its cause', () => {
  const cause = new Error('password hunter2');
  const error = new PublicError('VALIDATION_ERROR', { message: 'too large', details: { limitBytes: 1 }, cause });
  expect(toEnvelope(error, context)).toEqual({
    status: 400,
    body: {
      message: 'too large',
      link: '/errors/VALIDATION_ERROR',
      trace_id: 'a'.repeat(32),
      code: 'VALIDATION_ERROR',
      details: { limitBytes: 1 },
    },
  });
});

it('an envelope contains no part of an unknown or internal error', () => {
  fc.assert(fc.property(fc.anything(), (thrown) => void expect(toEnvelope(thrown, context)).toEqual(INTERNAL)));
  const details = { host: 'broker-1' };
  const error = new PublicError('INTERNAL_SERVER_ERROR', { message: 'broker-1 is down', details });
  expect(toEnvelope(error, context)).toEqual(INTERNAL);
});
