import type { AuditEntry } from '@playline/access-keys';
import { createMemorySessions } from '@playline/access-keys/test';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { addPerson, PASSWORD } from '../../../services/portal/src/test/people.ts';
import type { TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import {
  acceptAt,
  CALLBACK,
  LINK,
  linkedIn,
  openPortalWithProvider,
  type PortalWithProvider,
  pathOf,
  SIGN_IN,
  signedIn as signedInTo,
} from './portal-with-provider.ts';

let portal: PortalWithProvider;
const entries: AuditEntry[] = [];
beforeAll(async () => {
  portal = await openPortalWithProvider({ audit: { append: async (entry) => void entries.push(entry) } });
});
afterAll(() => portal?.close());
afterEach(() => {
  portal.provider.lies = {};
  entries.length = 0;
});

const signedIn = (login: string) => signedInTo(portal, login);
const linked = (login: string) => linkedIn(portal, login);
const accountOf = async (login: string) => (await portal.parts.accounts.all()).find((each) => each.login === login)!;
const nameIn = async (browser: TestBrowser) =>
  /<dt>Login<\/dt><dd>([^<]*)</.exec((await browser.get('/settings')).text)?.[1] ?? null;

it('a linked user signs in without a password and returns to the requested page', async () => {
  await linked('ada');
  const browser = portal.browser();
  const path = '/sign-in?next=%2Fprojects%2Fp%3Fa%3Db';
  const answer = await portal.signInAs(browser, 'sub of ada', { ...SIGN_IN, path });
  expect([answer.status, answer.headers.get('location')]).toEqual([303, '/projects/p?a=b']);
  expect(await nameIn(browser)).toBe('ada');
  const { id } = await accountOf('ada');
  const issuer = portal.provider.issuer.href;
  expect(entries.map(({ action, actor, object, detail }) => ({ action, actor, object, detail }))).toEqual([
    { action: 'session.create', actor: id, object: id, detail: { way: 'password' } },
    { action: 'openid.link', actor: id, object: id, detail: { way: 'openid', issuer } },
    { action: 'session.create', actor: id, object: id, detail: { way: 'openid', issuer } },
  ]);
  expect(JSON.stringify(entries)).not.toContain('sub of ada');
});

it('an email address or a subject of another provider does not sign in', async () => {
  await linked('eve@example.com');
  portal.provider.lies = {
    claims: { email: 'eve@example.com', email_verified: true, preferred_username: 'eve@example.com' },
  };
  const browser = portal.browser();
  const { status, text } = await portal.signInAs(browser, 'another user');
  expect([status, text.includes('invitation')]).toEqual([401, true]);
  const elsewhere = await openPortalWithProvider({ accounts: portal.parts.accounts });
  expect((await elsewhere.signInAs(elsewhere.browser(), 'sub of eve@example.com')).status).toBe(401);
  await elsewhere.close();
  expect(await nameIn(browser)).toBeNull();
});

it('a disabled account and an unknown user get the same answer', async () => {
  await linked('gone');
  const account = await accountOf('gone');
  await portal.parts.accounts
    .changedBy({ changedBy: 'a test', requestId: 'r' })
    .change(() => ({ ...account, state: 'disabled' }));
  const answers = [];
  for (const subject of ['sub of gone', 'unknown'])
    answers.push((await portal.signInAs(portal.browser(), subject)).text.replace(/[0-9a-f]{32}/g, ''));
  expect(answers[0]).toBe(answers[1]);
});

it('a sign-in replaces the session of the browser', async () => {
  await linked('fixed');
  const victim = portal.browser();
  const planted = await portal.parts.sessions.create({ accountId: 'id-of-mallory', userAgent: '', address: '' });
  victim.keep(planted.text);
  await portal.signInAs(victim, 'sub of fixed');
  expect(victim.cookie).not.toContain(planted.text);
  expect(await portal.parts.sessions.find(planted.text)).toBeNull();
});

it('an account is linked once, by the session that started it', async () => {
  const browser = await linked('once');
  const { text } = await browser.get('/settings');
  expect(browser.formOf(text, 'link-openid')).toBeNull();
  expect(text).toContain(portal.provider.issuer.href);
  const other = await signedIn('also');
  const taken = await portal.signInAs(other, 'sub of once', LINK);
  expect([taken.status, taken.text.includes('already')]).toEqual([409, true]);
  expect((await accountOf('also')).openId).toBeNull();

  const back = portal.provider.visit(await portal.leave(other, LINK));
  await other.submit('/', 'sign-out');
  await addPerson(portal, 'instead', {});
  await other.submit('/sign-in', 'password', { login: 'instead', password: PASSWORD });
  const { status } = await other.get(pathOf(back));
  expect(status).toBe(401);
  expect((await accountOf('instead')).openId).toBeNull();
  const again = portal.provider.visit(await portal.leave(await signedIn('hers'), LINK));
  expect((await other.get(pathOf(again))).status).toBe(401);
  expect((await accountOf('hers')).openId).toBeNull();
});

it('an account is unlinked only when another credential is left', async () => {
  const browser = await linked('leaves');
  entries.length = 0;
  const { status, headers } = await browser.submit('/settings', 'unlink-openid');
  expect([status, headers.get('location')]).toEqual([303, '/settings?done=unlinked']);
  expect(entries).toMatchObject([{ action: 'openid.unlink', object: (await accountOf('leaves')).id }]);
  expect((await portal.signInAs(portal.browser(), 'sub of leaves')).status).toBe(401);

  const only = portal.browser();
  await portal.signInAs(only, 'only', acceptAt(await portal.inviteTo('analyst'), 'only'));
  await portal.signInAs(only, 'only', { ...SIGN_IN, path: '/sign-in?again=1' });
  const refused = await only.submit('/settings', 'unlink-openid');
  expect([refused.status, refused.text.includes('role="alert"')]).toEqual([409, true]);
  expect((await accountOf('only')).openId).not.toBeNull();
});

it('an invitation accepted with the provider creates an account without a password', async () => {
  const path = await portal.inviteTo('developer');
  portal.provider.lies = { claims: { email: 'ada@example.com', name: 'A name of the provider' } };
  const browser = portal.browser();
  const { status, headers } = await portal.signInAs(browser, 'new', acceptAt(path, 'New@Example.com'));
  expect([status, headers.get('location')]).toEqual([303, '/']);
  expect(await accountOf('new@example.com')).toMatchObject({
    state: 'live',
    passwordHash: null,
    passkeys: [],
    roles: [{ projectId: 'p', role: 'developer' }],
    name: 'Name of New@Example.com',
    openId: { issuer: portal.provider.issuer.href, subject: 'new' },
  });
  expect((await portal.browser().get(path)).status).toBe(404);
});

it('an invitation adds its role to the linked account and cannot be used again', async () => {
  await linked('has-one');
  const path = await portal.inviteTo('owner');
  const answer = await portal.signInAs(portal.browser(), 'sub of has-one', acceptAt(path, 'another-login'));
  expect(answer.status).toBe(303);
  expect(await accountOf('has-one')).toMatchObject({ roles: [{ projectId: 'p', role: 'owner' }] });
  expect(await accountOf('another-login')).toBeUndefined();
  expect((await portal.browser().get(path)).status).toBe(404);
});

it('an invitation stays valid after a taken login or a refusal of the provider', async () => {
  await addPerson(portal, 'taken', {});
  const path = await portal.inviteTo('analyst');
  const refused = await portal.signInAs(portal.browser(), 'late', acceptAt(path, 'taken'));
  expect([refused.status, refused.text.includes(`href="${path}"`)]).toEqual([409, true]);
  portal.provider.lies = { claims: { aud: 'another' } };
  expect((await portal.signInAs(portal.browser(), 'late', acceptAt(path, 'late'))).status).toBe(401);
  portal.provider.lies = {};
  expect((await portal.signInAs(portal.browser(), 'late', acceptAt(path, 'late'))).status).toBe(303);
});

it('a callback is accepted once, in the browser that started it and with its state', async () => {
  await linked('steady');
  portal.provider.subject = 'sub of steady';
  const [browser, thief] = [portal.browser(), portal.browser()];
  const again = { ...SIGN_IN, path: '/sign-in?again=1' };
  const away = async (of: TestBrowser) => portal.provider.visit(await portal.leave(of, again));
  const stolen = await away(browser);
  await away(thief);
  expect((await thief.get(pathOf(stolen))).status).toBe(401);
  // The attempt of the thief used the state up.
  expect((await browser.get(pathOf(stolen))).status).toBe(401);
  const good = pathOf(await away(browser));
  expect((await browser.get(good)).status).toBe(303);
  expect((await browser.get(good)).status).toBe(401);
  const changed = await away(browser);
  changed.searchParams.set('state', 'x'.repeat(43));
  for (const path of [
    pathOf(changed),
    CALLBACK,
    `${CALLBACK}?state=a&state=b&code=c`,
    `${CALLBACK}?error=access_denied`,
  ])
    expect((await browser.get(path)).status, path).toBe(401);
  expect(await nameIn(thief)).toBeNull();
});

it('a callback is refused after ten minutes', async () => {
  let aheadMs = 0;
  const { sessions, oneTimeTexts } = createMemorySessions({ wallClockMs: () => Date.now() + aheadMs });
  const late = await openPortalWithProvider({ sessions, oneTime: oneTimeTexts });
  const browser = late.browser();
  const back = late.provider.visit(await late.leave(browser, SIGN_IN));
  aheadMs = 10 * 60_000;
  expect((await browser.get(pathOf(back))).status).toBe(401);
  await late.close();
});

it('a refused callback shows no text of the provider', async () => {
  portal.provider.lies = { answer: { code: null, error: 'access_denied', error_description: 'Call +1 555 0100' } };
  const { status, text, headers } = await portal.signInAs(portal.browser(), 'a user');
  expect([status, text.includes('555'), headers.get('referrer-policy')]).toEqual([401, false, 'no-referrer']);
});
