import { randomUUID } from 'node:crypto';
import {
  createOpenIdSignIn,
  createSignIn,
  notePasskeyUse,
  type OneTimeTexts,
  OPEN_ID_LIFETIME_S,
  type OpenIdProvider,
  type Passkeys,
  type Passwords,
  type Sessions,
} from '@playline/access-keys';
import {
  createBytesInFlight,
  createFaultLog,
  createHttpApp,
  type Exchange,
  type HttpApp,
  type Route,
} from '@playline/http';
import type { Logger } from '@playline/runtime';
import { createNote } from './audit-entries.ts';
import type { Config } from './config.ts';
import { createAddressOf } from './frame/address-of.ts';
import { createAssetRoutes } from './frame/assets.ts';
import { createBrowserCookie, createSessionCookie, createWayCookie } from './frame/cookies.ts';
import { createFormTokens } from './frame/form-tokens.ts';
import { notThere } from './frame/not-there.ts';
import type { PortalPage } from './frame/page.ts';
import { answerFault, createPageRoutes } from './frame/page-route.ts';
import type { FrameParts } from './frame/parts-of-frame.ts';
import type { PortalShares } from './frame/shares.ts';
import { createAdmitMember, createAdmitStranger } from './frame/strangers.ts';
import { createPages } from './pages/index.ts';
import { OPEN_ID_PATH } from './pages/sign-in/open-id.ts';
import type { PortalParts } from './portal-parts.ts';

/** What the portal works with: settings and ports, no adapters. */
export interface PortalAppParts extends PortalParts {
  readonly config: Pick<Config, 'PORTAL_SECRET' | 'TRUSTED_PROXIES'>;
  /** The one address under which people use it. */
  readonly origin: URL;
  readonly sessions: Sessions;
  readonly oneTime: OneTimeTexts;
  readonly passwords: Passwords;
  readonly passkeys: Passkeys;
  /** The queries of `reads` are divided by it. */
  readonly shares: PortalShares;
  /** Null: nobody signs in by one. */
  readonly openIdProvider: OpenIdProvider | null;
  readonly logger: Logger;
}

/** Sixty-four of the largest forms at a time. */
const FORM_BYTES_MAX = 64 * 64 * 1024;

/** The whole portal without its port: host, session, project and role, form token, page. */
export function createPortalApp({ config, origin, sessions, oneTime, logger, ...parts }: PortalAppParts): HttpApp {
  const { accounts, passwords, passkeys, openIdProvider: provider } = parts;
  const onFault = createFaultLog({ logger });
  const frame: FrameParts = {
    origin,
    sessions,
    oneTime,
    onFault,
    cookie: createSessionCookie(origin.origin, config.PORTAL_SECRET),
    browserCookie: createBrowserCookie(origin.origin, config.PORTAL_SECRET),
    wayCookie: createWayCookie(origin.origin, config.PORTAL_SECRET, OPEN_ID_LIFETIME_S),
    tokens: createFormTokens(config.PORTAL_SECRET),
    accounts: parts.accounts.all,
    projects: parts.projects.all,
    admitStranger: createAdmitStranger(),
    admitMember: createAdmitMember(),
    shares: parts.shares,
    addressOf: createAddressOf(config.TRUSTED_PROXIES, logger),
    forms: createBytesInFlight(FORM_BYTES_MAX),
    wallClockMs: Date.now,
  };
  const signIn = createSignIn({
    accounts: accounts.all,
    sessions,
    oneTimeTexts: oneTime,
    passwords,
    passkeys,
    noteUse: (use) => {
      const author = { changedBy: use.accountId, requestId: randomUUID() };
      return notePasskeyUse({ store: accounts.changedBy(author) }, use);
    },
  });
  const redirectUri = origin.origin + OPEN_ID_PATH;
  const openId = provider === null ? null : createOpenIdSignIn({ provider, oneTimeTexts: oneTime, redirectUri });
  const pages: readonly PortalPage[] = createPages({
    ...parts,
    note: createNote({ audit: parts.audit, onFault }),
    frame,
    sessions,
    oneTime,
    signIn,
    openId,
  });
  return createHttpApp({
    routes: [
      ...createAssetRoutes(),
      ...pages.flatMap((page) => createPageRoutes(frame, page)),
      ...createUnknown(frame),
    ],
    link: () => origin.origin,
    onFault,
  });
}

/** Whoever follows a broken address is a person: the answer is a page. */
function createUnknown(frame: FrameParts): Route[] {
  const handle = (exchange: Exchange) => answerFault(frame, exchange, notThere());
  return (['GET', 'POST'] as const).map((method) => ({ method, path: '/{*unknown}', handle }));
}
