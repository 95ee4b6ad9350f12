import type { MintStateRecord } from '@playline/contracts';
import { describe, expect, it } from 'vitest';
import type { LaneChange } from '../ports.ts';
import { toRequest } from '../test/mint-requests.ts';
import { LaneLost, toFirstState } from './lane-context.ts';
import { LaneJournal } from './mint-lane.ts';
import { MintLedger } from './mint-ledger.ts';

const statesOf = (count: number): MintStateRecord[] =>
  Array.from({ length: count }, (_, offset) =>
    toFirstState({ request: toRequest(`a${offset}`), partition: 0, offset }, 1),
  );

/** A journal whose log fails at the given write, counted from 0. */
function openJournal({ failsAt = Number.POSITIVE_INFINITY } = {}) {
  const written: LaneChange[] = [];
  const ledger = new MintLedger();
  const append = async (change: LaneChange) => {
    if (written.length === failsAt) throw new Error('the broker is away');
    written.push(change);
  };
  const journal = new LaneJournal({ append, close: async () => {} }, ledger);
  return { journal, ledger, written };
}

describe('what a lane writes', () => {
  it('is written in pieces, however many assets wait, so that no transaction of the log lasts too long', async () => {
    const { journal, ledger, written } = openJournal();
    await journal.append({ states: statesOf(1_201) });
    expect(written.map(({ states }) => states.length)).toEqual([500, 500, 201]);
    expect(ledger.pending).toHaveLength(1_201);
    const forgotten = Array.from({ length: 501 }, (_, nonce) => ({
      chain: 'demo-chain',
      signer: Buffer.alloc(20),
      nonce,
      variant: 0,
      kind: 'mint' as const,
    }));
    await journal.append({ forgotten });
    expect(written.slice(3).map((change) => change.forgotten.length)).toEqual([500, 1]);
  });

  it('is one transaction of the log with signed bytes, which never stand without the states of their assets', async () => {
    const { journal, written } = openJournal();
    const signed = {
      chain: 'demo-chain',
      signer: Buffer.alloc(20),
      nonce: 0,
      variant: 0,
      kind: 'mint' as const,
      assets: [],
      contractAddress: null,
      hash: Buffer.alloc(32),
      signedBytes: Buffer.alloc(1),
      gasLimit: 1,
      loggedAt: 1,
      genesisHash: Buffer.alloc(32),
      maxFeePerGas: '1',
      maxPriorityFeePerGas: '1',
    };
    await journal.append({ states: statesOf(501), transactions: [signed] });
    expect(written.map(({ states, transactions }) => [states.length, transactions.length])).toEqual([[501, 1]]);
  });

  it('counts as far as its pieces stand when a later piece is lost, and the lane is over', async () => {
    const { journal, ledger } = openJournal({ failsAt: 1 });
    await expect(journal.append({ states: statesOf(600) })).rejects.toThrow(LaneLost);
    expect(ledger.pending).toHaveLength(500);
    await expect(journal.append({ states: statesOf(1) })).rejects.toThrow(LaneLost);
  });
});
