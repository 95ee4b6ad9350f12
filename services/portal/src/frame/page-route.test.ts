import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { keysOfProject } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { openPortal, usePortal } from '../test/open-portal.ts';
import { addPerson, PASSWORD } from '../test/people.ts';

const portal = usePortal();

const keysOf = (id: string) => `/projects/${id}/environments/development/keys`;

function getAs(host: string, path: string): Promise<{ status: number; location: string | undefined }> {
  const { port } = new URL(portal.origin);
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { host } }, (response) => {
      response.resume();
      resolve({ status: response.statusCode ?? 0, location: response.headers.location });
    })
      .on('error', reject)
      .end();
  });
}

/** Posts a form and runs `interrupt` before sending the last byte. */
function postSlowly(cookie: string, { path, body }: { path: string; body: string }, interrupt: () => Promise<void>) {
  const { port, host, origin } = new URL(portal.origin);
  const browserHeaders = { host, origin, cookie, 'sec-fetch-site': 'same-origin' };
  const bodyHeaders = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': body.length };
  return new Promise<number>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method: 'POST', headers: { ...browserHeaders, ...bodyHeaders } };
    const sending = request(options, (response) => resolve(response.resume().statusCode ?? 0));
    sending.on('error', reject).write(body.slice(0, -1));
    delay(200)
      .then(interrupt)
      .then(() => sending.end(body.slice(-1)), reject);
  });
}

it('every page allows only its own scripts and styles and forbids framing, caching and referrers', async () => {
  const browser = await portal.signIn();
  for (const path of ['/', '/nowhere']) {
    const { headers } = await browser.get(path);
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  }
});

it('a visitor who is not signed in is redirected to sign in and then back to the page', async () => {
  const { id } = await portal.addProject('Redirected');
  const { status, headers } = await portal.browser().get(`${keysOf(id)}?a=b`);
  expect([status, headers.get('location')]).toEqual([303, `/sign-in?next=${encodeURIComponent(`${keysOf(id)}?a=b`)}`]);
});

