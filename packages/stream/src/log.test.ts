import { expect, it } from 'vitest';
import { isTakenOver } from './log.ts';

const refused = (type: string, cause?: Error) => Object.assign(new Error('refused', { cause }), { type });

it.each(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING'])(
  'a publisher that brokers refuse with %s is fenced, even if the client wraps the refusal',
  (type) => {
    expect(isTakenOver(refused(type))).toBe(true);
    expect(isTakenOver(new Error('too many attempts', { cause: refused(type) }))).toBe(true);
  },
);

it('a publisher with any other fault is not fenced', () => {
  expect(isTakenOver(refused('CONCURRENT_TRANSACTIONS', new Error('network')))).toBe(false);
  expect(isTakenOver('PRODUCER_FENCED')).toBe(false);
});
