import type { AuditEntry } from '@playline/access-keys';
import { createMemorySessions } from '@playline/access-keys/test';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { addPerson, PASSWORD } from '../../../services/portal/src/test/people.ts';
import type { TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import {
  acceptForm,
  CALLBACK,
  LINK,
  openLinkedBrowser,
  openPortalWithProvider,
  openSignedInBrowser,
  type PortalWithProvider,
  SIGN_IN,
  toPath,
} from './portal-with-provider.ts';

let portal: PortalWithProvider;
const entries: AuditEntry[] = [];
beforeAll(async () => {
  portal = await openPortalWithProvider({ audit: { append: async (entry) => void entries.push(entry) } });
});
afterAll(() => portal?.close());
afterEach(() => {
  portal.provider.overrides = {};
  entries.length = 0;
});

const signIn = (login: string) => openSignedInBrowser(portal, login);
const linkAccount = (login: string) => openLinkedBrowser(portal, login);
const findAccount = async (login: string) => (await portal.parts.accounts.all()).find((each) => each.login === login)!;
const readLogin = async (browser: TestBrowser) =>
  /<dt>Login<\/dt><dd>([^<]*)</.exec((await browser.get('/settings')).text)?.[1] ?? null;

it('a linked user can sign in without a password and returns to the requested page', async () => {
  await linkAccount('ada');
  const browser = portal.browser();
  const path = '/sign-in?next=%2Fprojects%2Fp%3Fa%3Db';
  const response = await portal.signInAs(browser, 'sub of ada', { ...SIGN_IN, path });
  expect([response.status, response.headers.get('location')]).toEqual([303, '/projects/p?a=b']);
  expect(await readLogin(browser)).toBe('ada');
  const { id } = await findAccount('ada');
  const issuer = portal.provider.issuer.href;
  expect(entries.map(({ action, actor, object, detail }) => ({ action, actor, object, detail }))).toEqual([
    { action: 'session.create', actor: id, object: id, detail: { method: 'password' } },
    { action: 'openid.link', actor: id, object: id, detail: { method: 'openid', issuer } },
    { action: 'session.create', actor: id, object: id, detail: { method: 'openid', issuer } },
  ]);
  expect(JSON.stringify(entries)).not.toContain('sub of ada');
});

it('an email address or a subject from another provider does not grant access', async () => {
  await linkAccount('eve@example.com');
  const email = 'eve@example.com';
  portal.provider.overrides = { claims: { email, email_verified: true, preferred_username: email } };
  const browser = portal.browser();
  const { status, text } = await portal.signInAs(browser, 'another user');
  expect([status, text.includes('invitation')]).toEqual([401, true]);
  const otherPortal = await openPortalWithProvider({ accounts: portal.parts.accounts });
  expect((await otherPortal.signInAs(otherPortal.browser(), 'sub of eve@example.com')).status).toBe(401);
  await otherPortal.close();
  expect(await readLogin(browser)).toBeNull();
});

it('a disabled account and an unknown user get the same response', async () => {
  await linkAccount('gone');
  const account = await findAccount('gone');
  await portal.parts.accounts
    .storeFor({ changedBy: 'a test', requestId: 'r' })
    .change(() => ({ ...account, state: 'disabled' }));
  const responses = [];
  for (const subject of ['sub of gone', 'unknown'])
    responses.push((await portal.signInAs(portal.browser(), subject)).text.replace(/[0-9a-f]{32}/g, ''));
  expect(responses[0]).toBe(responses[1]);
});

it('a sign-in replaces the previous session of the browser', async () => {
  await linkAccount('victim');
  const victim = portal.browser();
  const previous = await portal.parts.sessions.create({ accountId: 'id-of-mallory', userAgent: '', address: '' });
  victim.resumeSession(previous.text);
  await portal.signInAs(victim, 'sub of victim');
  expect(victim.cookie).not.toContain(previous.text);
  expect(await portal.parts.sessions.find(previous.text)).toBeNull();
});

it('an account can be linked only once, and only by the session that started the redirect', async () => {
  const browser = await linkAccount('once');
  const { text } = await browser.get('/settings');
  expect(browser.formOf(text, 'link-openid')).toBeNull();
  expect(text).toContain(portal.provider.issuer.href);
  const otherBrowser = await signIn('second');
  const conflict = await portal.signInAs(otherBrowser, 'sub of once', LINK);
  expect([conflict.status, conflict.text.includes('already')]).toEqual([409, true]);
  expect((await findAccount('second')).openId).toBeNull();

  const callback = portal.provider.visit(await portal.submitToProvider(otherBrowser, LINK));
  await otherBrowser.submit('/', 'sign-out');
  await addPerson(portal, 'replacement', {});
  await otherBrowser.submit('/sign-in', 'password', { login: 'replacement', password: PASSWORD });
  const { status } = await otherBrowser.get(toPath(callback));
  expect(status).toBe(401);
  expect((await findAccount('replacement')).openId).toBeNull();
  const otherCallback = portal.provider.visit(await portal.submitToProvider(await signIn('third'), LINK));
  expect((await otherBrowser.get(toPath(otherCallback))).status).toBe(401);
  expect((await findAccount('third')).openId).toBeNull();
});

it('an account can be unlinked only if it also has a password or a passkey', async () => {
  const browser = await linkAccount('unlinks');
  entries.length = 0;
  const { status, headers } = await browser.submit('/settings', 'unlink-openid');
  expect([status, headers.get('location')]).toEqual([303, '/settings?done=unlinked']);
  expect(entries).toMatchObject([{ action: 'openid.unlink', object: (await findAccount('unlinks')).id }]);
  expect((await portal.signInAs(portal.browser(), 'sub of unlinks')).status).toBe(401);

  const onlyBrowser = portal.browser();
  await portal.signInAs(onlyBrowser, 'only', acceptForm(await portal.createInvitation('analyst'), 'only'));
  await portal.signInAs(onlyBrowser, 'only', { ...SIGN_IN, path: '/sign-in?again=1' });
  const refused = await onlyBrowser.submit('/settings', 'unlink-openid');
  expect([refused.status, refused.text.includes('role="alert"')]).toEqual([409, true]);
  expect((await findAccount('only')).openId).not.toBeNull();
});

it('accepting an invitation through the provider creates an account without a password', async () => {
  const path = await portal.createInvitation('developer');
  portal.provider.overrides = { claims: { email: 'ada@example.com', name: 'Name from the provider' } };
  const browser = portal.browser();
  const { status, headers } = await portal.signInAs(browser, 'new', acceptForm(path, 'New@Example.com'));
  expect([status, headers.get('location')]).toEqual([303, '/']);
  expect(await findAccount('new@example.com')).toMatchObject({
    state: 'live',
    passwordHash: null,
    passkeys: [],
    roles: [{ projectId: 'p', role: 'developer' }],
    name: 'Name of New@Example.com',
    openId: { issuer: portal.provider.issuer.href, subject: 'new' },
  });
  expect((await portal.browser().get(path)).status).toBe(404);
});

it('accepting an invitation with a linked account adds the role and invalidates the invitation', async () => {
  await linkAccount('has-one');
  const path = await portal.createInvitation('owner');
  const response = await portal.signInAs(portal.browser(), 'sub of has-one', acceptForm(path, 'another-login'));
  expect(response.status).toBe(303);
  expect(await findAccount('has-one')).toMatchObject({ roles: [{ projectId: 'p', role: 'owner' }] });
  expect(await findAccount('another-login')).toBeUndefined();
  expect((await portal.browser().get(path)).status).toBe(404);
});

it('an invitation stays valid after a login conflict or a failed sign-in', async () => {
  await addPerson(portal, 'taken', {});
  const path = await portal.createInvitation('analyst');
  const refused = await portal.signInAs(portal.browser(), 'late', acceptForm(path, 'taken'));
  expect([refused.status, refused.text.includes(`href="${path}"`)]).toEqual([409, true]);
  portal.provider.overrides = { claims: { aud: 'another' } };
  expect((await portal.signInAs(portal.browser(), 'late', acceptForm(path, 'late'))).status).toBe(401);
  portal.provider.overrides = {};
  expect((await portal.signInAs(portal.browser(), 'late', acceptForm(path, 'late'))).status).toBe(303);
});

it('the portal accepts a callback once, with its state, from the browser that started the sign-in', async () => {
  await linkAccount('steady');
  portal.provider.subject = 'sub of steady';
  const [browser, thief] = [portal.browser(), portal.browser()];
  const again = { ...SIGN_IN, path: '/sign-in?again=1' };
  const startSignIn = async (target: TestBrowser) =>
    portal.provider.visit(await portal.submitToProvider(target, again));
  const stolen = await startSignIn(browser);
  await startSignIn(thief);
  expect((await thief.get(toPath(stolen))).status).toBe(401);
  // The state was used up by the attempt in the other browser.
  expect((await browser.get(toPath(stolen))).status).toBe(401);
  const validPath = toPath(await startSignIn(browser));
  expect((await browser.get(validPath)).status).toBe(303);
  expect((await browser.get(validPath)).status).toBe(401);
  const changed = await startSignIn(browser);
  changed.searchParams.set('state', 'x'.repeat(43));
  const invalidPaths = [CALLBACK, `${CALLBACK}?state=a&state=b&code=c`, `${CALLBACK}?error=access_denied`];
  for (const path of [toPath(changed), ...invalidPaths]) expect((await browser.get(path)).status, path).toBe(401);
  expect(await readLogin(thief)).toBeNull();
});

it('the portal rejects a callback ten minutes after the redirect', async () => {
  let elapsedMs = 0;
  const { sessions, oneTimeTokens } = createMemorySessions({ wallClockMs: () => Date.now() + elapsedMs });
  const latePortal = await openPortalWithProvider({ sessions, oneTimeTokens });
  const browser = latePortal.browser();
  const callback = latePortal.provider.visit(await latePortal.submitToProvider(browser, SIGN_IN));
  elapsedMs = 10 * 60_000;
  expect((await browser.get(toPath(callback))).status).toBe(401);
  await latePortal.close();
});

it('the page for a rejected callback does not show text from the provider', async () => {
  portal.provider.overrides = { redirect: { code: null, error: 'access_denied', error_description: 'Call 555 0100' } };
  const { status, text, headers } = await portal.signInAs(portal.browser(), 'a user');
  expect([status, text.includes('555'), headers.get('referrer-policy')]).toEqual([401, false, 'no-referrer']);
});
