import { expect, it } from 'vitest';
import { isTakenOver } from './log.ts';

const brokerError = (type: string, cause?: Error) => Object.assign(new Error('rejected', { cause }), { type });

it.each(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING'])(
  'a publisher that brokers reject with %s is fenced, even if the client wraps the error',
  (type) => {
    expect(isTakenOver(brokerError(type))).toBe(true);
    expect(isTakenOver(new Error('too many attempts', { cause: brokerError(type) }))).toBe(true);
  },
);

it('a publisher that fails with any other error is not fenced', () => {
  expect(isTakenOver(brokerError('CONCURRENT_TRANSACTIONS', new Error('network')))).toBe(false);
  expect(isTakenOver('PRODUCER_FENCED')).toBe(false);
});
