import type { QueryRows } from '@playline/stores';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CAPACITIES, type Claimant, createFairLimiter, createPortalShares, type Release } from './shares.ts';

const capacity = { name: 'things', total: 6, reserved: 2, perProject: 3, waitMs: 0 };
const of = (share: string): Claimant => ({ share, isAdministrator: false });
const administrator: Claimant = { share: 'admin', isAdministrator: true };
const BUSY = { code: 'TOO_MANY_REQUESTS_ERROR' };

it('a project gets its share, other projects the rest, and administrators the reserve', async () => {
  const shares = createFairLimiter(capacity);
  for (let at = 0; at < 3; at++) await shares.acquire(of('p'));
  await expect(shares.acquire(of('p'))).rejects.toMatchObject({
    ...BUSY,
    message: expect.stringContaining('Your project'),
  });
  const leave = await shares.acquire(of('q'));
  await expect(shares.acquire(of('r'))).rejects.toMatchObject({
    ...BUSY,
    message: expect.stringContaining('This portal'),
  });
  await shares.acquire(administrator);
  await shares.acquire(administrator);
  await expect(shares.acquire(administrator)).rejects.toMatchObject(BUSY);
  leave();
  leave();
  await shares.acquire(of('r'));
  await expect(shares.acquire(of('r'))).rejects.toMatchObject(BUSY);
});

it('the capacity is never exceeded or lost in any order of acquire and release', async () => {
  const claimants = [of('p'), of('q'), of('r'), administrator];
  const steps = fc.array(fc.record({ who: fc.nat(3), leaves: fc.boolean() }), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const shares = createFairLimiter(capacity);
      const held: { who: number; leave: Release }[] = [];
      for (const { who, leaves } of list) {
        if (leaves) held.splice(who % Math.max(1, held.length), 1)[0]?.leave();
        else
          await shares.acquire(claimants[who]!).then(
            (leave) => void held.push({ who, leave }),
            () => {},
          );
        const projects = held.filter((each) => each.who !== 3);
        expect(held.length).toBeLessThanOrEqual(6);
        expect(projects.length).toBeLessThanOrEqual(4);
        for (const project of [0, 1, 2])
          expect(projects.filter((each) => each.who === project).length).toBeLessThanOrEqual(3);
      }
      for (const { leave } of held) leave();
      for (let at = 0; at < 6; at++) await shares.acquire(administrator);
    }),
  );
});

it('released capacity goes to the waiting project that uses least, and not to aborted requests', async () => {
  const shares = createFairLimiter({ ...capacity, total: 5, waitMs: 10_000 });
  const leaves = [await shares.acquire(of('p')), await shares.acquire(of('p')), await shares.acquire(of('q'))];
  const entered: string[] = [];
  const abort = new AbortController();
  const left = shares.acquire(of('s'), abort.signal);
  const waiting = ['p', 'r'].map((share) => shares.acquire(of(share)).then(() => entered.push(share)));
  abort.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  leaves[2]!();
  await waiting[1];
  expect(entered).toEqual(['r']);
  leaves[0]!();
  await waiting[0];
  expect(entered).toEqual(['r', 'p']);
});

it('a request without capacity is refused after its wait', async () => {
  const shares = createFairLimiter({ ...capacity, total: 2, waitMs: 20 });
  await expect(shares.acquire(of('p'))).rejects.toMatchObject(BUSY);
});

it('a project runs at most six queries at a time, without delaying those of another project', async () => {
  const shares = createPortalShares({ ...CAPACITIES, queries: { ...CAPACITIES.queries, waitMs: 20 } });
  const running = new Map<string, number>();
  const ends: Release[] = [];
  const query: QueryRows = async function* (sql) {
    running.set(sql, (running.get(sql) ?? 0) + 1);
    await new Promise<void>((resolve) => ends.push(resolve));
    yield [1];
  };
  const limited = shares.limitQueries(query);
  const read = async (sql: string) => {
    for await (const _ of limited(sql));
  };
  const visitOf = (id: string) => ({ project: { id }, account: null, address: '' }) as never;
  const flood = Array.from({ length: 20 }, () => shares.run(visitOf('p'), () => read('p')).catch(({ code }) => code));
  const other = shares.run(visitOf('q'), () => read('q'));
  const refused = (await Promise.race([Promise.all(flood.slice(6)), other])) as unknown[];
  expect(refused).toEqual(Array.from({ length: 14 }, () => BUSY.code));
  expect([running.get('p'), running.get('q')]).toEqual([6, 1]);
  for (const end of ends) end();
  expect(await Promise.all(flood.slice(0, 6))).toEqual(Array.from({ length: 6 }, () => undefined));
  await other;
});
