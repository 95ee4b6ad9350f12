import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  acceptInvitation,
  disableAccount,
  findInvited,
  findJoinable,
  invite,
  joinInvitation,
  removeAccount,
  resetAccess,
  revokeInvitation,
  setRole,
} from './invitations.ts';
import { isAtMost, ROLES } from './roles.ts';
import { createWorld, personOf } from './test/world.ts';

const HOUR = 3_600_000;
type World = ReturnType<typeof createWorld>;
const place = { userAgent: '', address: '' };
const to = (role: 'owner' | 'developer' | 'analyst', projectId = 'p', isAdministrator = false) => ({
  name: 'Somebody',
  isAdministrator,
  roles: [{ projectId, role }],
});
const notGood = { code: 'RESOURCE_NOT_FOUND' };

describe('an invitation', () => {
  it.each([
    ['is disabled', (world: World, id: string) => disableAccount(world.operator, id)],
    ['is removed', (world: World, id: string) => removeAccount(world.operator, id)],
    [
      'is no owner any more',
      (world: World, accountId: string) => setRole(world.operator, { accountId, projectId: 'p', role: 'developer' }),
    ],
  ])('lets nobody in once the owner who made it %s, neither as a new person nor by an account', async (_what, end) => {
    const world = createWorld();
    await world.addMember('other', 'owner');
    const [owner, ada] = [await world.addMember('eve', 'owner'), await world.addMember('ada', 'analyst')];
    const { text } = await invite(world.as(owner.id), to('owner'));
    expect(findInvited(world.standing(), text, world.clock.at)).not.toBeNull();
    await end(world, owner.id);
    expect(findInvited(world.standing(), text, world.clock.at)).toBeNull();
    await expect(acceptInvitation(world.operator, { text, person: personOf('new') })).rejects.toMatchObject(notGood);
    await expect(joinInvitation(world.operator, { text, accountId: ada.id })).rejects.toMatchObject(notGood);
    expect(world.find(ada.id).roles).toEqual([{ projectId: 'p', role: 'analyst' }]);
  });

  it('that an operator made, or an owner who is one still, lets people in', async () => {
    const world = createWorld();
    const owner = await world.addMember('eve', 'owner');
    for (const context of [world.operator, world.as(owner.id)]) {
      const { text } = await invite(context, to('developer'));
      const login = `new-${context.actorId ?? 'operator'}`;
      expect(await acceptInvitation(world.operator, { text, person: personOf(login) })).toMatchObject({
        state: 'live',
      });
    }
  });
});

