import { expect, it } from 'vitest';
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

it('the claims have the log only when all partitions are applied, also those of earlier requests of a signer', async () => {
  for (let behind = 0; behind < 6; behind++) {
    const { state, isLogKnown } = openCheck([5, 5, 5, 5, 5, 5], []);
    state.brought = state.ends.map((end, at) => (at === behind ? end - 1 : end));
    expect(await isLogKnown()).toBe(false);
    state.brought = state.ends;
    expect(await isLogKnown()).toBe(true);
  }
});

it('the ends of the log are reused, so that a log with constant writes counts as applied', async () => {
  const { state, isLogKnown } = openCheck([5, 7], [4, 7]);
  expect(await isLogKnown()).toBe(false);
  Object.assign(state, { ends: [9, 12], brought: [8, 9], nowMs: 2_000 });
  expect(await isLogKnown()).toBe(true);
  // Later these ends are too old, because they do not cover newer records.
  state.nowMs = 11_000;
  expect(await isLogKnown()).toBe(false);
});

it('an unknown partition is not applied, and a missing topic is an error', async () => {
  expect(await openCheck([0, 0], [0]).isLogKnown()).toBe(false);
  await expect(openCheck([], []).isLogKnown()).rejects.toThrow('there is no topic');
});
