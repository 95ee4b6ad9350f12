import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { answerWithin, waitAtMost } from './deadline.ts';

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
