import { keysOfProject, minuteOf } from '@playline/access-keys';
import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { expect, it } from 'vitest';
import { openPortal, usePortal } from '../../test/open-portal.ts';

const portal = usePortal();

const SECRET = /sk_svcapik_test-[0-9A-Za-z]{36}/;
const PUBLISHABLE = /pk_svcapik_test-[0-9A-Za-z]{36}/;

async function openProject(role: 'owner' | 'developer' = 'developer') {
  const project = await portal.addProject('Game');
  const path = `/projects/${project.id}/environments/development/keys`;
  return { project, path, browser: await portal.signIn({ project, role }) };
}

it('the keys page shows a new secret key once, with a command and a line for the .env file', async () => {
  const { browser, path } = await openProject();
  const created = await browser.submit(path, 'create', { kind: 'secret', name: 'game server' });
  const key = SECRET.exec(created.text)?.[0] ?? '';
  expect(created.text).toContain(`data-copy="PLAYLINE_SECRET_KEY=${key}"`);
  expect(created.text).toContain(`-H &#39;x-service-api-key: ${key}&#39;`);
  expect(created.headers.get('cache-control')).toBe('no-store');
  const { text } = await browser.get(path);
  expect(text).not.toMatch(SECRET);
  const [, random = ''] = key.split('-');
  expect(text).toContain(`<code>${random.slice(0, 4)}…${random.slice(-4)}</code>`);
  expect(text).toContain('game server');
});

it('the key test reports a key as valid only in the environment of the key', async () => {
  const { browser, path } = await openProject();
  const created = await browser.submit(path, 'create', { kind: 'secret' });
  const form = browser.formOf(created.text, 'test')!;
  const tested = await browser.post(form.action, form.fields);
  expect(tested.text).toContain('Key is valid');
  expect(tested.text).not.toMatch(SECRET);
  await browser.submit(path, 'revoke', { kind: 'secret', confirm: 'development' });
  const newForm = browser.formOf((await browser.submit(path, 'create', { kind: 'secret' })).text, 'test')!;
  newForm.fields.set('key', form.fields.get('key')!);
  expect((await browser.post(newForm.action, newForm.fields)).text).toContain('Key is not valid');
  const otherProject = await openProject();
  const shown = await otherProject.browser.submit(otherProject.path, 'create', { kind: 'publishable' });
  const otherForm = otherProject.browser.formOf(shown.text, 'test')!;
  otherForm.fields.set('key', form.fields.get('key')!);
  expect((await otherProject.browser.post(otherForm.action, otherForm.fields)).text).toContain('Key is not valid');
});

it('the keys page always shows a publishable key in full', async () => {
  const { browser, path } = await openProject();
  const created = await browser.submit(path, 'create', { kind: 'publishable' });
  const [key = ''] = PUBLISHABLE.exec(created.text) ?? [];
  expect(key).not.toBe('');
  expect((await browser.get(path)).text).toContain(`data-copy="${key}"`);
});

it('the keys page does not create a key in an archived project or with a name that is too long', async () => {
  const { browser, path, project } = await openProject('owner');
  const longName = await browser.submit(path, 'create', { kind: 'secret', name: 'n'.repeat(101) });
  await browser.submit(`/projects/${project.id}`, 'archive', { confirm: project.name });
  const archived = await browser.submit(path, 'create', { kind: 'publishable' });
  expect([longName.status, archived.status]).toEqual([400, 400]);
  expect(keysOfProject(await portal.parts.keys.all(), project.id)).toEqual([]);
  expect(archived.text).toContain('archived');
});

it('a key can be refreshed and revoked only if the environment name is confirmed', async () => {
  const { browser, path, project } = await openProject();
  await browser.submit(path, 'create', { kind: 'secret' });
  const refused = await browser.submit(path, 'refresh', { kind: 'secret', confirm: 'production' });
  expect([refused.status, SECRET.test(refused.text)]).toEqual([400, false]);
  const refreshed = await browser.submit(path, 'refresh', { kind: 'secret', confirm: 'development' });
  expect(SECRET.test(refreshed.text)).toBe(true);
  const revoked = await browser.submit(path, 'revoke', { kind: 'secret', confirm: 'development' });
  expect([revoked.status, revoked.headers.get('location')]).toEqual([303, `${path}?done=revoked`]);
  const states = keysOfProject(await portal.parts.keys.all(), project.id).map(({ revokedAt }) => revokedAt !== null);
  expect(states).toEqual([true, true]);
});

