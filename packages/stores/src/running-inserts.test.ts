import { afterEach, expect, it, vi } from 'vitest';
import { awaitInserts } from './running-inserts.ts';

afterEach(() => void vi.useRealTimers());

it('awaitInserts fails if an insert does not end within 90 s, while later inserts do not delay it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const stuck = expect(awaitInserts(async () => ['stuck'])).rejects.toMatchObject({ code: 'INSERT_WAIT' });
  await vi.advanceTimersByTimeAsync(91_000);
  await stuck;
  let reads = 0;
  const ended = awaitInserts(async () => (reads++ === 0 ? ['first'] : ['later']));
  await vi.advanceTimersByTimeAsync(1_000);
  await ended;
});
