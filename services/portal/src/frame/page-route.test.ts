import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { keysOfProject } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { openPortal, usePortal } from '../test/open-portal.ts';

const portal = usePortal();

const keysOf = (id: string) => `/projects/${id}/environments/development/keys`;

function getAs(host: string, path: string): Promise<{ status: number; location: string | undefined }> {
  const { port } = new URL(portal.origin);
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { host } }, (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode ?? 0, location: answer.headers.location });
    })
      .on('error', reject)
      .end();
  });
}

/** Posts a form and runs `interrupt` before its last byte. */
function postSlowly(cookie: string, { path, body }: { path: string; body: string }, interrupt: () => Promise<void>) {
  const { port, host, origin } = new URL(portal.origin);
  const headers = { host, origin, cookie, 'content-type': 'application/x-www-form-urlencoded' };
  const own = { 'sec-fetch-site': 'same-origin', 'content-length': body.length };
  return new Promise<number>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method: 'POST', headers: { ...headers, ...own } };
    const sent = request(options, (answer) => resolve(answer.resume().statusCode ?? 0));
    sent.on('error', reject).write(body.slice(0, -1));
    delay(200)
      .then(interrupt)
      .then(() => sent.end(body.slice(-1)), reject);
  });
}

it('a page allows scripts and styles of this server only, and no frame, cache or referrer', async () => {
  const browser = await portal.signIn();
  for (const path of ['/', '/nowhere']) {
    const { headers } = await browser.get(path);
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  }
});

it('a page redirects visitors who are not signed in to the sign-in, which leads back', async () => {
  const { id } = await portal.addProject('Led');
  const { status, headers } = await portal.browser().get(`${keysOf(id)}?a=b`);
  expect([status, headers.get('location')]).toEqual([303, `/sign-in?next=${encodeURIComponent(`${keysOf(id)}?a=b`)}`]);
});

it('pages without access and pages that do not exist have the same answer', async () => {
  const [mine, other] = [await portal.addProject('Mine'), await portal.addProject('Other')];
  const browser = await portal.signIn({ project: mine, role: 'owner' });
  expect((await browser.get(keysOf(mine.id))).status).toBe(200);
  const seen = [];
  for (const path of [keysOf(other.id), keysOf('unknown'), `/projects/${mine.id}/environments/x/keys`, '/nowhere'])
    seen.push(await browser.get(path));
  expect(seen.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  expect(new Set(seen.map(({ text }) => text)).size).toBe(1);
});

it('a disabled account loses access with its next request', async () => {
  const project = await portal.addProject('Ended');
  const browser = await portal.signIn({ project, role: 'owner' });
  expect((await browser.get('/')).status).toBe(200);
  const [account] = (await portal.parts.accounts.all()).filter(({ roles }) => roles[0]?.projectId === project.id);
  const store = portal.parts.accounts.changedBy({ changedBy: 'a test', requestId: 'r' });
  await store.change(() => ({ ...account!, state: 'disabled' }));
  expect((await browser.get('/')).status).toBe(303);
});

it('a page that cannot read accounts shows a trace id and no cause', async () => {
  const broken = await openPortal({
    accounts: { ...portal.parts.accounts, all: () => Promise.reject(new Error('redis://:hunter2@host')) },
  });
  const browser = broken.browser();
  browser.keep((await broken.parts.sessions.create({ accountId: 'a', userAgent: '', address: '' })).text);
  const { status, text } = await browser.get('/');
  await broken.close();
  expect(status).toBe(500);
  expect(text).toMatch(/trace id: <code>[0-9a-f]{32}<\/code>/);
  expect(text).not.toContain('hunter2');
});

it('127.0.0.1 redirects to the origin of the portal, and any other host name is refused', async () => {
  const { port } = new URL(portal.origin);
  expect(await getAs(`127.0.0.1:${port}`, '/?a=b')).toEqual({ status: 307, location: `${portal.origin}/?a=b` });
  for (const host of ['evil.test', `evil.test:${port}`, `localhost.evil.test:${port}`, 'localhost'])
    expect((await getAs(host, '/')).status).toBe(400);
});

it('a form sent twice runs once and does not show its secret again', async () => {
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

it('a form of another session, without a token or from another site is refused', async () => {
  const project = await portal.addProject('Forged');
  const [browser, other] = [await portal.signIn({ project, role: 'owner' }), await portal.signIn()];
  const path = `/projects/${project.id}`;
  const formIn = async (from: typeof browser) => from.formOf((await from.get(path)).text, 'rename')!.fields;
  const tries: [URLSearchParams, Record<string, string>][] = [
    [await formIn(other), {}],
    [new URLSearchParams({ form: 'rename' }), {}],
    [await formIn(browser), { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }],
    [await formIn(browser), { 'sec-fetch-site': 'same-site' }],
    [await formIn(browser), { 'sec-fetch-site': 'none', origin: 'null' }],
  ];
  for (const [fields, headers] of tries) {
    fields.set('name', 'Stolen');
    expect((await browser.post(path, fields, headers)).status).toBe(400);
  }
  expect((await portal.parts.projects.all()).some(({ name }) => name === 'Stolen')).toBe(false);
  expect((await browser.submit(path, 'rename', { name: 'Renamed' })).status).toBe(303);
});

it('an address may send sixty forms a minute without a sign-in', async () => {
  const flooded = await openPortal();
  const browser = flooded.browser();
  const body = () => new URLSearchParams({ form: 'password', token: 'x', login: 'unknown', password: 'x' });
  const answers = await Promise.all(Array.from({ length: 70 }, () => browser.post('/sign-in', body())));
  await flooded.close();
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(10);
  expect(Number(refused[0]!.headers.get('retry-after'))).toBeGreaterThan(30);
});

it('an account may send 120 forms a minute', async () => {
  const [browser, other] = [await portal.signIn(), await portal.signIn()];
  const body = () => new URLSearchParams({ form: 'create', token: 'x' });
  const answers = await Promise.all(Array.from({ length: 130 }, () => browser.post('/', body())));
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(10);
  expect((await other.post('/', body())).status).toBe(400);
});

it('a slow form is checked against the rights at its end', async () => {
  const project = await portal.addProject('Late');
  const browser = await portal.signIn({ project, role: 'developer' });
  const { action, fields } = browser.formOf((await browser.get(keysOf(project.id))).text, 'create')!;
  const answer = postSlowly(browser.cookie, { path: action, body: `${fields}` }, async () => {
    const session = (await portal.parts.sessions.find(browser.cookie.split('=')[1]!))!;
    await portal.parts.sessions.end(session.id);
  });
  expect([await answer, keysOfProject(await portal.parts.keys.all(), project.id)]).toEqual([303, []]);
});

it('a failed form keeps the typed values and shows the error', async () => {
  const project = await portal.addProject('Typed');
  const browser = await portal.signIn({ project, role: 'owner' });
  const path = `/projects/${project.id}`;
  const { status, text } = await browser.submit(path, 'add-environment', { environment: 'No "spaces"' });
  expect(status).toBe(400);
  expect(text).toContain('value="No &quot;spaces&quot;"');
  expect(text).toMatch(/<p class="message failed" role="alert">The name of an environment has a-z/);
});
