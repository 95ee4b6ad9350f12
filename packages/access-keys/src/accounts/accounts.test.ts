import { describe, expect, it } from 'vitest';
import {
  acceptInvitation,
  createFirstAdministrator,
  disableAccount,
  enableAccount,
  findInvited,
  invite,
  removeAccount,
  resetAccess,
  revokeInvitation,
  setAdministrator,
  setRole,
} from './invitations.ts';
import { addPasskey, recordPasskeyUse, removePasskey, renameAccount, setPassword } from './sign-in.ts';
import { createWorld, HASH, passkeyOf, personOf } from './test/world.ts';

const CONFLICT = { code: 'CONFLICT_ERROR' };
const HOUR = 3_600_000;
const owners = { name: 'Bob', roles: [{ projectId: 'p', role: 'owner' as const }], isAdministrator: false };
const client = { userAgent: '', address: '' };

describe('the first administrator', () => {
  it('is created once, even with concurrent calls or after Redis is emptied', async () => {
    const { operator, view, latest } = createWorld();
    const create = (login: string) => createFirstAdministrator(operator, personOf(login));
    const results = await Promise.allSettled(['ada', 'bob', 'eve'].map(create));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    view.empty();
    await expect(create('mallory')).rejects.toMatchObject(CONFLICT);
    expect(latest()).toMatchObject([{ login: 'ada', isAdministrator: true, state: 'live', passwordHash: HASH }]);
  });
});

