import { describe, expect, it } from 'vitest';
import { isFirstLink, issueFirstLink, takeFirstLink } from './first-link.ts';
import { resetAccess } from './invitations.ts';
import { createWorld } from './test/world.ts';

describe('the link that makes the first administrator', () => {
  it('is taken once, by whoever is first, within 15 minutes; looking at it takes nothing', async () => {
    const world = createWorld();
    const text = await issueFirstLink(world);
    for (const _ of [1, 2]) expect(await isFirstLink(world, text)).toBe(true);
    const taken = await Promise.all([1, 2, 3].map(() => takeFirstLink(world, text)));
    expect(taken.filter(Boolean)).toHaveLength(1);
    expect(await isFirstLink(world, text)).toBe(false);
    const late = await issueFirstLink(world);
    world.clock.at += 15 * 60_000;
    expect(await takeFirstLink(world, late)).toBe(false);
  });

  it('is not made while the log has an administrator, also when Redis was emptied, or says that there is none', async () => {
    const world = createWorld();
    await resetAccess(world.operator, (await world.addAdministrator()).id);
    world.view.empty();
    await expect(issueFirstLink(world)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    await world.view.update({ changes: [], moves: [{ partition: 0, from: null, to: 2 }], completeIn: '0' });
    expect((await world.view.readSince(null)).records).toEqual([]);
    await expect(issueFirstLink(world)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
  });

  it('is not made when the log cannot be read', async () => {
    const world = createWorld();
    const read = () => Promise.reject(new Error('no broker answers'));
    await expect(issueFirstLink({ ...world, log: { ...world.log, bounds: read } })).rejects.toThrow('no broker');
    await world.addMember('ada', 'owner');
    await expect(issueFirstLink({ ...world, log: { ...world.log, read } })).rejects.toThrow('no broker');
  });

  it('is over when Redis was emptied', async () => {
    const world = createWorld();
    const text = await issueFirstLink(world);
    world.empty();
    expect(await takeFirstLink(world, text)).toBe(false);
  });
});
