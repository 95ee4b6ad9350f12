import type { QueryRows } from '@playline/stores';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CAPACITIES, type Claimant, createFairLimiter, createPortalShares, type Release } from './shares.ts';

const supply = { name: 'things', total: 6, reserved: 2, perProject: 3, waitMs: 0 };
const of = (share: string): Claimant => ({ share, isAdministrator: false });
const administrator: Claimant = { share: 'admin', isAdministrator: true };
const BUSY = { code: 'TOO_MANY_REQUESTS_ERROR' };

describe('a supply that projects share', () => {
  it('gives one project its share, others the rest, and administrators what is reserved for them', async () => {
    const shares = createFairLimiter(supply);
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

  it('is never exceeded, and never lost, in whatever order who enters and leaves', async () => {
    const claimants = [of('p'), of('q'), of('r'), administrator];
    const steps = fc.array(fc.record({ who: fc.nat(3), leaves: fc.boolean() }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const shares = createFairLimiter(supply);
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

  it('goes to the waiting project that uses least of it, and to nobody who has left', async () => {
    const shares = createFairLimiter({ ...supply, total: 5, waitMs: 10_000 });
    const leaves = [await shares.acquire(of('p')), await shares.acquire(of('p')), await shares.acquire(of('q'))];
    const entered: string[] = [];
    const gone = new AbortController();
    const left = shares.acquire(of('s'), gone.signal);
    const waiting = ['p', 'r'].map((share) => shares.acquire(of(share)).then(() => entered.push(share)));
    gone.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    leaves[2]!();
    await waiting[1];
    expect(entered).toEqual(['r']);
    leaves[0]!();
    await waiting[0];
    expect(entered).toEqual(['r', 'p']);
  });

  it('is waited for no longer than its time', async () => {
    const shares = createFairLimiter({ ...supply, total: 2, waitMs: 20 });
    await expect(shares.acquire(of('p'))).rejects.toMatchObject(BUSY);
  });
});

describe('the queries of the portal', () => {
  it('are at most six at one time for a project, whatever its pages send, and those of another project run', async () => {
    const shares = createPortalShares({ ...CAPACITIES, queries: { ...CAPACITIES.queries, waitMs: 20 } });
    const running = new Map<string, number>();
    const ends: Release[] = [];
    const query: QueryRows = async function* (sql) {
      running.set(sql, (running.get(sql) ?? 0) + 1);
      await new Promise<void>((resolve) => ends.push(resolve));
      yield [1];
    };
    const divided = shares.limitQueries(query);
    const read = async (sql: string) => {
      for await (const _ of divided(sql));
    };
    const visitOf = (id: string) => ({ project: { id }, account: null, address: '' }) as never;
    const flood = Array.from({ length: 20 }, () => shares.run(visitOf('p'), () => read('p')).catch(({ code }) => code));
    const theirs = shares.run(visitOf('q'), () => read('q'));
    const refused = (await Promise.race([Promise.all(flood.slice(6)), theirs])) as unknown[];
    expect(refused).toEqual(Array.from({ length: 14 }, () => BUSY.code));
    expect([running.get('p'), running.get('q')]).toEqual([6, 1]);
    for (const end of ends) end();
    expect(await Promise.all(flood.slice(0, 6))).toEqual(Array.from({ length: 6 }, () => undefined));
    await theirs;
  });
});
