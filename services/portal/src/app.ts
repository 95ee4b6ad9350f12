import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
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
import { PublicError } from '@playline/errors';
import {
  type ClientAddressOf,
  createBytesInFlight,
  createClientAddress,
  createFaultLog,
  createHttpApp,
  createRequestDurations,
  type Exchange,
  type HttpApp,
  type Route,
} from '@playline/http';
import { createWindowLimiter } from '@playline/rate-limit';
import type { Logger, Metrics } from '@playline/runtime';
import type { Config } from './config.ts';
import { createBrowserCookie, createProviderCookie, createSessionCookie } from './frame/cookies.ts';
import { createFormTokens } from './frame/form-tokens.ts';
import type { FrameParts } from './frame/frame-parts.ts';
import { pageNotFound } from './frame/not-found.ts';
import type { PortalPage } from './frame/page.ts';
import { answerFault, createPageRoutes } from './frame/page-route.ts';
import type { PortalShares } from './frame/shares.ts';
import { createPages } from './pages/index.ts';
import { OPEN_ID_PATH } from './pages/sign-in/open-id.ts';
import type { PortalParts } from './portal-parts.ts';
import { createWriteAudit } from './write-audit.ts';

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
  readonly metrics: Pick<Metrics, 'histogram'>;
}

/** Sixty-four of the largest forms at a time. */
const FORM_BYTES_MAX = 64 * 64 * 1024;

/** The whole portal without its port: host, session, project and role, form token, page. */
export function createPortalApp({
  config,
  origin,
  sessions,
  oneTime,
  logger,
  metrics,
  ...parts
}: PortalAppParts): HttpApp {
  const { accounts, passwords, passkeys, openIdProvider: provider } = parts;
  const onFault = createFaultLog({ logger });
  const frame: FrameParts = {
    origin,
    sessions,
    oneTime,
    onFault,
    cookie: createSessionCookie(origin.origin, config.PORTAL_SECRET),
    browserCookie: createBrowserCookie(origin.origin, config.PORTAL_SECRET),
    providerCookie: createProviderCookie(origin.origin, config.PORTAL_SECRET, OPEN_ID_LIFETIME_S),
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
    writeAudit: createWriteAudit({ audit: parts.audit, onFault }),
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
    onAnswer: createRequestDurations(metrics),
    onFault,
  });
}

/** Whoever follows a broken address is a person: the answer is a page. */
function createUnknown(frame: FrameParts): Route[] {
  const handle = (exchange: Exchange) => answerFault(frame, exchange, pageNotFound());
  return (['GET', 'POST'] as const).map((method) => ({ method, path: '/{*unknown}', handle }));
}

/** What proxies tell the client's address by. */
const FORWARDED = ['x-forwarded-for', 'forwarded'];

/**
 * Builds the reading of the address that people are counted under. Behind a proxy that is not trusted all of them have that
 * of the proxy, and the wrong tries of one lock everybody out: the first request that tells of one is told to the log, once.
 */
function createAddressOf(trustedProxies: number, logger: Pick<Logger, 'warn'>): ClientAddressOf {
  const addressOf = createClientAddress(trustedProxies);
  if (trustedProxies > 0) return addressOf;
  let wasTold = false;
  return (request) => {
    if (!wasTold && FORWARDED.some((name) => request.headers[name] !== undefined)) {
      wasTold = true;
      logger.warn(
        {},
        'a request says that it was forwarded, and no proxy is trusted: everybody behind one proxy shares its tries to sign in, so that a few wrong ones lock all of them out. Set TRUSTED_PROXIES to the number of proxies in front',
      );
    }
    return addressOf(request);
  };
}

const FOLDER = new URL('./assets/', import.meta.url);

/** What pages are made of besides their text. A file that is not named here is served to nobody. */
const ASSETS = [
  { name: 'portal.css', type: 'text/css; charset=utf-8' },
  { name: 'portal.js', type: 'text/javascript; charset=utf-8' },
  { name: 'live.js', type: 'text/javascript; charset=utf-8' },
  { name: 'passkeys.js', type: 'text/javascript; charset=utf-8' },
  { name: 'icon.svg', type: 'image/svg+xml' },
] as const;

/** Long enough for a visit, short enough that an upgrade shows. */
const CACHE_MAX_AGE_S = 300;
const HEADERS = [
  ...['cache-control', `max-age=${CACHE_MAX_AGE_S}`],
  ...['x-content-type-options', 'nosniff'],
  ...['cross-origin-resource-policy', 'same-origin'],
];

/** One route for each file, read once. */
function createAssetRoutes(): Route[] {
  return ASSETS.map(({ name, type }) => {
    const text = readFileSync(new URL(name, FOLDER), 'utf8');
    return {
      method: 'GET',
      path: `/assets/${name}`,
      handle: (exchange) => exchange.answerText(200, { type, text }, HEADERS),
    };
  });
}

/**
 * A person who mistypes sends a few in a minute, an office behind one address some dozens. Each leaves some 150 bytes in
 * Redis for twelve hours at most: 6 MB for an address that never pauses.
 */
const FORMS = { name: 'forms', calls: 60, windowS: 60 };
/** Nobody clicks faster; of an account that never pauses 250 bytes a form are 22 MB in Redis, which people share. */
const MEMBER_FORMS = { name: 'forms of members', calls: 120, windowS: 60 };

/** Builds what lets forms of people in who have not signed in. Each process counts by itself. */
export function createAdmitStranger(now?: () => number): (address: string) => void {
  return createAdmit(FORMS, 'your address', now);
}

/** Builds what lets forms of people in who have signed in, by the ids of their accounts. */
function createAdmitMember(now?: () => number): (accountId: string) => void {
  return createAdmit(MEMBER_FORMS, 'your account', now);
}

function createAdmit(forms: typeof FORMS, from: string, now?: () => number): (name: string) => void {
  const limiter = createWindowLimiter(now === undefined ? {} : { now });
  return (name) => {
    const window = limiter.window(name, forms);
    const { allowed, waitS } = window.status();
    if (!allowed)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `Too many forms came from ${from}. Try again in ${waitS} seconds.`,
        retryAfterS: waitS,
      });
    window.charge(1);
  };
}
