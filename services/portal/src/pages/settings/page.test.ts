import type { AuditEntry } from '@playline/access-keys';
import { describe, expect, it } from 'vitest';
import { openPortal, usePortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';

const written: AuditEntry[] = [];
const portal = usePortal({ audit: { append: async (entry) => void written.push(entry) } });

const signedIn = async (login: string) => {
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login, password: PASSWORD });
  return browser;
};

describe('the settings page', () => {
  it('a user changes their own name', async () => {
    await addPerson(portal, 'ada', {});
    const browser = await signedIn('ada');
    await browser.submit('/settings', 'rename', { name: 'Ada <L>', account: 'id-of-bob' });
    expect((await browser.get('/settings?done=renamed')).text).toContain('<dd>Ada &lt;L&gt;</dd>');
    expect((await browser.submit('/settings', 'rename', { name: '' })).status).toBe(400);
  });

  it('a new password ends every session and gives this browser a new one', async () => {
    const { id } = await addPerson(portal, 'changes', {});
    const [browser, other] = [await signedIn('changes'), await signedIn('changes')];
    const before = browser.cookie;
    const wanted = { password: 'another password 1', repeated: 'another password 1' };
    expect((await browser.submit('/settings', 'password', { ...wanted, repeated: 'x' })).status).toBe(400);
    expect(
      (await browser.submit('/settings', 'password', { password: 'changes1234', repeated: 'changes1234' })).status,
    ).toBe(400);
    expect((await browser.submit('/settings', 'password', wanted)).headers.get('location')).toBe(
      '/settings?done=password',
    );
    expect(browser.cookie).not.toBe(before);
    expect((await browser.get('/settings')).status).toBe(200);
    expect((await other.get('/settings')).status).toBe(303);
    expect(await portal.parts.sessions.list(id)).toHaveLength(1);
  });

  it('a new password ends every session even when the process dies before it ends them', async () => {
    const dying = await openPortal();
    await addPerson(dying, 'ada', {});
    const browsers = [dying.browser(), dying.browser()] as const;
    for (const each of browsers) await each.submit('/sign-in', 'password', { login: 'ada', password: PASSWORD });
    const { origin: _, sessions, ...shared } = dying.parts;
    const dead = await openPortal({
      ...shared,
      sessions: { ...sessions, endAll: () => Promise.reject(new Error('the process dies')) },
    });
    const changer = dead.browser();
    changer.keep(browsers[0].cookie.split('=')[1]!);
    const wanted = { password: 'another password 1', repeated: 'another password 1' };
    expect((await changer.submit('/settings', 'password', wanted)).status).toBe(500);
    expect(await sessions.list('id-of-ada')).toHaveLength(2);
    for (const each of browsers)
      expect((await each.get('/settings')).headers.get('location')).toBe('/sign-in?next=%2Fsettings');
    const again = dying.browser();
    await again.submit('/sign-in', 'password', { login: 'ada', password: 'another password 1' });
    const { text } = await again.get('/settings');
    expect(text.match(/this session/g)).toHaveLength(1);
    await dead.close();
    await dying.close();
  });

  it('removing a passkey of another account is answered like an unknown passkey', async () => {
    const bob = await addPerson(portal, 'has-passkey', {});
    const passkey = { id: 'of-bob', publicKey: 'AA', counter: 0, transports: [], name: 'Phone', createdAt: 1 };
    const change = portal.parts.accounts.changedBy({ changedBy: 'a test', requestId: 'r' }).change;
    await change(() => ({ ...bob, passkeys: [passkey] }));
    await addPerson(portal, 'curious', {});
    const browser = await signedIn('curious');
    await change((all) => ({
      ...all.find(({ login }) => login === 'curious')!,
      passkeys: [{ ...passkey, id: 'own' }],
    }));
    const remove = async (id: string) => browser.submit('/settings', 'remove-passkey', { passkey: id });
    const [other, unknown] = [await remove('of-bob'), await remove('unknown')];
    expect([other.status, unknown.status]).toEqual([404, 404]);
    expect(other.text).toContain('Your account has no such passkey.');
    expect((await remove('own')).status).toBe(303);
  });

  it('a user lists and ends their own sessions only', async () => {
    const { id } = await addPerson(portal, 'listed', {});
    const { id: other } = await addPerson(portal, 'bystander', {});
    const [browser, ended] = [await signedIn('listed'), await signedIn('listed')];
    const foreign = await signedIn('bystander');
    const [foreignSession] = await portal.parts.sessions.list(other);
    const { fields } = browser.formOf((await browser.get('/settings')).text, 'end')!;
    fields.set('session', foreignSession!.id);
    await browser.post('/settings', fields);
    expect((await foreign.get('/settings')).status).toBe(200);
    expect(await portal.parts.sessions.list(id)).toHaveLength(2);
    await browser.submit('/settings', 'end');
    expect((await ended.get('/settings')).status).toBe(303);
    expect((await browser.get('/settings')).text).toContain('this session');
    await signedIn('listed');
    await browser.submit('/settings', 'end-others');
    const endings = written.filter(({ action }) => action === 'session.end');
    expect(endings.map(({ detail }) => detail.which)).toEqual(['one', 'all others']);
    expect(await portal.parts.sessions.list(id)).toHaveLength(1);
  });

  it('the options of a new passkey are for signed-in users only', async () => {
    const { id } = await addPerson(portal, 'device', {});
    const options = JSON.parse((await (await signedIn('device')).get('/settings/passkey')).text);
    expect(options).toMatchObject({ rp: { id: 'localhost', name: 'Playline' }, user: { name: 'device' } });
    expect(Buffer.from(options.user.id, 'base64url').toString()).toBe(id);
    expect((await portal.browser().get('/settings/passkey')).status).toBe(303);
  });
});
