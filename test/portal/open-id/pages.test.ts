import { createMemorySessions } from '@playline/access-keys/test';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { addPerson, PASSWORD } from '../../../services/portal/src/test/people.ts';
import type { TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import {
  acceptAt,
  CALLBACK,
  linkedIn,
  openPortalWithProvider,
  type PortalWithProvider,
  SIGN_IN,
} from './portal-with-provider.ts';

let portal: PortalWithProvider;
beforeAll(async () => {
  portal = await openPortalWithProvider();
});
afterAll(() => portal?.close());
afterEach(() => {
  portal.provider.lies = {};
});

const linked = (login: string) => linkedIn(portal, login);

it('a fresh sign-in is requested from the provider, which states its age', async () => {
  await linked('aged');
  const browser = portal.browser();
  portal.provider.lies = { claims: { auth_time: Math.floor(Date.now() / 1000) - 3_600 } };
  expect((await portal.signInAs(browser, 'sub of aged')).status).toBe(303);
  const unlink = async () => (await browser.submit('/settings', 'unlink-openid')).headers.get('location');
  expect(await unlink()).toBe('/sign-in?again=1&next=%2Fsettings');
  const again = { ...SIGN_IN, path: '/sign-in?again=1&next=%2Fsettings' };
  const location = await portal.leave(browser, again);
  expect([location.searchParams.get('prompt'), location.searchParams.get('max_age')]).toEqual(['login', '600']);
  expect((await portal.signInAs(browser, 'sub of aged', again)).status).toBe(401);
  portal.provider.lies = {};
  expect((await portal.signInAs(browser, 'sub of aged', again)).status).toBe(303);
  expect(await unlink()).toBe('/settings?done=unlinked');
});

it('a sign-in by invitation is fresh without a time from the provider', async () => {
  portal.provider.lies = { claims: { auth_time: undefined } };
  const browser = portal.browser();
  expect(
    (await portal.signInAs(browser, 'by-link', acceptAt(await portal.inviteTo('analyst'), 'by-link'))).status,
  ).toBe(303);
  const typed = { password: PASSWORD, repeated: PASSWORD };
  const location = async (of: TestBrowser) => (await of.submit('/settings', 'password', typed)).headers.get('location');
  expect(await location(browser)).toBe('/settings?done=password');
  const joined = portal.browser();
  await portal.signInAs(joined, 'by-link', acceptAt(await portal.inviteTo('owner'), 'x-x'));
  expect(await location(joined)).toContain('/sign-in?again=1');
});

it('a sign-in without a time from the provider is not fresh', async () => {
  await linked('silent');
  portal.provider.lies = { claims: { auth_time: undefined } };
  const browser = portal.browser();
  expect((await portal.signInAs(browser, 'sub of silent')).status).toBe(303);
  expect((await browser.submit('/settings', 'unlink-openid')).headers.get('location')).toContain('/sign-in?again=1');
  const again = await portal.signInAs(browser, 'sub of silent', { ...SIGN_IN, path: '/sign-in?again=1' });
  expect([again.status, again.text.includes('passkey')]).toEqual([401, true]);
});

it('a provider that is down is reported, and other sign-ins work', async () => {
  const down = await openPortalWithProvider();
  await addPerson(down, 'ada', {});
  for (const instead of ['silence', 500] as const) {
    down.provider.lies = { instead };
    const { status, text } = await down.browser().submit('/sign-in', 'openid');
    expect([status, text.includes('Work &amp; Co is not available')]).toEqual([503, true]);
  }
  const browser = down.browser();
  expect((await browser.submit('/sign-in', 'password', { login: 'ada', password: PASSWORD })).status).toBe(303);
  down.provider.lies = {};
  const back = down.provider.visit(await down.leave(down.browser(), SIGN_IN));
  expect(back.pathname).toBe(CALLBACK);
  await down.close();
});

it('an address with many unexpected callbacks gets 429, without further audit entries', async () => {
  const entries: unknown[] = [];
  const flooded = await openPortalWithProvider({ audit: { append: async (entry) => void entries.push(entry) } });
  const browser = flooded.browser();
  const statuses = [];
  for (let at = 0; at < 70; at++) statuses.push((await browser.get(`${CALLBACK}?state=${at}&code=c`)).status);
  await flooded.close();
  expect(statuses.filter((status) => status === 401)).toHaveLength(60);
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
  expect(entries).toHaveLength(60);
});

it('pages allow forms to the provider only when they have one', async () => {
  const policyOf = async (path: string) => {
    const browser = await portal.signIn();
    const headers = (await browser.get(path)).headers.get('content-security-policy') ?? '';
    return /form-action ([^;]*)/.exec(headers)?.[1];
  };
  const { origin } = portal.provider.issuer;
  for (const path of ['/sign-in?again=1', '/settings', await portal.inviteTo('analyst')])
    expect(await policyOf(path), path).toBe(`'self' ${origin}`);
  for (const path of ['/', '/instance/accounts', '/sign-out', CALLBACK])
    expect(await policyOf(path), path).toBe("'self'");
});

it('the sign-in page shows the provider only when one is configured', async () => {
  expect((await portal.browser().get('/sign-in')).text).toContain('Sign in with Work &amp; Co');
  const none = await openPortalWithProvider({ openIdProvider: null });
  const browser = none.browser();
  expect(browser.formOf((await browser.get('/sign-in')).text, 'openid')).toBeNull();
  expect((await browser.get(CALLBACK)).status).toBe(404);
  await none.close();
});

it('neither the code of a link nor the state is stored while the user is at the provider', async () => {
  const kept: string[] = [];
  const { sessions, oneTimeTexts } = createMemorySessions();
  const issue: typeof oneTimeTexts.issue = async (wanted) => {
    kept.push(wanted.value);
    return oneTimeTexts.issue(wanted);
  };
  const watched = await openPortalWithProvider({ sessions, oneTime: { ...oneTimeTexts, issue } });
  const path = await watched.inviteTo('analyst');
  const browser = watched.browser();
  const location = await watched.leave(browser, acceptAt(path, 'ada'));
  expect(kept).toHaveLength(1);
  expect(kept[0]).not.toContain(path.split('=')[1]!);
  expect(kept[0]).not.toContain(location.searchParams.get('state')!);
  expect(location.href).not.toContain(path.split('=')[1]!);
  const [text = ''] = /playline-way-\w+=[^;]+/.exec(browser.cookie) ?? [];
  expect(kept[0]).not.toContain(text.split('=')[1]!.split('.')[0]!);
  await watched.close();
});
