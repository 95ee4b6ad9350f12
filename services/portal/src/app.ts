import { randomUUID } from 'node:crypto';
import {
  createOpenIdSignIn,
  createSignIn,
  type OneTimeTokens,
  OPEN_ID_LIFETIME_S,
  type OpenIdProvider,
  type Passkeys,
  type Passwords,
  recordPasskeyUse,
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
import { createAssetRoutes } from './frame/assets.ts';
import { createBrowserCookie, createOpenedCookie, createProviderCookie, createSessionCookie } from './frame/cookies.ts';
import { createFormTokens } from './frame/form-tokens.ts';
import type { FrameParts } from './frame/frame-parts.ts';
import { createKeptForms } from './frame/kept-forms.ts';
import type { PortalLimiters } from './frame/limiters.ts';
import { createPageRoutes, respondWithError } from './frame/page-route.ts';
import { pageNotFound } from './frame/scope.ts';
import { createPages } from './pages/index.ts';
import { OPEN_ID_PATH } from './pages/sign-in/open-id.ts';
import type { PortalParts } from './portal-parts.ts';
import { createWriteAudit } from './write-audit.ts';

export interface PortalAppParts extends PortalParts {
  readonly config: Pick<Config, 'PORTAL_SECRET' | 'TRUSTED_PROXIES'>;
  readonly origin: URL;
  readonly sessions: Sessions;
  readonly oneTimeTokens: OneTimeTokens;
  readonly passwords: Passwords;
  readonly passkeys: Passkeys;
  readonly limiters: PortalLimiters;
  readonly openIdProvider: OpenIdProvider | null;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'histogram'>;
}

const FORM_BYTES_TOTAL_MAX = 64 * 64 * 1024;

export function createPortalApp(parts: PortalAppParts): HttpApp {
  const { config, origin, sessions, oneTimeTokens, logger, accounts, openIdProvider: provider } = parts;
  const onFault = createFaultLog({ logger });
  const frame: FrameParts = {
    origin,
    sessions,
    oneTimeTokens,
    onFault,
    cookie: createSessionCookie(origin.origin, config.PORTAL_SECRET),
    browserCookie: createBrowserCookie(origin.origin, config.PORTAL_SECRET),
    providerCookie: createProviderCookie(origin.origin, config.PORTAL_SECRET, OPEN_ID_LIFETIME_S),
    openedCookie: createOpenedCookie(origin.origin, config.PORTAL_SECRET),
    keptForms: createKeptForms(origin.origin, config.PORTAL_SECRET),
    tokens: createFormTokens(config.PORTAL_SECRET),
    accounts: accounts.all,
    projects: parts.projects.all,
    admitAnonymous: createAdmit(ANONYMOUS_FORMS, 'your address'),
    admitAccount: createAdmit(ACCOUNT_FORMS, 'your account'),
    limiters: parts.limiters,
    addressOf: createAddressOf(config.TRUSTED_PROXIES, logger),
    formBytes: createBytesInFlight(FORM_BYTES_TOTAL_MAX),
    wallClockMs: Date.now,
  };
  const signIn = createSignIn({
    accounts: accounts.all,
    sessions,
    oneTimeTokens,
    passwords: parts.passwords,
    passkeys: parts.passkeys,
    recordUse: (use) => {
      const author = { changedBy: use.accountId, requestId: randomUUID() };
      return recordPasskeyUse({ store: accounts.storeFor(author) }, use);
    },
  });
  const redirectUri = origin.origin + OPEN_ID_PATH;
  const openId = provider === null ? null : createOpenIdSignIn({ provider, oneTimeTokens, redirectUri });
  const writeAudit = createWriteAudit({ audit: parts.audit, onFault });
  const pages = createPages({ ...parts, writeAudit, frame, signIn, openId });
  return createHttpApp({
    routes: [
      ...createAssetRoutes(),
      ...createDocsRoutes(parts.settings),
      ...pages.flatMap((page) => createPageRoutes(frame, page)),
      ...createNotFoundRoutes(frame),
    ],
    link: () => origin.origin,
    onAnswer: createRequestDurations(parts.metrics),
    onFault,
  });
}

/** Links to the documentation need not know the address of the gateway, which serves it. */
function createDocsRoutes({ gatewayUrl }: PortalParts['settings']): Route[] {
  const handle: Route['handle'] = (exchange) => {
    const { pathname } = new URL(exchange.request.url ?? '/', 'http://portal');
    exchange.answerEmpty(302, ['location', gatewayUrl + pathname]);
  };
  return ['/docs', '/docs/{*page}'].map((path) => ({ method: 'GET', path, handle }));
}

/** Shows an HTML page for unknown paths. */
function createNotFoundRoutes(frame: FrameParts): Route[] {
  const handle = (exchange: Exchange) => respondWithError(frame, exchange, pageNotFound());
  return (['GET', 'POST'] as const).map((method) => ({ method, path: '/{*unknown}', handle }));
}

const FORWARDED_HEADERS = ['x-forwarded-for', 'forwarded'];

/** Logs one warning if a request was forwarded although no proxy is trusted. */
function createAddressOf(trustedProxies: number, logger: Pick<Logger, 'warn'>): ClientAddressOf {
  const addressOf = createClientAddress(trustedProxies);
  if (trustedProxies > 0) return addressOf;
  let hasWarned = false;
  return (request) => {
    if (!hasWarned && FORWARDED_HEADERS.some((name) => request.headers[name] !== undefined)) {
      hasWarned = true;
      logger.warn(
        {},
        'request forwarded by an untrusted proxy; all users behind it appear to have the same IP address and share one limit on sign-in attempts. Set TRUSTED_PROXIES to the number of proxies',
      );
    }
    return addressOf(request);
  };
}

/** Each form uses 150 bytes in Redis for up to twelve hours, so one address can use at most 6 MB. */
const ANONYMOUS_FORMS = { name: 'forms', calls: 60, windowS: 60 };
/** Limits one account to 22 MB in Redis. */
const ACCOUNT_FORMS = { name: 'forms of accounts', calls: 120, windowS: 60 };

/** Limits the number of forms that one address or account can submit to this process. */
function createAdmit(limit: typeof ANONYMOUS_FORMS, source: string): (name: string) => void {
  const limiter = createWindowLimiter();
  return (name) => {
    const window = limiter.window(name, limit);
    const { allowed, waitS } = window.status();
    if (!allowed)
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `Too many forms from ${source}. Try again in ${waitS} seconds.`,
        retryAfterS: waitS,
      });
    window.charge(1);
  };
}
