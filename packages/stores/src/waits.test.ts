import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { answerWithin, pause, pauseOrThrow, waitAtMost } from './waits.ts';

const never = new Promise<string>(() => {});

describe('a wait with a bound', () => {
  it('gives what the work gives', async () => {
    expect(await waitAtMost(60_000, Promise.resolve('done'), () => 'late')).toBe('done');
  });

  it('throws what the work throws', async () => {
    await expect(waitAtMost(60_000, Promise.reject(new Error('broken')), () => 'late')).rejects.toThrow('broken');
  });

  it('answers for work that is late', async () => {
    expect(await waitAtMost(1, never, () => 'late')).toBe('late');
  });

  it('throws for work that is late, where that is asked', async () => {
    const late = () => {
      throw new Error('too late');
    };
    await expect(waitAtMost(1, never, late)).rejects.toThrow('too late');
  });

  it('throws for a store that is late, and names the bound', async () => {
    expect(await answerWithin(60_000, Promise.resolve('found'))).toBe('found');
    await expect(answerWithin(1, never)).rejects.toThrow('no answer within 1 ms');
  });

  it('lets work that fails behind its bound fail for nobody', async () => {
    const work = Promise.withResolvers<string>();
    expect(await waitAtMost(1, work.promise, () => 'late')).toBe('late');
    work.reject(new Error('too late to matter'));
    await delay(0);
  });
});

describe('a pause', () => {
  it('lasts as long as it is told, and takes a time that is over for none at all', async () => {
    const beganMs = performance.now();
    await pause(20, new AbortController().signal);
    expect(performance.now() - beganMs).toBeGreaterThan(15);
    await pause(-1_000);
  });

  it('ends with its signal, also when that was aborted before', async () => {
    const stop = new AbortController();
    const pausing = pause(600_000, stop.signal);
    stop.abort();
    await pausing;
    await pause(600_000, stop.signal);
  });

  it('throws the reason of its signal where that is asked', async () => {
    const stop = new AbortController();
    await pauseOrThrow(1, stop.signal);
    const pausing = pauseOrThrow(600_000, stop.signal);
    stop.abort(new Error('enough'));
    await expect(pausing).rejects.toThrow('enough');
  });
});
