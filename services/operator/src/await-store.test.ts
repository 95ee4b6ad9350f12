import { expect, it, vi } from 'vitest';
import { awaitStore } from './await-store.ts';
import { UnreachableError } from './command.ts';

it.each([
  ['answers false', async () => false as const],
  ['fails', () => Promise.reject(new Error('connection refused'))],
])('a store that %s for ten seconds does not answer', async (_, probe) => {
  const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValueOnce(10_000).mockReturnValue(10_001);
  const probes = vi.fn(probe);
  const message = 'Redis does not answer: start it (npm run up), or correct its address';
  await expect(awaitStore('Redis', probes)).rejects.toThrow(new UnreachableError(message));
  expect(probes).toHaveBeenCalledTimes(2);
  clock.mockRestore();
});
