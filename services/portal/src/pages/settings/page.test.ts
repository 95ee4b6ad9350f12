import type { AuditEntry } from '@playline/access-keys';
import { createMemorySessions } from '@playline/access-keys/test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';

let portal: TestPortal;
const noted: AuditEntry[] = [];
beforeAll(async () => {
  portal = await openPortal({ audit: { append: async (entry) => void noted.push(entry) } });
});
afterAll(() => portal.close());

const signedIn = async (login: string) => {
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login, password: PASSWORD });
  return browser;
};

describe('settings', () => {
  it('change the name and nothing of anybody else', async () => {
    await addPerson(portal, 'ada', {});
    const browser = await signedIn('ada');
    await browser.submit('/settings', 'rename', { name: 'Ada <L>', account: 'id-of-bob' });
    expect((await browser.get('/settings?done=renamed')).text).toContain('<dd>Ada &lt;L&gt;</dd>');
    expect((await browser.submit('/settings', 'rename', { name: '' })).status).toBe(400);
  });

  it('change the password; every session ends, and this browser gets another one', async () => {
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

  it('end every session with the change of a password also where the process dies before it has ended them', async () => {
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
    expect([text.match(/<td>this one<\/td>/g), text.includes('End this one')]).toEqual([['<td>this one</td>'], false]);
    await dead.close();
    await dying.close();
  });

  it('say of a passkey of somebody else what they say of one that nobody has', async () => {
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
    const [theirs, nobodys] = [await remove('of-bob'), await remove('of-nobody')];
    expect([theirs.status, nobodys.status]).toEqual([404, 404]);
    expect(theirs.text).toContain('You have no such passkey.');
    expect((await remove('own')).status).toBe(303);
  });

  it('ask for a sign-in of the last ten minutes before credentials change', async () => {
    let behindMs = 10 * 60_000 + 1000;
    const { sessions, oneTimeTexts } = createMemorySessions({ wallClockMs: () => Date.now() - behindMs });
    const stale = await openPortal({ sessions, oneTime: oneTimeTexts });
    const browser = await stale.signIn();
    behindMs = 0;
    const { headers } = await browser.submit('/settings', 'password', { password: PASSWORD, repeated: PASSWORD });
    await stale.close();
    expect(headers.get('location')).toBe('/sign-in?again=1&next=%2Fsettings');
  });

  it('list the sessions and end one, and none of anybody else', async () => {
    const { id } = await addPerson(portal, 'listed', {});
    const { id: other } = await addPerson(portal, 'bystander', {});
    const [browser, ended] = [await signedIn('listed'), await signedIn('listed')];
    const foreign = await signedIn('bystander');
    const [theirs] = await portal.parts.sessions.list(other);
    const { fields } = browser.formOf((await browser.get('/settings')).text, 'end')!;
    fields.set('session', theirs!.id);
    await browser.post('/settings', fields);
    expect((await foreign.get('/settings')).status).toBe(200);
    expect(await portal.parts.sessions.list(id)).toHaveLength(2);
    await browser.submit('/settings', 'end');
    expect((await ended.get('/settings')).status).toBe(303);
    expect((await browser.get('/settings')).text).toContain('this one');
    await signedIn('listed');
    await browser.submit('/settings', 'end-others');
    const endings = noted.filter(({ action }) => action === 'session.end');
    expect(endings.map(({ detail }) => detail.which)).toEqual(['one', 'all others']);
    expect(await portal.parts.sessions.list(id)).toHaveLength(1);
  });

  it('say what a browser is to make a passkey of, to whoever has signed in alone', async () => {
    const { id } = await addPerson(portal, 'device', {});
    const options = JSON.parse((await (await signedIn('device')).get('/settings/passkey')).text);
    expect(options).toMatchObject({ rp: { id: 'localhost', name: 'Playline' }, user: { name: 'device' } });
    expect(Buffer.from(options.user.id, 'base64url').toString()).toBe(id);
    expect((await portal.browser().get('/settings/passkey')).status).toBe(303);
  });
});
