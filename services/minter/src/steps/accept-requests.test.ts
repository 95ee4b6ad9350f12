import type { MintStateRecord } from '@playline/contracts';
import { expect, it } from 'vitest';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toFirstState } from '../lane/lane-context.ts';
import { MintLedger } from '../lane/mint-ledger.ts';
import { toRequest } from '../test/mint-requests.ts';
import { acceptRequests } from './accept-requests.ts';

const EMPTY_CHANGE = { states: [], transactions: [], forgotten: [] };
const openLedger = (...states: MintStateRecord[]) => {
  const ledger = new MintLedger();
  ledger.apply({ ...EMPTY_CHANGE, states });
  return ledger;
};
const received = (offset: number, ...args: Parameters<typeof toRequest>) => ({
  request: toRequest(...args),
  partition: 0,
  offset,
});
const options = { changedAt: 5, forgotten: new Set<string>(), isHeldElsewhere: () => false };

it('a reference id is accepted only once while it is pending, even within one batch', () => {
  const ledger = openLedger();
  const first = acceptRequests(ledger, [received(0, 'a'), received(1, 'a', { attempt: 1 }), received(2, 'b')], options);
  expect(first).toMatchObject({ states: [{ referenceId: 'a', requestOffset: 0 }, { referenceId: 'b' }], dropped: 1 });
  ledger.apply({ ...EMPTY_CHANGE, states: first.states });
  expect(acceptRequests(ledger, [received(3, 'a', { attempt: 2 })], options)).toMatchObject({ states: [], dropped: 1 });
});

it('requests that are read again are recognised by their attempts, and failed requests are not accepted again', () => {
  const ledger = openLedger();
  const [state] = acceptRequests(ledger, [received(0, 'a')], options).states;
  ledger.apply({ ...EMPTY_CHANGE, states: [state!] });
  expect(acceptRequests(ledger, [received(0, 'a')], options)).toEqual({ states: [], dropped: 0, known: 1 });
  ledger.apply({ ...EMPTY_CHANGE, states: [{ ...state!, status: 'failed', stage: 'settled', revision: 2 }] });
  expect(acceptRequests(ledger, [received(0, 'a')], options)).toEqual({ states: [], dropped: 0, known: 1 });
  expect(acceptRequests(ledger, [received(1, 'a', { attempt: 1 })], options).states).toHaveLength(1);
});

it('requests that failed long ago are recognised by their attempts', () => {
  const first = received(0, 'a');
  const forgotten = new Set([toAttemptKey(first.request)]);
  const next = received(1, 'a', { attempt: 1 });
  const accepted = acceptRequests(openLedger(), [first, next], { ...options, forgotten });
  expect(accepted).toMatchObject({ states: [{ requestOffset: 1 }], dropped: 0, known: 1 });
});

it('new requests for a minted reference id are dropped, and the minted request is recognised', () => {
  const minted = { ...toFirstState(received(0, 'a'), 1), status: 'succeeded', stage: 'settled', revision: 2 } as const;
  const ledger = openLedger(minted);
  const accepted = acceptRequests(ledger, [received(0, 'a'), received(1, 'a', { attempt: 1 })], options);
  expect(accepted).toEqual({ states: [], dropped: 1, known: 1 });
});

it('each collection has its own reference ids, and requests are dropped if another signer uses the reference id', () => {
  const ledger = openLedger(toFirstState(received(0, 'a'), 1));
  const other = received(1, 'a', { contract: `0x${'b1'.repeat(20)}` });
  expect(acceptRequests(ledger, [other], options).states).toHaveLength(1);
  expect(acceptRequests(ledger, [other], { ...options, isHeldElsewhere: () => true })).toMatchObject({ dropped: 1 });
});
