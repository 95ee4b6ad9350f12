import { describe, expect, it } from 'vitest';
import { acceptFirstLink, isFirstLink, issueFirstLink, type NewPerson, resetAccess } from './invitations.ts';
import { createWorld, personOf } from './test/world.ts';

const accept = (world: ReturnType<typeof createWorld>, text: string, person: NewPerson = personOf('root')) =>
  acceptFirstLink({ ...world.operator, oneTimeTokens: world.oneTimeTokens }, { text, person });

describe('the link that creates the first administrator', () => {
  it('works once within 15 minutes, and checking the link does not consume it', async () => {
    const world = createWorld();
    const text = await issueFirstLink(world);
    for (const _ of [1, 2]) expect(await isFirstLink(world, text)).toBe(true);
    const logins = ['ada', 'bob', 'eve'];
    const results = await Promise.allSettled(logins.map((login) => accept(world, text, personOf(login))));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    for (const each of results.slice(1)) expect(each).toMatchObject({ reason: { code: 'RESOURCE_NOT_FOUND' } });
    expect(await isFirstLink(world, text)).toBe(false);
    const later = createWorld();
    const expired = await issueFirstLink(later);
    later.clock.at += 15 * 60_000;
    await expect(accept(later, expired)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    expect(later.latest()).toEqual([]);
  });

  it('stays valid after a failed attempt', async () => {
    const world = createWorld();
    await world.addMember('ada', 'analyst');
    const text = await issueFirstLink(world);
    const { append } = world.log;
    for (const wrong of [
      () => accept(world, text, personOf('ADA')),
      () => accept(world, text, { ...personOf('root'), passwordHash: null }),
      () => accept(world, text, { ...personOf('root'), name: '' }),
      () => {
        world.log.append = () => Promise.reject(new Error('no broker responds'));
        return accept(world, text);
      },
    ]) {
      await expect(wrong()).rejects.toThrow();
      expect(await isFirstLink(world, text)).toBe(true);
    }
    world.log.append = append;
    expect(await accept(world, text)).toMatchObject({ login: 'root', isAdministrator: true });
    expect(await isFirstLink(world, text)).toBe(false);
  });

  it('is rejected and consumed if an administrator already exists', async () => {
    const world = createWorld();
    const text = await issueFirstLink(world);
    await world.addAdministrator();
    await expect(accept(world, text, personOf('eve'))).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    expect(await isFirstLink(world, text)).toBe(false);
    expect(world.latest()).toHaveLength(1);
  });

  it('is not issued while the log contains an administrator, even if Redis is empty or out of date', async () => {
    const world = createWorld();
    await resetAccess(world.operator, (await world.addAdministrator()).id);
    world.view.empty();
    await expect(issueFirstLink(world)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    await world.view.update({ changes: [], moves: [{ partition: 0, from: null, to: 2 }], completeIn: '0' });
    expect((await world.view.readSince(null)).records).toEqual([]);
    await expect(issueFirstLink(world)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
  });

  it('is not issued if the log cannot be read', async () => {
    const world = createWorld();
    const read = () => Promise.reject(new Error('no broker responds'));
    await expect(issueFirstLink({ ...world, log: { ...world.log, bounds: read } })).rejects.toThrow('no broker');
    await world.addMember('ada', 'owner');
    await expect(issueFirstLink({ ...world, log: { ...world.log, read } })).rejects.toThrow('no broker');
  });

  it('is invalid after Redis is emptied', async () => {
    const world = createWorld();
    const text = await issueFirstLink(world);
    world.empty();
    await expect(accept(world, text)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  });
});
