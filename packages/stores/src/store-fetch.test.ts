import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { answerWithin, pause, pauseOrThrow, waitAtMost } from './store-fetch.ts';

const never = new Promise<string>(() => {});

it('waitAtMost returns the result or throws the error of the work', async () => {
  expect(await waitAtMost(60_000, Promise.resolve('done'), () => 'late')).toBe('done');
  await expect(waitAtMost(60_000, Promise.reject(new Error('broken')), () => 'late')).rejects.toThrow('broken');
});

it('waitAtMost calls its fallback if the work takes too long', async () => {
  expect(await waitAtMost(1, never, () => 'late')).toBe('late');
  const onTimeout = () => {
    throw new Error('too late');
  };
  await expect(waitAtMost(1, never, onTimeout)).rejects.toThrow('too late');
  expect(await answerWithin(60_000, Promise.resolve('found'))).toBe('found');
  await expect(answerWithin(1, never)).rejects.toThrow('no response within 1 ms');
});

it('work that fails after its time limit causes no unhandled rejection', async () => {
  const work = Promise.withResolvers<string>();
  expect(await waitAtMost(1, work.promise, () => 'late')).toBe('late');
  work.reject(new Error('too late to matter'));
  await delay(0);
});

it('a pause lasts for the requested time, and a negative time causes no pause', async () => {
  const beganMs = performance.now();
  await pause(20, new AbortController().signal);
  expect(performance.now() - beganMs).toBeGreaterThan(15);
  await pause(-1_000);
});

it('a pause ends when its signal is aborted, and pauseOrThrow throws the abort reason', async () => {
  const stop = new AbortController();
  await pauseOrThrow(1, stop.signal);
  const pausing = pause(600_000, stop.signal);
  const throwing = pauseOrThrow(600_000, stop.signal);
  stop.abort(new Error('enough'));
  await pausing;
  await pause(600_000, stop.signal);
  await expect(throwing).rejects.toThrow('enough');
});
