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

export interface PortalWithProvider extends TestPortal {
  readonly provider: HostileProvider;
  /** Submits a form and returns the redirect target. @throws Error if the form does not redirect to the provider */
  submitToProvider(browser: TestBrowser, form: ProviderForm): Promise<URL>;
  /** Submits a form, signs in to the provider as `subject`, and requests the callback. */
  signInAs(browser: TestBrowser, subject: string, form?: ProviderForm): Promise<Response>;
  /** Creates an invitation. @returns the path of the invitation link */
  createInvitation(role: Role): Promise<string>;
}

export interface ProviderForm {
  readonly path: string;
  readonly action: string;
  readonly values?: Readonly<Record<string, string>>;
}

export const SIGN_IN: ProviderForm = { path: '/sign-in', action: 'openid' };

export async function openPortalWithProvider(parts: Partial<PortalAppParts> = {}): Promise<PortalWithProvider> {
  const provider = await openHostileProvider();
  const openIdProvider = createOpenIdProvider({
    issuer: provider.issuer,
    ...provider.client,
    label: LABEL,
    additionalOrigins: [],
    timeoutMs: 1_000,
    onFault: () => {},
  });
  const config = { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: 1 };
  const portal = await openPortal({ openIdProvider, config, ...parts });
  // Each browser uses a random client address to avoid the limit per address.
  const browser = () => createBrowser(portal.origin, { 'x-forwarded-for': `10.0.${randomInt(256)}.${randomInt(256)}` });
  const submitToProvider: PortalWithProvider['submitToProvider'] = async (browser, { path, action, values = {} }) => {
    const { status, headers, text } = await browser.submit(path, action, values);
    const location = headers.get('location') ?? '';
    if (status === 303 && location.startsWith(provider.issuer.href)) return new URL(location);
    throw new Error(`The form does not redirect to the provider: ${status} ${location} ${text.slice(0, 2000)}`);
  };
  const createInvitation = async (role: Role) => {
    const store = portal.parts.accounts.storeFor({ changedBy: 'a test', requestId: 'r' });
    const context = { store, sessions: portal.parts.sessions, actorId: null };
    const invitation = { name: 'A name', roles: [{ projectId: 'p', role }], isAdministrator: false };
    return `/invitation?code=${(await invite(context, invitation)).text}`;
  };
  return {
    ...portal,
    provider,
    browser,
    submitToProvider,
    createInvitation,
    signInAs: async (browser, subject, form = SIGN_IN) => {
      provider.subject = subject;
      return browser.get(toPath(provider.visit(await submitToProvider(browser, form))));
    },
    close: async () => {
      await portal.close();
      await provider.close();
    },
  };
}

export const toPath = ({ pathname, search }: URL): string => pathname + search;

export const CALLBACK = '/sign-in/openid';
export const LINK: ProviderForm = { path: '/settings', action: 'link-openid' };

/** The form that accepts a one-time link. */
export const acceptForm = (path: string, login: string): ProviderForm => ({
  path,
  action: 'accept',
  values: { login, name: `Name of ${login}`, 'sign-in-method': 'openid' },
});

export async function openSignedInBrowser(portal: PortalWithProvider, login: string): Promise<TestBrowser> {
  await addPerson(portal, login, {});
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login, password: PASSWORD });
  return browser;
}

/** Adds an account, links it to the subject `sub of <login>`, and returns a browser that is signed in. */
export async function openLinkedBrowser(portal: PortalWithProvider, login: string): Promise<TestBrowser> {
  const browser = await openSignedInBrowser(portal, login);
  const { status, headers } = await portal.signInAs(browser, `sub of ${login}`, LINK);
  expect([status, headers.get('location')]).toEqual([303, '/settings?done=linked']);
  return browser;
}