const hourMs = 3_600_000;

it('a publishable key can be refreshed so that the old key stops later, and its end can be changed and removed', async () => {
  const { browser, path, project } = await openProject();
  await browser.submit(path, 'create', { kind: 'publishable', name: 'iOS 1' });
  const read = async () => keysOfProject(await portal.parts.keys.all(), project.id);
  const shown = await browser.submit(path, 'refresh', { stops: '24h', name: 'iOS 2' });
  const endsAt = expect.closeTo(Date.now() + 24 * hourMs, -4);
  expect(shown.text).toContain(PUBLISHABLE.exec(shown.text)![0]);
  expect(shown.text).toContain('The old key stops on');
  const [old, next] = await read();
  expect([old, next]).toMatchObject([
    { name: 'iOS 1', endsAt, revokedAt: null },
    { name: 'iOS 2', endsAt: null, revokedAt: null, limitId: old!.keyId },
  ]);
  const { text } = await browser.get(path);
  for (const each of ['stops in 24\u00a0h', old!.text!, next!.text!]) expect(text).toContain(each);
  const date = new Date(Date.now() + 72 * hourMs).toISOString().slice(0, 10);
  const moved = await browser.submit(path, 'revoke', { key: old!.keyId, stops: 'date', date });
  expect([moved.headers.get('location'), (await read())[0]!.endsAt]).toEqual([`${path}?done=saved`, Date.parse(date)]);
  const refused = await browser.submit(path, 'refresh', { key: old!.keyId, stops: 'never' });
  expect([refused.status, (await read()).length]).toEqual([400, 2]);
  const kept = await browser.submit(path, 'revoke', { key: old!.keyId, stops: 'never' });
  expect([kept.headers.get('location'), (await read())[0]!.endsAt]).toEqual([`${path}?done=saved`, null]);
  const stopped = await browser.submit(path, 'revoke', { key: old!.keyId, stops: 'now', confirm: 'development' });
  expect([stopped.headers.get('location'), (await read()).map(({ revokedAt }) => revokedAt === null)]).toEqual([
    `${path}?done=revoked`,
    [false, true],
  ]);
});

it.each([
  ['without a choice', {}, 'Choose when the key stops.'],
  ['now without a confirmation', { stops: 'now' }, 'to confirm that the key stops now'],
  ['on a date in the past', { stops: 'date', date: '2020-01-01' }, 'Choose a time in the future.'],
  ['on no date', { stops: 'date' }, 'Choose when the key stops.'],
])('a publishable key is not refreshed or revoked %s', async (_, fields, message) => {
  const { browser, path, project } = await openProject();
  await browser.submit(path, 'create', { kind: 'publishable' });
  for (const form of ['refresh', 'revoke']) {
    const { status, text } = await browser.submit(path, form, fields);
    expect([status, text.includes(message), text.includes(' checked ')]).toEqual([400, true, true]);
  }
  expect(keysOfProject(await portal.parts.keys.all(), project.id)).toMatchObject([{ endsAt: null, revokedAt: null }]);
});

it('a further publishable key requires a name, and all keys have their own name and allowed origins', async () => {
  const { browser, path, project } = await openProject();
  await browser.submit(path, 'create', { kind: 'publishable' });
  const unnamed = await browser.submit(path, 'create', { kind: 'publishable' });
  expect([unnamed.status, unnamed.text.includes('such as iOS 2.4')]).toEqual([400, true]);
  await browser.submit(path, 'create', { kind: 'publishable', name: 'Web' });
  const [first] = keysOfProject(await portal.parts.keys.all(), project.id);
  const fields = { key: first!.keyId, name: 'Android', origins: 'https://game.example' };
  expect((await browser.submit(path, 'origins', fields)).status).toBe(303);
  expect(keysOfProject(await portal.parts.keys.all(), project.id)).toMatchObject([
    { name: 'Android', origins: ['https://game.example'] },
    { name: 'Web', origins: [] },
  ]);
});