describe('an invitation', () => {
  it('creates an account for the first person who accepts the invitation', async () => {
    const { operator, latest } = createWorld();
    const { account, text } = await invite(operator, owners);
    expect(account).toMatchObject({ state: 'invited', login: '', roles: owners.roles });
    expect(JSON.stringify(latest())).not.toContain(text);
    const accept = (login: string) => acceptInvitation(operator, { text, person: personOf(login) });
    const results = await Promise.allSettled(['bob', 'eve'].map(accept));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(latest()).toMatchObject([{ id: account.id, state: 'live', login: 'bob', invitation: null }]);
  });

  it('becomes invalid after 72 hours or when it is revoked', async () => {
    const { operator, clock, latest } = createWorld();
    const [first, second] = [await invite(operator, owners), await invite(operator, owners)];
    await revokeInvitation(operator, second.account.id);
    clock.at += 72 * HOUR - 1;
    expect(findInvited(latest(), first.text, clock.at)?.id).toBe(first.account.id);
    clock.at += 1;
    for (const { text } of [first, second]) {
      expect(findInvited(latest(), text, clock.at)).toBeNull();
      const accepted = acceptInvitation(operator, { text, person: personOf('bob') });
      await expect(accepted).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    }
    await expect(revokeInvitation(operator, second.account.id)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  });

  it('cannot grant more permissions than the inviter has', async () => {
    const { as, addAdministrator, addMember } = createWorld();
    const root = await addAdministrator();
    const [owner, developer] = [await addMember('olga', 'owner'), await addMember('dan', 'developer')];
    const to = (role: 'owner' | 'analyst', projectId: string, isAdministrator = false) => ({
      name: 'Eve',
      isAdministrator,
      roles: [{ projectId, role }],
    });
    for (const [actor, wanted] of [
      [developer, to('analyst', 'p')],
      [owner, to('analyst', 'other')],
      [owner, to('owner', 'p', true)],
      [owner, { ...to('owner', 'p'), roles: ['p', 'q'].map((projectId) => ({ projectId, role: 'owner' as const })) }],
    ] as const)
      await expect(invite(as(actor.id), wanted)).rejects.toMatchObject({ code: 'AUTHENTICATION_ERROR' });
    await invite(as(owner.id), to('owner', 'p'));
    const { account } = await invite(as(root.id), to('owner', 'other', true));
    await expect(revokeInvitation(as(owner.id), account.id)).rejects.toMatchObject({ code: 'AUTHENTICATION_ERROR' });
    await disableAccount(as(root.id), root.id).catch(() => {});
    await addMember('pia', 'owner');
    await disableAccount(as(root.id), owner.id);
    await expect(invite(as(owner.id), to('analyst', 'p'))).rejects.toMatchObject({ code: 'AUTHENTICATION_ERROR' });
  });

  it('requires at least one role, and allows only one role per project', async () => {
    const { operator } = createWorld();
    for (const roles of [[], [...owners.roles, { projectId: 'p', role: 'analyst' as const }]])
      await expect(invite(operator, { ...owners, roles })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  });

  it('requires an unused login, compared case-insensitively, and a password or a passkey', async () => {
    const { operator, addMember } = createWorld();
    const ada = await addMember('ada', 'owner');
    await addPasskey(operator, { accountId: ada.id, passkey: passkeyOf('k') });
    const { text } = await invite(operator, owners);
    const accept = (person: object) => acceptInvitation(operator, { text, person: { ...personOf('bob'), ...person } });
    await expect(accept({ login: 'ＡＤＡ' })).rejects.toMatchObject(CONFLICT);
    await expect(accept({ passwordHash: null })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    await expect(accept({ passkey: passkeyOf('k') })).rejects.toMatchObject(CONFLICT);
    expect(await accept({ passwordHash: null, passkey: passkeyOf('l') })).toMatchObject({ state: 'live' });
  });
});

describe('an access reset', () => {
  it('creates a link that works once, and removes all credentials and sessions', async () => {
    const { operator, as, addMember, sessions } = createWorld();
    const ada = await addMember('ada', 'owner');
    await addPasskey(operator, { accountId: ada.id, passkey: passkeyOf('k') });
    const { text: session } = await sessions.create({ accountId: ada.id, ...client });
    await expect(resetAccess(as(ada.id), ada.id)).rejects.toMatchObject({ code: 'AUTHENTICATION_ERROR' });
    const { account, text } = await resetAccess(operator, ada.id);
    expect(account).toMatchObject({ state: 'live', login: 'ada', passwordHash: null, passkeys: [] });
    expect(await sessions.find(session)).toBeNull();
    const reset = await acceptInvitation(operator, { text, person: { ...personOf('eve'), passwordHash: 'new' } });
    expect(reset).toMatchObject({ id: ada.id, login: 'ada', passwordHash: 'new', roles: ada.roles, invitation: null });
    await expect(acceptInvitation(operator, { text, person: personOf('eve') })).rejects.toThrow('was used');
  });

  it('is rejected for a disabled account, and disabling an account revokes its link', async () => {
    const { operator, addMember, latest, clock } = createWorld();
    const ada = await addMember('ada', 'analyst');
    const { text } = await resetAccess(operator, ada.id);
    await disableAccount(operator, ada.id);
    expect(findInvited(latest(), text, clock.at)).toBeNull();
    await expect(resetAccess(operator, ada.id)).rejects.toMatchObject(CONFLICT);
    expect(await enableAccount(operator, ada.id)).toMatchObject({ state: 'live', invitation: null });
  });
});

describe('changing permissions or credentials', () => {
  it('requires that the acting account has the permission according to the log', async () => {
    const { as, addAdministrator, addMember } = createWorld();
    const root = await addAdministrator();
    const owner = await addMember('olga', 'owner');
    const developer = await addMember('dan', 'developer');
    const outsider = await addMember('sam', 'owner', 'other');
    const role = (accountId: string, projectId = 'p') => ({ accountId, projectId, role: 'analyst' as const });
    for (const change of [
      () => setRole(as(developer.id), role(owner.id)),
      () => setRole(as(outsider.id), role(developer.id)),
      () => setRole(as(owner.id), role(outsider.id)),
      () => setAdministrator(as(owner.id), { accountId: owner.id, isAdministrator: true }),
      () => disableAccount(as(owner.id), developer.id),
      () => removeAccount(as(owner.id), developer.id),
      () => setPassword(as(root.id), { accountId: owner.id, passwordHash: 'x' }),
      () => addPasskey(as(root.id), { accountId: owner.id, passkey: passkeyOf('k') }),
      () => renameAccount(as(root.id), { accountId: owner.id, name: 'X' }),
      () => setRole(as('unknown'), role(developer.id)),
    ])
      await expect(change()).rejects.toMatchObject({ code: 'AUTHENTICATION_ERROR' });
    expect(await setRole(as(owner.id), role(developer.id))).toMatchObject({ roles: [{ role: 'analyst' }] });
    expect(await setRole(as(root.id), role(outsider.id))).toMatchObject({ roles: [{ projectId: 'other' }, {}] });
    expect(await setRole(as(owner.id), { ...role(outsider.id), role: null })).toMatchObject({ roles: outsider.roles });
  });

  it("ends the account's sessions even if the view update fails", async () => {
    const { operator, addMember, sessions, view, find } = createWorld();
    const ada = await addMember('ada', 'owner');
    const { text } = await sessions.create({ accountId: ada.id, ...client });
    view.update = () => Promise.reject(new Error('Redis is unavailable'));
    await expect(resetAccess(operator, ada.id)).rejects.toThrow('may not have it');
    expect([find(ada.id).passwordHash, await sessions.find(text)]).toEqual([null, null]);
  });

  it('cannot remove the last credential', async () => {
    const { operator, addMember } = createWorld();
    const { id: accountId } = await addMember('ada', 'analyst');
    await expect(setPassword(operator, { accountId, passwordHash: null })).rejects.toMatchObject(CONFLICT);
    await addPasskey(operator, { accountId, passkey: passkeyOf('k') });
    await setPassword(operator, { accountId, passwordHash: null });
    await expect(removePasskey(operator, { accountId, passkeyId: 'k' })).rejects.toMatchObject(CONFLICT);
  });

  it('accepts only increasing passkey counters, unless the device always sends 0', async () => {
    const { operator, addMember, store, log } = createWorld();
    const { id: accountId } = await addMember('ada', 'analyst');
    for (const passkey of [passkeyOf('counts', 5), passkeyOf('no-counter')])
      await addPasskey(operator, { accountId, passkey });
    const use = (passkeyId: string, counter: number) => recordPasskeyUse({ store }, { accountId, passkeyId, counter });
    const records = log.appended.length;
    expect(await use('no-counter', 0)).toBeNull();
    expect(log.appended).toHaveLength(records);
    for (const counter of [0, 4, 5])
      await expect(use('counts', counter)).rejects.toMatchObject({ code: 'AUTHENTICATION_ERROR' });
    expect((await use('counts', 6))?.passkeys[0]).toMatchObject({ id: 'counts', counter: 6 });
    await expect(use('counts', 6)).rejects.toThrow('may be a copy');
    await disableAccount(operator, accountId);
    await expect(use('counts', 7)).rejects.toMatchObject({ code: 'AUTHENTICATION_ERROR' });
  });
});

describe('a removed account', () => {
  it('retains only its id, cannot be changed, and releases its login', async () => {
    const { operator, addMember, find } = createWorld();
    const ada = await addMember('ada', 'analyst');
    await addPasskey(operator, { accountId: ada.id, passkey: passkeyOf('k') });
    await removeAccount(operator, ada.id);
    const erased = { name: '', login: '', roles: [], passkeys: [], passwordHash: null };
    expect(find(ada.id)).toMatchObject({ ...erased, state: 'disabled' });
    for (const change of [enableAccount, disableAccount, removeAccount, resetAccess])
      await expect(change(operator, ada.id)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    expect((await addMember('ada', 'analyst')).id).not.toBe(ada.id);
  });
});
