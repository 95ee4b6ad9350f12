import { expect, it } from 'vitest';
import { createIsLogApplied } from './publish.ts';

const TOPIC = 'chain.mint-requests.v1';

function createCheck(ends: readonly number[], applied: readonly number[]) {
  const state = { ends, applied, nowMs: 0 };
  const isLogApplied = createIsLogApplied({
    log: { bounds: async () => state.ends.map((end, partition) => ({ partition, end })) },
    readOffsets: async () => new Map(state.applied.map((offset, partition) => [`${TOPIC}/${partition}`, offset])),
    topicPrefix: '',
    monotonicMs: () => state.nowMs,
  });
  return { state, isLogApplied };
}

it('the log counts as applied only when every partition is applied', async () => {
  for (let lagging = 0; lagging < 6; lagging++) {
    const { state, isLogApplied } = createCheck([5, 5, 5, 5, 5, 5], []);
    state.applied = state.ends.map((end, partition) => (partition === lagging ? end - 1 : end));
    expect(await isLogApplied()).toBe(false);
    state.applied = state.ends;
    expect(await isLogApplied()).toBe(true);
  }
});

it('end offsets are cached, so that a log with constant writes counts as applied', async () => {
  const { state, isLogApplied } = createCheck([5, 7], [4, 7]);
  expect(await isLogApplied()).toBe(false);
  Object.assign(state, { ends: [9, 12], applied: [8, 9], nowMs: 2_000 });
  expect(await isLogApplied()).toBe(true);
  state.nowMs = 11_000;
  expect(await isLogApplied()).toBe(false);
});

it('a partition without an offset is not applied, and a missing topic is an error', async () => {
  expect(await createCheck([0, 0], [0]).isLogApplied()).toBe(false);
  await expect(createCheck([], []).isLogApplied()).rejects.toThrow('does not exist');
});