it('forbidden pages and pages that do not exist return the same response', async () => {
  const [mine, other] = [await portal.addProject('Mine'), await portal.addProject('Other')];
  const browser = await portal.signIn({ project: mine, role: 'owner' });
  expect((await browser.get(keysOf(mine.id))).status).toBe(200);
  const responses = [];
  for (const path of [keysOf(other.id), keysOf('unknown'), `/projects/${mine.id}/environments/x/keys`, '/nowhere'])
    responses.push(await browser.get(path));
  expect(responses.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
});

it('a disabled account loses access immediately', async () => {
  const project = await portal.addProject('Ended');
  const browser = await portal.signIn({ project, role: 'owner' });
  expect((await browser.get('/')).status).toBe(200);
  const [account] = (await portal.parts.accounts.all()).filter(({ roles }) => roles[0]?.projectId === project.id);
  const store = portal.parts.accounts.storeFor({ changedBy: 'a test', requestId: 'r' });
  await store.change(() => ({ ...account!, state: 'disabled' }));
  expect((await browser.get('/')).status).toBe(303);
});

it('a page that fails internally shows a trace id but not the cause', async () => {
  const broken = await openPortal({
    accounts: { ...portal.parts.accounts, all: () => Promise.reject(new Error('redis://:hunter2@host')) },
  });
  const browser = broken.browser();
  browser.resumeSession((await broken.parts.sessions.create({ accountId: 'a', userAgent: '', address: '' })).text);
  const { status, text } = await browser.get('/');
  await broken.close();
  expect(status).toBe(500);
  expect(text).toMatch(/trace id to the operator: <code>[0-9a-f]{32}<\/code>/);
  expect(text).not.toContain('hunter2');
});

it('127.0.0.1 redirects to the origin of the portal, and other host names are rejected', async () => {
  const { port } = new URL(portal.origin);
  expect(await getAs(`127.0.0.1:${port}`, '/?a=b')).toEqual({ status: 307, location: `${portal.origin}/?a=b` });
  for (const host of ['evil.test', `evil.test:${port}`, `localhost.evil.test:${port}`, 'localhost'])
    expect((await getAs(host, '/')).status).toBe(400);
});

it('a form that is sent twice runs once and shows its secret once', async () => {
  const project = await portal.addProject('Twice');
  const browser = await portal.signIn({ project, role: 'developer' });
  const page = await browser.get(keysOf(project.id));
  const form = browser.formOf(page.text, 'create')!;
  form.fields.set('kind', 'secret');
  const first = await browser.post(form.action, form.fields);
  expect([first.status, first.text.match(/sk_svcapik_test-[0-9A-Za-z]{36}/) !== null]).toEqual([200, true]);
  const second = await browser.post(form.action, form.fields);
  expect([second.status, /sk_svcapik/.test(second.text)]).toEqual([409, false]);
  expect(keysOfProject(await portal.parts.keys.all(), project.id)).toHaveLength(1);
});

it('a form from another session, without a token or from another site is rejected', async () => {
  const project = await portal.addProject('Forged');
  const [browser, other] = [await portal.signIn({ project, role: 'owner' }), await portal.signIn()];
  const path = `/projects/${project.id}`;
  const readForm = async (reader: typeof browser) => reader.formOf((await reader.get(path)).text, 'rename')!.fields;
  const attempts: [URLSearchParams, Record<string, string>][] = [
    [await readForm(other), {}],
    [new URLSearchParams({ form: 'rename' }), {}],
    [await readForm(browser), { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }],
    [await readForm(browser), { 'sec-fetch-site': 'same-site' }],
    [await readForm(browser), { 'sec-fetch-site': 'none', origin: 'null' }],
  ];
  for (const [fields, headers] of attempts) {
    fields.set('name', 'Stolen');
    expect((await browser.post(path, fields, headers)).status).toBe(400);
  }
  expect((await portal.parts.projects.all()).some(({ name }) => name === 'Stolen')).toBe(false);
  expect((await browser.submit(path, 'rename', { name: 'Renamed' })).status).toBe(303);
});

it('an address can send 60 forms per minute before sign-in', async () => {
  const separatePortal = await openPortal();
  const browser = separatePortal.browser();
  const body = () => new URLSearchParams({ form: 'password', token: 'x', login: 'unknown', password: 'x' });
  const responses = await Promise.all(Array.from({ length: 70 }, () => browser.post('/sign-in', body())));
  await separatePortal.close();
  const rejected = responses.filter(({ status }) => status === 429);
  expect(rejected).toHaveLength(10);
  expect(Number(rejected[0]!.headers.get('retry-after'))).toBeGreaterThan(30);
});

it('an account can send 120 forms per minute', async () => {
  const [browser, other] = [await portal.signIn(), await portal.signIn()];
  const body = () => new URLSearchParams({ form: 'create', token: 'x' });
  const responses = await Promise.all(Array.from({ length: 130 }, () => browser.post('/', body())));
  expect(responses.filter(({ status }) => status === 429)).toHaveLength(10);
  expect((await other.post('/', body())).status).toBe(400);
});

it('a form whose session ends while the body arrives is not processed', async () => {
  const project = await portal.addProject('Late');
  const browser = await portal.signIn({ project, role: 'developer' });
  const { action, fields } = browser.formOf((await browser.get(keysOf(project.id))).text, 'create')!;
  const status = postSlowly(browser.cookie, { path: action, body: `${fields}` }, async () => {
    const session = (await portal.parts.sessions.find(browser.cookie.split(/[=;]/)[1]!))!;
    await portal.parts.sessions.end(session.id);
  });
  expect([await status, keysOfProject(await portal.parts.keys.all(), project.id)]).toEqual([303, []]);
});

it('a form with invalid input shows the error and keeps the entered values', async () => {
  const project = await portal.addProject('Typed');
  const browser = await portal.signIn({ project, role: 'owner' });
  const path = `/projects/${project.id}`;
  const { status, text } = await browser.submit(path, 'add-environment', { environment: 'No "spaces"' });
  expect(status).toBe(400);
  expect(text).toContain('value="No &quot;spaces&quot;"');
  expect(text).toMatch(/<p class="message failed" role="alert">An environment name may contain a-z/);
});

it('a form that needs a fresh sign-in keeps its values and runs only when it is submitted again', async () => {
  const project = await portal.addProject('Kept');
  const { id: accountId } = await addPerson(portal, 'kept', { roles: [{ projectId: project.id, role: 'owner' }] });
  const browser = portal.browser();
  const session = { accountId, signedInAt: 0, userAgent: '', address: '' };
  browser.resumeSession((await portal.parts.sessions.create(session)).text);
  const path = `/projects/${project.id}/members`;
  const refused = await browser.submit(path, 'invite', { name: 'Dan & Eve', role: 'analyst' });
  const signIn = refused.headers.get('location')!;
  expect(signIn).toBe(`/sign-in?again=1&next=${encodeURIComponent(path)}`);
  const signedIn = await browser.submit(signIn, 'password', { login: 'kept', password: PASSWORD });
  const { text } = await browser.get(signedIn.headers.get('location')!);
  expect(text).toContain('You are signed in again');
  const { action, fields } = browser.formOf(text, 'invite')!;
  expect([fields.get('name'), fields.get('role')]).toEqual(['Dan & Eve', 'analyst']);
  const countMembers = async () =>
    (await portal.parts.accounts.all()).filter(({ name }) => name === 'Dan & Eve').length;
  expect(await countMembers()).toBe(0);
  expect((await browser.get(path)).text).not.toContain('Dan &amp; Eve');
  expect([(await browser.post(action, fields)).status, await countMembers()]).toEqual([200, 1]);
  await portal.parts.sessions.create(session).then(({ text: again }) => browser.resumeSession(again));
  const tooLong = await browser.submit(path, 'invite', { name: 'x'.repeat(4_000), role: 'analyst' });
  expect((await browser.get(tooLong.headers.get('location')!)).text).toContain('too long to be kept');
});

it.each([
  ['/docs/cookbook?environment=demo-development', 'http://gateway.test/docs/cookbook?environment=demo-development'],
  ['/docs/chain', 'http://chain.test/docs'],
  ['/docs/chain/reference', 'http://chain.test/docs/reference'],
  ['/docs/chains', 'http://gateway.test/docs/chains'],
])('the portal redirects %s to the service that has the page', async (path, url) => {
  expect((await portal.browser().get(path)).headers.get('location')).toBe(url);
});
