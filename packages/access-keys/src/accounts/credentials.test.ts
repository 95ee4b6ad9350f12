import { describe, expect, it } from 'vitest';
import { disableAccount, enableAccount, resetAccess, setAdministrator, setRole } from './invitations.ts';
import { isSessionOf } from './sessions.ts';
import { addPasskey, linkOpenId, removePasskey, renameAccount, setPassword, unlinkOpenId } from './sign-in.ts';
import { createWorld, passkeyOf } from './test/world.ts';

const FORBIDDEN = { code: 'AUTHENTICATION_ERROR' };
const client = { userAgent: '', address: '' };

describe('changing permissions or credentials', () => {
  it('invalidates sessions through the account record, even if the process crashes before deleting them', async () => {
    const world = createWorld();
    const { addMember, find, sessions } = world;
    await world.addAdministrator();
    await addMember('olga', 'owner');
    const { id: accountId } = await addMember('dan', 'developer');
    const crashing = { ...world.operator, sessions: { endAll: () => Promise.reject(new Error('process crashed')) } };
    const openId = { issuer: 'https://id.example', subject: 'dan' };
    for (const change of [
      () => setPassword(crashing, { accountId, passwordHash: 'x' }),
      () => addPasskey(crashing, { accountId, passkey: passkeyOf('k') }),
      () => removePasskey(crashing, { accountId, passkeyId: 'k' }),
      () => linkOpenId(crashing, { accountId, openId }),
      () => unlinkOpenId(crashing, { accountId }),
      () => setRole(crashing, { accountId, projectId: 'p', role: 'analyst' }),
      () => setAdministrator(crashing, { accountId, isAdministrator: true }),
      () => disableAccount(crashing, accountId),
      () => enableAccount(crashing, accountId),
      () => resetAccess(crashing, accountId),
    ]) {
      const { text, session } = await sessions.create({
        accountId,
        accountRevision: find(accountId).revision,
        ...client,
      });
      expect(isSessionOf(session, find(accountId))).toBe(true);
      await expect(change()).rejects.toThrow('process crashed');
      expect(await sessions.find(text)).toEqual(session);
      expect(isSessionOf(session, find(accountId))).toBe(false);
    }
  });

  it('invalidates no sessions if only the name changes', async () => {
    const { operator, addMember, find, sessions } = createWorld();
    const { id: accountId } = await addMember('ada', 'owner');
    const { session } = await sessions.create({ accountId, accountRevision: find(accountId).revision, ...client });
    await renameAccount(operator, { accountId, name: 'Ada L' });
    expect(isSessionOf(session, find(accountId))).toBe(true);
    expect(isSessionOf(session, { ...find(accountId), id: 'another' })).toBe(false);
  });

  it('links a provider identity, identified by issuer and subject, to one account only', async () => {
    const { operator, addMember, as } = createWorld();
    const [ada, bob] = [await addMember('ada', 'analyst'), await addMember('bob', 'analyst')];
    const openId = { issuer: 'https://id.example', subject: '1' };
    const link = (accountId: string, wanted = openId) => linkOpenId(operator, { accountId, openId: wanted });
    await link(ada.id);
    await expect(link(bob.id)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    await expect(link(ada.id, { ...openId, subject: '2' })).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    await link(bob.id, { ...openId, issuer: 'https://id.example/' });
    await expect(linkOpenId(as(ada.id), { accountId: bob.id, openId })).rejects.toMatchObject(FORBIDDEN);
    await setPassword(operator, { accountId: ada.id, passwordHash: null });
    await expect(unlinkOpenId(operator, { accountId: ada.id })).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
  });

  it("cannot remove another account's passkey or reveal that the passkey exists", async () => {
    const { operator, addMember, find } = createWorld();
    const [ada, bob] = [await addMember('ada', 'analyst'), await addMember('bob', 'analyst')];
    await addPasskey(operator, { accountId: bob.id, passkey: passkeyOf('key-of-bob') });
    const remove = (passkeyId: string) =>
      removePasskey(operator, { accountId: ada.id, passkeyId }).catch((fault) => fault);
    const [existing, unknown] = [await remove('key-of-bob'), await remove('unknown')];
    expect(existing).toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    expect(existing.message).toBe(unknown.message);
    expect(find(bob.id).passkeys).toHaveLength(1);
  });
});
