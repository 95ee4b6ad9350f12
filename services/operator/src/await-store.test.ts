import { expect, it, vi } from 'vitest';
import { awaitStore } from './await-store.ts';
import { UnreachableError } from './command.ts';

it.each([
  ['reports that it is not ready', async () => false as const],
  ['refuses connections', () => Promise.reject(new Error('connection refused'))],
])('awaitStore rejects if a store %s for ten seconds', async (_, probe) => {
  const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValueOnce(10_000).mockReturnValue(10_001);
  const probes = vi.fn(probe);
  const message = 'Redis does not respond: start it (npm run up), or correct its address';
  await expect(awaitStore('Redis', probes)).rejects.toThrow(new UnreachableError(message));
  expect(probes).toHaveBeenCalledTimes(2);
  clock.mockRestore();
});
