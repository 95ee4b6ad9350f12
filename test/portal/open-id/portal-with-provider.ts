import { randomInt } from 'node:crypto';
import { invite, type Role } from '@playline/access-keys';
import { createOpenIdProvider } from '@playline/access-keys/open-id';
import { expect } from 'vitest';
import {
  type HostileProvider,
  openHostileProvider,
} from '../../../packages/access-keys/src/open-id/test/hostile-provider.ts';
import type { PortalAppParts } from '../../../services/portal/src/app.ts';
import { openPortal, type TestPortal } from '../../../services/portal/src/test/open-portal.ts';
import { addPerson, PASSWORD } from '../../../services/portal/src/test/people.ts';
import { createBrowser, type Response, type TestBrowser } from '../../../services/portal/src/test/test-browser.ts';

const LABEL = 'Work & Co';

/** A portal with a configured provider, and the provider itself. */
export interface PortalWithProvider extends TestPortal {
  readonly provider: HostileProvider;
  /** Sends a form that leads to the provider. @returns the provider's address. Fails when the form leads elsewhere */
  leave(browser: TestBrowser, form: LeavingForm): Promise<URL>;
  /** Goes to the provider, signs in there as `subject`, and comes back. */
  signInAs(browser: TestBrowser, subject: string, form?: LeavingForm): Promise<Response>;
  /** Creates an invitation, as an administrator does. @returns its path */
  inviteTo(role: Role): Promise<string>;
}

export interface LeavingForm {
  readonly path: string;
  readonly action: string;
  readonly values?: Readonly<Record<string, string>>;
}

export const SIGN_IN: LeavingForm = { path: '/sign-in', action: 'openid' };

export async function openPortalWithProvider(own: Partial<PortalAppParts> = {}): Promise<PortalWithProvider> {
  const provider = await openHostileProvider();
  const openIdProvider = createOpenIdProvider({
    issuer: provider.issuer,
    ...provider.client,
    label: LABEL,
    alsoAt: [],
    timeoutMs: 1_000,
    onFault: () => {},
  });
  const config = { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: 1 };
  const portal = await openPortal({ openIdProvider, config, ...own });
  // Each browser has its own address, because the limit of forms per address is not under test here.
  const browser = () => createBrowser(portal.origin, { 'x-forwarded-for': `10.0.${randomInt(256)}.${randomInt(256)}` });
  const leave: PortalWithProvider['leave'] = async (browser, { path, action, values = {} }) => {
    const { status, headers, text } = await browser.submit(path, action, values);
    const location = headers.get('location') ?? '';
    if (status === 303 && location.startsWith(provider.issuer.href)) return new URL(location);
    throw new Error(`the form does not lead to the provider: ${status} ${location} ${text.slice(0, 2000)}`);
  };
  const inviteTo = async (role: Role) => {
    const store = portal.parts.accounts.changedBy({ changedBy: 'a test', requestId: 'r' });
    const context = { store, sessions: portal.parts.sessions, actorId: null };
    const wanted = { name: 'A name', roles: [{ projectId: 'p', role }], isAdministrator: false };
    return `/invitation?code=${(await invite(context, wanted)).text}`;
  };
  return {
    ...portal,
    provider,
    browser,
    leave,
    inviteTo,
    signInAs: async (browser, subject, form = SIGN_IN) => {
      provider.subject = subject;
      return browser.get(pathOf(provider.visit(await leave(browser, form))));
    },
    close: async () => {
      await portal.close();
      await provider.close();
    },
  };
}

/** Path and query of an address of the portal. */
export const pathOf = ({ pathname, search }: URL): string => pathname + search;

export const CALLBACK = '/sign-in/openid';
export const LINK: LeavingForm = { path: '/settings', action: 'link-openid' };

/** The form of the page that a one-time link opens. */
export const acceptAt = (path: string, login: string): LeavingForm => ({
  path,
  action: 'accept',
  values: { login, name: `Name of ${login}`, way: 'openid' },
});

/** Adds a user with a password, and signs them in. */
export async function signedIn(portal: PortalWithProvider, login: string): Promise<TestBrowser> {
  await addPerson(portal, login, {});
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login, password: PASSWORD });
  return browser;
}

/** Adds a user who is linked to `sub of <login>`, and signs them in. */
export async function linkedIn(portal: PortalWithProvider, login: string): Promise<TestBrowser> {
  const browser = await signedIn(portal, login);
  const { status, headers } = await portal.signInAs(browser, `sub of ${login}`, LINK);
  expect([status, headers.get('location')]).toEqual([303, '/settings?done=linked']);
  return browser;
}
