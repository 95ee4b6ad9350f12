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
import { createBrowser, type Seen, type TestBrowser } from '../../../services/portal/src/test/test-browser.ts';

const LABEL = 'Work & Co';

/** A portal that was told of a provider, and the provider. */
export interface PortalWithProvider extends TestPortal {
  readonly provider: HostileProvider;
  /** Sends a form that leads to the provider. @returns the address there; fails where it leads elsewhere */
  leave(browser: TestBrowser, form: LeavingForm): Promise<URL>;
  /** There and back, as somebody. */
  signInAs(browser: TestBrowser, subject: string, form?: LeavingForm): Promise<Seen>;
  /** An invitation by whoever runs the instance. @returns its path */
  inviteTo(role: Role): Promise<string>;
}

export interface LeavingForm {
  readonly path: string;
  readonly deed: string;
  readonly values?: Readonly<Record<string, string>>;
}

export const SIGN_IN: LeavingForm = { path: '/sign-in', deed: 'openid' };

export async function openPortalWithProvider(own: Partial<PortalAppParts> = {}): Promise<PortalWithProvider> {
  const provider = await openHostileProvider();
  const openIdProvider = createOpenIdProvider({
    ...{ issuer: provider.issuer, ...provider.client, label: LABEL, alsoAt: [], timeoutMs: 1_000 },
    onFault: () => {},
  });
  const config = { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: 1 };
  const portal = await openPortal({ openIdProvider, config, ...own });
  // From an address of its own each: how many forms may come from one is not asked here.
  const browser = () => createBrowser(portal.origin, { 'x-forwarded-for': `10.0.${randomInt(256)}.${randomInt(256)}` });
  const leave: PortalWithProvider['leave'] = async (browser, { path, deed, values = {} }) => {
    const { status, headers, text } = await browser.submit(path, deed, values);
    const location = headers.get('location') ?? '';
    if (status === 303 && location.startsWith(provider.issuer.href)) return new URL(location);
    throw new Error(`the form does not lead to the provider: ${status} ${location} ${text.slice(0, 2000)}`);
  };
  const inviteTo = async (role: Role) => {
    const store = portal.parts.accounts.changedBy({ changedBy: 'a test', requestId: 'r' });
    const context = { store, sessions: portal.parts.sessions, actorId: null };
    const wanted = { name: 'Somebody', roles: [{ projectId: 'p', role }], isAdministrator: false };
    return `/invitation?code=${(await invite(context, wanted)).text}`;
  };
  return {
    ...{ ...portal, provider, browser, leave, inviteTo },
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

/** Path of an address of the portal, with its question. */
export const pathOf = ({ pathname, search }: URL): string => pathname + search;

export const CALLBACK = '/sign-in/openid';
export const LINK: LeavingForm = { path: '/settings', deed: 'link-openid' };

/** The form of a link that lets somebody in. */
export const acceptAt = (path: string, login: string): LeavingForm => ({
  ...{ path, deed: 'accept' },
  values: { login, name: `Name of ${login}`, way: 'openid' },
});

/** Somebody with a password, who has signed in. */
export async function signedIn(portal: PortalWithProvider, login: string): Promise<TestBrowser> {
  await addPerson(portal, login, {});
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login, password: PASSWORD });
  return browser;
}

/** Somebody who has signed in, and is linked to `sub of <login>`. */
export async function linkedIn(portal: PortalWithProvider, login: string): Promise<TestBrowser> {
  const browser = await signedIn(portal, login);
  const { status, headers } = await portal.signInAs(browser, `sub of ${login}`, LINK);
  expect([status, headers.get('location')]).toEqual([303, '/settings?done=linked']);
  return browser;
}