describe('an invitation that is taken by somebody who has an account', () => {
  it('adds its roles to theirs, and of two in a project the one that may more stays', async () => {
    const { operator, addMember, find, standing } = createWorld();
    const ada = await addMember('ada', 'developer');
    const take = async (wanted: ReturnType<typeof to>) => {
      const { account, text } = await invite(operator, wanted);
      await joinInvitation(operator, { text, accountId: ada.id });
      expect(find(account.id)).toMatchObject({ state: 'disabled', name: '', roles: [], invitation: null });
    };
    await take(to('analyst', 'q'));
    expect(find(ada.id).roles).toEqual([
      { projectId: 'p', role: 'developer' },
      { projectId: 'q', role: 'analyst' },
    ]);
    await take(to('analyst'));
    expect(find(ada.id).roles).toContainEqual({ projectId: 'p', role: 'developer' });
    await take(to('owner', 'p', true));
    expect(find(ada.id)).toMatchObject({ isAdministrator: true, login: 'ada', passwordHash: ada.passwordHash });
    expect(find(ada.id).roles).toHaveLength(2);
    expect(standing().filter(({ state }) => state === 'live')).toHaveLength(1);
  });

  it('gives in each project what may more of what they had and what they get, whatever both are', async () => {
    const rolesOf = fc.uniqueArray(
      fc.record({ projectId: fc.constantFrom('p', 'q', 'r', 's'), role: fc.constantFrom(...ROLES) }),
      { selector: ({ projectId }) => projectId, minLength: 1 },
    );
    await fc.assert(
      fc.asyncProperty(rolesOf, rolesOf, async (own, given) => {
        const { operator, find } = createWorld();
        const inviteTo = async (roles: typeof own) =>
          (await invite(operator, { name: 'X', roles, isAdministrator: false })).text;
        const ada = await acceptInvitation(operator, { text: await inviteTo(own), person: personOf('ada') });
        await joinInvitation(operator, { text: await inviteTo(given), accountId: ada.id });
        const { roles } = find(ada.id);
        const projects = new Set([...own, ...given].map(({ projectId }) => projectId));
        expect(new Set(roles.map(({ projectId }) => projectId))).toEqual(projects);
        expect(roles).toHaveLength(projects.size);
        for (const { projectId, role } of [...own, ...given])
          expect(isAtMost(role, roles.find((each) => each.projectId === projectId)!.role)).toBe(true);
        for (const role of roles) expect([...own, ...given]).toContainEqual(role);
      }),
      { numRuns: 100 },
    );
  });

  it('ends their sessions, since their rights have changed', async () => {
    const { operator, addMember, sessions } = createWorld();
    const ada = await addMember('ada', 'analyst');
    const { text: session } = await sessions.create({ accountId: ada.id, ...place });
    const { text } = await invite(operator, to('owner'));
    await joinInvitation(operator, { text, accountId: ada.id });
    expect(await sessions.find(session)).toBeNull();
  });

  it('is good once, whoever else has the link, for 72 hours, and until it is revoked', async () => {
    const { operator, addMember, clock, standing } = createWorld();
    const [ada, bob] = [await addMember('ada', 'analyst'), await addMember('bob', 'analyst')];
    const { text } = await invite(operator, to('owner'));
    const all = await Promise.allSettled([
      joinInvitation(operator, { text, accountId: ada.id }),
      joinInvitation(operator, { text, accountId: bob.id }),
      acceptInvitation(operator, { text, person: personOf('eve') }),
    ]);
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    const [late, revoked] = [await invite(operator, to('owner')), await invite(operator, to('owner'))];
    await revokeInvitation(operator, revoked.account.id);
    clock.at += 72 * HOUR;
    for (const each of [late.text, revoked.text, text]) {
      expect(findJoinable(standing(), { text: each, accountId: bob.id }, clock.at)).toBeNull();
      await expect(joinInvitation(operator, { text: each, accountId: bob.id })).rejects.toMatchObject(notGood);
    }
  });

  it('is no link with which somebody gets back in: that is of their account alone', async () => {
    const { operator, addMember } = createWorld();
    const [ada, bob] = [await addMember('ada', 'owner'), await addMember('bob', 'analyst')];
    const { text } = await resetAccess(operator, ada.id);
    await expect(joinInvitation(operator, { text, accountId: bob.id })).rejects.toMatchObject(notGood);
  });

  it('is not taken by an account that is disabled', async () => {
    const { operator, addMember, standing, clock } = createWorld();
    const ada = await addMember('ada', 'analyst');
    await disableAccount(operator, ada.id);
    const { text } = await invite(operator, to('owner'));
    await expect(joinInvitation(operator, { text, accountId: ada.id })).rejects.toMatchObject({
      code: 'AUTHENTICATION_ERROR',
    });
    expect(findInvited(standing(), text, clock.at)).not.toBeNull();
  });

  it.each([1, 2, 3])(
    'dies at its %i. record and is good for the same account alone, which gets all of it',
    async (at) => {
      const { operator, addMember, find, log, standing, clock } = createWorld();
      const [ada, bob] = [await addMember('ada', 'analyst'), await addMember('bob', 'analyst')];
      const { account, text } = await invite(operator, to('owner'));
      const { append } = log;
      let left = at;
      log.append = async (record) => {
        left--;
        if (left === 0) throw new Error('the process dies');
        return append(record);
      };
      await expect(joinInvitation(operator, { text, accountId: ada.id })).rejects.toThrow('the process dies');
      log.append = append;
      if (at > 1) {
        expect(findInvited(standing(), text, clock.at)).toBeNull();
        await expect(joinInvitation(operator, { text, accountId: bob.id })).rejects.toMatchObject(notGood);
        await expect(acceptInvitation(operator, { text, person: personOf('eve') })).rejects.toMatchObject(notGood);
      }
      await joinInvitation(operator, { text, accountId: ada.id });
      expect(find(ada.id).roles).toEqual([{ projectId: 'p', role: 'owner' }]);
      expect(find(account.id)).toMatchObject({ state: 'disabled', roles: [] });
      expect(find(bob.id).roles).toEqual([{ projectId: 'p', role: 'analyst' }]);
    },
  );
});
