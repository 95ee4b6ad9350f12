import type { AuditEntry } from '@playline/access-keys';
import { createLogger } from '@playline/runtime';
import { expect, it, onTestFinished } from 'vitest';
import { openPortal } from './test/open-portal.ts';
import { addPerson, PASSWORD } from './test/people.ts';

async function open(append?: () => Promise<never>) {
  const entries: AuditEntry[] = [];
  const lines: string[] = [];
  const logger = createLogger({ service: 'portal', level: 'info' }, { write: (line: string) => lines.push(line) });
  const audit = { append: append ?? (async (entry: AuditEntry) => void entries.push(entry)) };
  const portal = await openPortal({ audit, logger });
  onTestFinished(() => portal.close());
  return { portal, entries, lines };
}

/** Contains characters that cannot occur in a random hexadecimal id. */
const LOGIN = 'some-login';

it('the audit log records sign-ins, sign-outs and failed attempts without the login', async () => {
  const { portal, entries } = await open();
  const ada = await addPerson(portal, LOGIN, {});
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login: LOGIN, password: 'a wrong password' });
  await browser.submit('/sign-in', 'password', { login: LOGIN, password: PASSWORD });
  await browser.submit('/', 'sign-out');
  const [refused, created, ended] = entries;
  expect(refused).toMatchObject({ action: 'session.refuse', actor: '', object: '', detail: { method: 'password' } });
  expect(created).toMatchObject({ action: 'session.create', actor: ada.id, object: ada.id });
  expect(ended).toMatchObject({ action: 'session.end', actor: ada.id });
  expect(JSON.stringify(refused)).not.toContain(LOGIN);
  for (const secret of ['a wrong password', PASSWORD]) expect(JSON.stringify(entries)).not.toContain(secret);
});

it('the audit log records that a secret key was shown, without the key', async () => {
  const { portal, entries } = await open();
  const project = await portal.addProject('Game');
  const browser = await portal.signIn({ project, role: 'owner' });
  const path = `/projects/${project.id}/environments/development/keys`;
  const page = (await browser.get(path)).text;
  const { fields } = browser.formOf(page, 'create')!;
  fields.set('kind', 'secret');
  const { text } = await browser.post(path, fields);
  const key = /sk_[\w-]+/.exec(text)![0];
  await browser.submit(path, 'create', { kind: 'publishable' });
  expect(entries.map(({ action }) => action)).toEqual(['key.show']);
  expect(entries[0]).toMatchObject({ projectId: project.id, environmentId: `${project.id}-development` });
  expect(JSON.stringify(entries)).not.toContain(key.slice(0, 20));
});

it('the audit log records the removal of a member', async () => {
  const { portal, entries } = await open();
  const project = await portal.addProject('Game');
  const member = await portal.addAccount({ roles: [{ projectId: project.id, role: 'analyst' }] });
  const browser = await portal.signIn();
  await browser.submit(`/projects/${project.id}/members`, 'remove', { account: member.id });
  expect(entries).toMatchObject([{ action: 'member.remove', object: member.id, projectId: project.id }]);
});

it('users can sign in while writes to the audit log fail or hang, and failures are logged', async () => {
  const [failing, slow] = [() => Promise.reject(new Error('connection lost')), () => new Promise<never>(() => {})];
  for (const append of [failing, slow]) {
    const { portal, lines } = await open(append);
    await addPerson(portal, 'ada', {});
    const response = await portal.browser().submit('/sign-in', 'password', { login: 'ada', password: PASSWORD });
    expect(response.status).toBe(303);
    expect(lines.join().includes('connection lost')).toBe(append === failing);
  }
});
