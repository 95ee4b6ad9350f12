import type { AuditEntry } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { usePortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';

const written: AuditEntry[] = [];
const portal = usePortal({ audit: { append: async (entry) => void written.push(entry) } });

const signIn = async (login: string) => {
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login, password: PASSWORD });
  return browser;
};

it('users can change only their own name', async () => {
  await addPerson(portal, 'ada', {});
  const browser = await signIn('ada');
  await browser.submit('/settings', 'rename', { name: 'Ada <L>', account: 'id-of-bob' });
  expect((await browser.get('/settings?done=renamed')).text).toContain('<dd>Ada &lt;L&gt;</dd>');
  expect((await browser.submit('/settings', 'rename', { name: '' })).status).toBe(400);
});

it('changing the password ends all sessions and creates a new session for the current browser', async () => {
  const { id } = await addPerson(portal, 'changes', {});
  const [browser, otherBrowser] = [await signIn('changes'), await signIn('changes')];
  const before = browser.cookie;
  const values = { password: 'another password 1', repeated: 'another password 1' };
  const submit = (fields: Record<string, string>) => browser.submit('/settings', 'password', fields);
  expect((await submit({ ...values, repeated: 'x' })).status).toBe(400);
  expect((await submit({ password: 'changes1234', repeated: 'changes1234' })).status).toBe(400);
  expect((await submit(values)).headers.get('location')).toBe('/settings?done=password');
  expect(browser.cookie).not.toBe(before);
  expect((await browser.get('/settings')).status).toBe(200);
  expect((await otherBrowser.get('/settings')).status).toBe(303);
  expect(await portal.parts.sessions.list(id)).toHaveLength(1);
});

it('users can list and end only their own sessions', async () => {
  const { id } = await addPerson(portal, 'listed', {});
  const { id: other } = await addPerson(portal, 'bystander', {});
  const [browser, ended] = [await signIn('listed'), await signIn('listed')];
  const otherUser = await signIn('bystander');
  const [otherSession] = await portal.parts.sessions.list(other);
  const { fields } = browser.formOf((await browser.get('/settings')).text, 'end')!;
  fields.set('session', otherSession!.id);
  await browser.post('/settings', fields);
  expect((await otherUser.get('/settings')).status).toBe(200);
  expect(await portal.parts.sessions.list(id)).toHaveLength(2);
  await browser.submit('/settings', 'end');
  expect((await ended.get('/settings')).status).toBe(303);
  expect((await browser.get('/settings')).text).toContain('this session');
  await signIn('listed');
  await browser.submit('/settings', 'end-others');
  const endings = written.filter(({ action }) => action === 'session.end');
  expect(endings.map(({ detail }) => detail.which)).toEqual(['one', 'all others']);
  expect(await portal.parts.sessions.list(id)).toHaveLength(1);
});
