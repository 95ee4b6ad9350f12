import type { QueryRows } from '@playline/stores';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CAPACITIES, type Claimant, createFairLimiter, createPortalLimiters, type Release } from './limiters.ts';

const capacity = { name: 'things', total: 6, reserved: 2, perProject: 3, waitMs: 0 };
const claimant = (key: string): Claimant => ({ key, isAdministrator: false });
const administrator: Claimant = { key: 'admin', isAdministrator: true };
const BUSY = { code: 'TOO_MANY_REQUESTS_ERROR' };

it('the limiter limits each project and all projects together, and reserves capacity for administrators', async () => {
  const limiter = createFairLimiter(capacity);
  for (let count = 0; count < 3; count++) await limiter.acquire(claimant('p'));
  await expect(limiter.acquire(claimant('p'))).rejects.toMatchObject({
    ...BUSY,
    message: expect.stringContaining('Your project'),
  });
  const release = await limiter.acquire(claimant('q'));
  await expect(limiter.acquire(claimant('r'))).rejects.toMatchObject({
    ...BUSY,
    message: expect.stringContaining('This portal'),
  });
  await limiter.acquire(administrator);
  await limiter.acquire(administrator);
  await expect(limiter.acquire(administrator)).rejects.toMatchObject(BUSY);
  release();
  release();
  await limiter.acquire(claimant('r'));
  await expect(limiter.acquire(claimant('r'))).rejects.toMatchObject(BUSY);
});

it('the limiter never exceeds or loses capacity in any order of acquire and release', async () => {
  const claimants = [claimant('p'), claimant('q'), claimant('r'), administrator];
  const steps = fc.array(fc.record({ index: fc.nat(3), releases: fc.boolean() }), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const limiter = createFairLimiter(capacity);
      const acquired: { index: number; release: Release }[] = [];
      for (const { index, releases } of list) {
        if (releases) acquired.splice(index % Math.max(1, acquired.length), 1)[0]?.release();
        else
          await limiter.acquire(claimants[index]!).then(
            (release) => void acquired.push({ index, release }),
            () => {},
          );
        const projects = acquired.filter((each) => each.index !== 3);
        expect(acquired.length).toBeLessThanOrEqual(6);
        expect(projects.length).toBeLessThanOrEqual(4);
        for (const project of [0, 1, 2])
          expect(projects.filter((each) => each.index === project).length).toBeLessThanOrEqual(3);
      }
      for (const { release } of acquired) release();
      for (let count = 0; count < 6; count++) await limiter.acquire(administrator);
    }),
  );
});

it('released capacity goes to the waiting project with the lowest usage, and never to an aborted request', async () => {
  const limiter = createFairLimiter({ ...capacity, total: 5, waitMs: 10_000 });
  const releases: Release[] = [];
  for (const key of ['p', 'p', 'q']) releases.push(await limiter.acquire(claimant(key)));
  const acquired: string[] = [];
  const abort = new AbortController();
  const aborted = limiter.acquire(claimant('s'), abort.signal);
  const waiting = ['p', 'r'].map((key) => limiter.acquire(claimant(key)).then(() => acquired.push(key)));
  abort.abort(new Error('aborted'));
  await expect(aborted).rejects.toThrow('aborted');
  releases[2]!();
  await waiting[1];
  expect(acquired).toEqual(['r']);
  releases[0]!();
  await waiting[0];
  expect(acquired).toEqual(['r', 'p']);
});

it('the limiter rejects a request if no capacity becomes available in time', async () => {
  const limiter = createFairLimiter({ ...capacity, total: 2, waitMs: 20 });
  await expect(limiter.acquire(claimant('p'))).rejects.toMatchObject(BUSY);
});

it('a project can run at most six concurrent queries, and does not delay other projects', async () => {
  const limiters = createPortalLimiters({ ...CAPACITIES, queries: { ...CAPACITIES.queries, waitMs: 20 } });
  const running = new Map<string, number>();
  const finish: Release[] = [];
  const query: QueryRows = async function* (sql) {
    running.set(sql, (running.get(sql) ?? 0) + 1);
    await new Promise<void>((resolve) => finish.push(resolve));
    yield [1];
  };
  const limited = limiters.limitQueries(query);
  const read = async (sql: string) => {
    for await (const _ of limited(sql));
  };
  const visitOf = (id: string) => ({ project: { id }, account: null, address: '' }) as never;
  const flood = Array.from({ length: 20 }, () => limiters.run(visitOf('p'), () => read('p')).catch(({ code }) => code));
  const other = limiters.run(visitOf('q'), () => read('q'));
  const rejected = (await Promise.race([Promise.all(flood.slice(6)), other])) as unknown[];
  expect(rejected).toEqual(Array.from({ length: 14 }, () => BUSY.code));
  expect([running.get('p'), running.get('q')]).toEqual([6, 1]);
  for (const end of finish) end();
  expect(await Promise.all(flood.slice(0, 6))).toEqual(Array.from({ length: 6 }, () => undefined));
  await other;
});
