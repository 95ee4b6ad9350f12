import { describe, expect, it } from 'vitest';
import { MintLedger } from '../lane/mint-ledger.ts';
import { toFirstState } from '../lane/next-state.ts';
import { toRequest } from '../test/mint-requests.ts';
import { acceptRequests } from './accept-requests.ts';

const nothing = { states: [], transactions: [], forgotten: [] };
const place = (offset: number, ...given: Parameters<typeof toRequest>) => ({
  request: toRequest(...given),
  partition: 0,
  offset,
});
const options = { changedAt: 5, isHeldElsewhere: () => false };

describe('requests of one reference id', () => {
  it('count once while the first is pending, also within one batch', () => {
    const ledger = new MintLedger(nothing);
    const first = acceptRequests(ledger, [place(0, 'a'), place(1, 'a', { attempt: 1 }), place(2, 'b')], options);
    expect(first).toMatchObject({ states: [{ referenceId: 'a', requestOffset: 0 }, { referenceId: 'b' }], dropped: 1 });
    ledger.apply({ ...nothing, states: first.states });
    expect(acceptRequests(ledger, [place(3, 'a', { attempt: 2 })], options)).toMatchObject({ states: [], dropped: 1 });
  });

  it('are recognised by their attempts when read again, and a failed one is not accepted a second time', () => {
    const ledger = new MintLedger(nothing);
    const [state] = acceptRequests(ledger, [place(0, 'a')], options).states;
    ledger.apply({ ...nothing, states: [state!] });
    expect(acceptRequests(ledger, [place(0, 'a')], options)).toEqual({ states: [], dropped: 0, known: 1 });
    ledger.apply({ ...nothing, states: [{ ...state!, status: 'failed', stage: 'settled', revision: 2 }] });
    expect(acceptRequests(ledger, [place(0, 'a')], options)).toEqual({ states: [], dropped: 0, known: 1 });
    expect(acceptRequests(ledger, [place(1, 'a', { attempt: 1 })], options).states).toHaveLength(1);
  });

  it('that failed are remembered for ever: a group may read from the beginning again', () => {
    const ledger = new MintLedger(nothing);
    const [first] = acceptRequests(ledger, [place(0, 'a0')], options).states;
    const failed = { ...first!, status: 'failed', stage: 'settled', revision: 2 } as const;
    ledger.apply({ ...nothing, states: [failed] });
    for (let at = 1; at <= 250_000; at++) {
      const attemptId = Buffer.alloc(16);
      attemptId.writeUInt32BE(at);
      ledger.apply({ ...nothing, states: [{ ...failed, referenceId: `a${at}`, attemptId }] });
    }
    expect(acceptRequests(ledger, [place(0, 'a0')], options)).toEqual({ states: [], dropped: 0, known: 1 });
  });

  it('are separate for each collection, and dropped where another signer uses them', () => {
    const ledger = new MintLedger({ ...nothing, states: [toFirstState(place(0, 'a'), 1)] });
    const other = place(1, 'a', { contract: `0x${'b1'.repeat(20)}` });
    expect(acceptRequests(ledger, [other], options).states).toHaveLength(1);
    expect(acceptRequests(ledger, [other], { ...options, isHeldElsewhere: () => true })).toMatchObject({ dropped: 1 });
  });
});
