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

const FORBIDDEN = { code: 'AUTHENTICATION_ERROR' };
const HOUR = 3_600_000;
type World = ReturnType<typeof createWorld>;
const client = { userAgent: '', address: '' };
const to = (role: 'owner' | 'developer' | 'analyst', projectId = 'p', isAdministrator = false) => ({
  name: 'Person',
  isAdministrator,
  roles: [{ projectId, role }],
});
const NOT_FOUND = { code: 'RESOURCE_NOT_FOUND' };

describe('an invitation', () => {
  it.each([
    ['is disabled', (world: World, id: string) => disableAccount(world.operator, id)],
    ['is removed', (world: World, id: string) => removeAccount(world.operator, id)],
    [
      'is no longer an owner',
      (world: World, accountId: string) => setRole(world.operator, { accountId, projectId: 'p', role: 'developer' }),
    ],
  ])('is invalid for new people and existing accounts once the owner who created it %s', async (_what, end) => {
    const world = createWorld();
    await world.addMember('other', 'owner');
    const [owner, ada] = [await world.addMember('eve', 'owner'), await world.addMember('ada', 'analyst')];
    const { text } = await invite(world.as(owner.id), to('owner'));
    expect(findInvited(world.latest(), text, world.clock.at)).not.toBeNull();
    await end(world, owner.id);
    expect(findInvited(world.latest(), text, world.clock.at)).toBeNull();
    await expect(acceptInvitation(world.operator, { text, person: personOf('new') })).rejects.toMatchObject(NOT_FOUND);
    await expect(joinInvitation(world.operator, { text, accountId: ada.id })).rejects.toMatchObject(NOT_FOUND);
    expect(world.find(ada.id).roles).toEqual([{ projectId: 'p', role: 'analyst' }]);
  });
});

describe('an invitation accepted by an existing account', () => {
  it("grants its roles, ends the account's sessions, and is removed", async () => {
    const { operator, addMember, find, sessions } = createWorld();
    const ada = await addMember('ada', 'developer');
    const { text: session } = await sessions.create({ accountId: ada.id, ...client });
    const { account, text } = await invite(operator, to('owner', 'p', true));
    await joinInvitation(operator, { text, accountId: ada.id });
    expect(find(ada.id)).toMatchObject({ isAdministrator: true, login: 'ada', passwordHash: ada.passwordHash });
    expect(find(account.id)).toMatchObject({ state: 'disabled', name: '', roles: [], invitation: null });
    expect(await sessions.find(session)).toBeNull();
  });

  it('leaves the account with the stronger role in each project', async () => {
    const rolesOf = fc.uniqueArray(
      fc.record({ projectId: fc.constantFrom('p', 'q', 'r', 's'), role: fc.constantFrom(...ROLES) }),
      { selector: ({ projectId }) => projectId, minLength: 1 },
    );
    await fc.assert(
      fc.asyncProperty(rolesOf, rolesOf, async (existing, granted) => {
        const { operator, find } = createWorld();
        const inviteTo = async (roles: typeof existing) =>
          (await invite(operator, { name: 'X', roles, isAdministrator: false })).text;
        const ada = await acceptInvitation(operator, { text: await inviteTo(existing), person: personOf('ada') });
        await joinInvitation(operator, { text: await inviteTo(granted), accountId: ada.id });
        const { roles } = find(ada.id);
        const projects = new Set([...existing, ...granted].map(({ projectId }) => projectId));
        expect(new Set(roles.map(({ projectId }) => projectId))).toEqual(projects);
        expect(roles).toHaveLength(projects.size);
        for (const { projectId, role } of [...existing, ...granted])
          expect(isAtMost(role, roles.find((each) => each.projectId === projectId)!.role)).toBe(true);
        for (const role of roles) expect([...existing, ...granted]).toContainEqual(role);
      }),
      { numRuns: 100 },
    );
  });

  it('works once, and becomes invalid after 72 hours or when revoked', async () => {
    const { operator, addMember, clock, latest } = createWorld();
    const [ada, bob] = [await addMember('ada', 'analyst'), await addMember('bob', 'analyst')];
    const { text } = await invite(operator, to('owner'));
    const results = await Promise.allSettled([
      joinInvitation(operator, { text, accountId: ada.id }),
      joinInvitation(operator, { text, accountId: bob.id }),
      acceptInvitation(operator, { text, person: personOf('eve') }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    const [expired, revoked] = [await invite(operator, to('owner')), await invite(operator, to('owner'))];
    await revokeInvitation(operator, revoked.account.id);
    clock.at += 72 * HOUR;
    for (const each of [expired.text, revoked.text, text]) {
      expect(findJoinable(latest(), { text: each, accountId: bob.id }, clock.at)).toBeNull();
      await expect(joinInvitation(operator, { text: each, accountId: bob.id })).rejects.toMatchObject(NOT_FOUND);
    }
  });

  it('cannot use a reset link, which works only for the account that was reset', async () => {
    const { operator, addMember } = createWorld();
    const [ada, bob] = [await addMember('ada', 'owner'), await addMember('bob', 'analyst')];
    const { text } = await resetAccess(operator, ada.id);
    await expect(joinInvitation(operator, { text, accountId: bob.id })).rejects.toMatchObject(NOT_FOUND);
  });

  it('is rejected for a disabled account', async () => {
    const { operator, addMember, latest, clock } = createWorld();
    const ada = await addMember('ada', 'analyst');
    await disableAccount(operator, ada.id);
    const { text } = await invite(operator, to('owner'));
    await expect(joinInvitation(operator, { text, accountId: ada.id })).rejects.toMatchObject(FORBIDDEN);
    expect(findInvited(latest(), text, clock.at)).not.toBeNull();
  });

  it.each([1, 2, 3])('can be completed only by the same account after an interruption at record %i', async (at) => {
    const { operator, addMember, find, log, latest, clock } = createWorld();
    const [ada, bob] = [await addMember('ada', 'analyst'), await addMember('bob', 'analyst')];
    const { account, text } = await invite(operator, to('owner'));
    const { append } = log;
    let remaining = at;
    log.append = async (record) => {
      remaining--;
      if (remaining === 0) throw new Error('the process crashed');
      return append(record);
    };
    await expect(joinInvitation(operator, { text, accountId: ada.id })).rejects.toThrow('the process crashed');
    log.append = append;
    if (at > 1) {
      expect(findInvited(latest(), text, clock.at)).toBeNull();
      await expect(joinInvitation(operator, { text, accountId: bob.id })).rejects.toMatchObject(NOT_FOUND);
      await expect(acceptInvitation(operator, { text, person: personOf('eve') })).rejects.toMatchObject(NOT_FOUND);
    }
    await joinInvitation(operator, { text, accountId: ada.id });
    expect(find(ada.id).roles).toEqual([{ projectId: 'p', role: 'owner' }]);
    expect(find(account.id)).toMatchObject({ state: 'disabled', roles: [] });
    expect(find(bob.id).roles).toEqual([{ projectId: 'p', role: 'analyst' }]);
  });
});