it('the record of a key contains the author and the trace id of the request', async () => {
  const { browser, path, project } = await openProject();
  const created = await browser.submit(path, 'create', { kind: 'publishable' });
  const record = (await portal.parts.keys.all()).find(({ projectId }) => projectId === project.id);
  const account = (await portal.parts.accounts.all()).find(({ roles }) => roles[0]?.projectId === project.id);
  const changedBy = account!.id;
  expect(record).toMatchObject({ changedBy, requestId: created.headers.get('x-trace-id'), live: { changedBy } });
});

it('the keys page shows the last use, the events, the hourly requests and the refused requests of a key, and which ended keys are still in use', async () => {
  const usage = createMemoryKeyUsage();
  const usagePortal = await openPortal({ usage });
  const project = await usagePortal.addProject('Used');
  const path = `/projects/${project.id}/environments/development/keys`;
  const browser = await usagePortal.signIn({ project, role: 'developer' });
  await browser.submit(path, 'create', { kind: 'publishable' });
  expect((await browser.get(path)).text).toMatch(/<td[^>]*>never<\/td>/);
  const [{ keyId = '' } = {}] = keysOfProject(await usagePortal.parts.keys.all(), project.id);
  const lastRefusal = { at: Date.now(), reason: 'TOO_MANY_REQUESTS_ERROR', traceId: 'a'.repeat(32) };
  const key = { keyId, uses: 1200, refusals: 7, messages: 34_000, lastUsedAt: lastRefusal.at, lastRefusal };
  await usage.add({ minuteAt: minuteOf(lastRefusal.at), keys: [key], environments: [] });
  const { text } = await browser.get(path);
  expect(text).toContain('<span class="status bad">7 refused in the last hour</span>');
  await browser.submit(path, 'revoke', { key: keyId, stops: 'now', confirm: 'development' });
  const ended = (await browser.get(path)).text;
  await usagePortal.close();
  expect(ended).toContain(`<details class="disclosure" open><summary>Ended keys (1, 1 still in use)</summary>`);
  expect(ended).toContain('<span class="status bad">7 refused in the last hour</span>');
  const [, lastUsed] = /data-label="Last used">(.*?)<\/td>/.exec(ended) ?? [];
  expect(lastUsed).toContain(new Date(lastRefusal.at).toISOString());
  expect(text).toContain('1,200\u00a0requests, 7 refused');
  expect(text).toContain(`TOO_MANY_REQUESTS_ERROR, trace id <span class="copyable"><code title="${'a'.repeat(32)}">`);
  expect(text).toContain('sent 34,000 events in the last hour and 34,000 in the last 24 hours');
});

it('the keys page saves allowed origins and rejects invalid origins', async () => {
  const { browser, path, project } = await openProject();
  await browser.submit(path, 'create', { kind: 'publishable' });
  expect((await browser.get(path)).text).toContain('<dt>Allowed origins</dt><dd>any</dd>');
  const origins = 'https://game.example\r\n http://localhost:5173/, https://game.example';
  const set = await browser.submit(path, 'origins', { origins });
  expect([set.status, set.headers.get('location')]).toEqual([303, `${path}?done=saved`]);
  const account = (await portal.parts.accounts.all()).find(({ roles }) => roles[0]?.projectId === project.id);
  expect(keysOfProject(await portal.parts.keys.all(), project.id)).toMatchObject([
    { origins: ['https://game.example', 'http://localhost:5173'], changedBy: account!.id, revokedAt: null },
  ]);
  const invalid = await browser.submit(path, 'origins', { origins: 'https://game.example/<b>' });
  expect([invalid.status, invalid.text.includes('https://game.example/&lt;b&gt;</textarea>')]).toEqual([400, true]);
  await browser.submit(path, 'origins', { origins: '' });
  expect(keysOfProject(await portal.parts.keys.all(), project.id)).toMatchObject([{ origins: [] }]);
});
