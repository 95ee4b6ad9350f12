import { describe, expect, it } from 'vitest';
import { createIsLogApplied } from './publish.ts';

const TOPIC = 'chain.mint-requests.v1';

function openCheck(ends: readonly number[], brought: readonly number[]) {
  const state = { ends, brought, nowMs: 0 };
  const isLogKnown = createIsLogApplied({
    log: { bounds: async () => state.ends.map((end, partition) => ({ partition, end })) },
    readOffsets: async () => new Map(state.brought.map((offset, partition) => [`${TOPIC}/${partition}`, offset])),
    topicPrefix: '',
    monotonicMs: () => state.nowMs,
  });
  return { state, isLogKnown };
}

describe('the question whether the log of requests is known', () => {
  it('depends on all partitions, so that a record in a signer’s partition before more were added counts', async () => {
    for (let behind = 0; behind < 6; behind++) {
      const { state, isLogKnown } = openCheck([5, 5, 5, 5, 5, 5], []);
      state.brought = state.ends.map((end, at) => (at === behind ? end - 1 : end));
      expect(await isLogKnown()).toBe(false);
      state.brought = state.ends;
      expect(await isLogKnown()).toBe(true);
    }
  });

  it('uses the ends of the first question, so that a log with constant writes becomes known', async () => {
    const { state, isLogKnown } = openCheck([5, 7], [4, 7]);
    expect(await isLogKnown()).toBe(false);
    Object.assign(state, { ends: [9, 12], brought: [8, 9], nowMs: 2_000 });
    expect(await isLogKnown()).toBe(true);
    // Later these ends are too old, because they do not cover newer records.
    state.nowMs = 11_000;
    expect(await isLogKnown()).toBe(false);
  });

  it('is answered no for an unknown partition, and with a fault without a topic', async () => {
    expect(await openCheck([0, 0], [0]).isLogKnown()).toBe(false);
    await expect(openCheck([], []).isLogKnown()).rejects.toThrow('there is no topic');
  });
});
