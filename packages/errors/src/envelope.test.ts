import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES, ERRORS, PublicError, toEnvelope } from './index.ts';

const context = { traceId: 'a'.repeat(32), link: (code: string) => `/errors/${code}` };

describe('the catalogue', () => {
  it('gives each code the status of the contract', () => {
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

  it('tells clients to resend on 429 and 5xx alone', () => {
    const resent = ERROR_CODES.filter((code) => new PublicError(code).retry).map((code) => ERRORS[code].status);
    expect(resent).toEqual([429, 500]);
  });

  it('tells how long to wait with 429 alone, in whole seconds', () => {
    const waits = ERROR_CODES.map((code) => new PublicError(code, { retryAfterS: 2.5 }).retryAfterS);
    expect(waits.filter((wait) => wait !== null)).toEqual([3]);
    expect(new PublicError('TOO_MANY_REQUESTS_ERROR').retryAfterS).toBe(1);
  });

  it('explains every code in words', () => {
    for (const code of ERROR_CODES)
      for (const words of [ERRORS[code].message, ERRORS[code].cause, ERRORS[code].fix])
        expect(words.length).toBeGreaterThan(20);
  });
});

describe('toEnvelope', () => {
  it('carries the public half of a public error', () => {
    const error = new PublicError('VALIDATION_ERROR', { message: 'too large', details: { limitBytes: 1 } });
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

  it('leaks nothing of the cause of a public error', () => {
    const error = new PublicError('UNAUTHORISED_REQUEST', { cause: new Error('password hunter2') });
    expect(JSON.stringify(toEnvelope(error, context))).not.toContain('hunter2');
  });

  it('makes anything unknown an internal error and leaks nothing of it', () => {
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        expect(toEnvelope(thrown, context)).toEqual({
          status: 500,
          body: {
            message: ERRORS.INTERNAL_SERVER_ERROR.message,
            link: '/errors/INTERNAL_SERVER_ERROR',
            trace_id: 'a'.repeat(32),
            code: 'INTERNAL_SERVER_ERROR',
            details: null,
          },
        });
      }),
    );
  });

  it('keeps the words and details of an internal error inside, public type or not', () => {
    const details = { host: 'broker-1' };
    const error = new PublicError('INTERNAL_SERVER_ERROR', { message: 'broker-1 is down', details });
    expect(JSON.stringify(toEnvelope(error, context))).not.toContain('broker-1');
  });
});
