/** The parts that serve pages. */
import {
  type AccountRecord,
  type OneTimeTokens,
  OPEN_ID_LIFETIME_S,
  type ProjectRecord,
  type Sessions,
} from '@playline/access-keys';
import { type AlertStore, isFiring } from '@playline/alerts';
import { PublicError } from '@playline/errors';
import { type ClientAddressOf, createBytesInFlight, createClientAddress, type Exchange } from '@playline/http';
import { createWindowLimiter } from '@playline/rate-limit';
import type { Logger } from '@playline/runtime';
import type { Config } from '../config.ts';
import { createCachedRead } from '../pipeline-status.ts';
import type { PortalParts } from '../portal-parts.ts';
import type { PortalRecords } from '../stores/portal-records.ts';
import { createBrowserCookie, createOpenedCookie, createProviderCookie, createSessionCookie } from './cookies.ts';
import { createFormTokens } from './form-tokens.ts';
import { createKeptForms } from './kept-forms.ts';
import type { PortalLimiters } from './limiters.ts';

export interface FrameOptions {
  readonly config: Pick<Config, 'PORTAL_SECRET' | 'TRUSTED_PROXIES'>;
  readonly origin: URL;
  readonly sessions: Sessions;
  readonly oneTimeTokens: OneTimeTokens;
  readonly limiters: PortalLimiters;
  readonly accounts: PortalRecords<AccountRecord>;
  readonly projects: PortalRecords<ProjectRecord>;
  readonly alerts: PortalParts['alerts'];
  readonly logger: Logger;
}

export type FrameParts = ReturnType<typeof createFrameParts>;

const FORM_BYTES_TOTAL_MAX = 64 * 64 * 1024;

export function createFrameParts(parts: FrameOptions, onFault: (exchange: Exchange, fault: unknown) => void) {
  const { origin, sessions, oneTimeTokens, limiters } = parts;
  const { PORTAL_SECRET: secret, TRUSTED_PROXIES: trustedProxies } = parts.config;
  return {
    origin,
    sessions,
    oneTimeTokens,
    limiters,
    onFault,
    cookie: createSessionCookie(origin.origin, secret),
    browserCookie: createBrowserCookie(origin.origin, secret),
    providerCookie: createProviderCookie(origin.origin, secret, OPEN_ID_LIFETIME_S),
    openedCookie: createOpenedCookie(origin.origin, secret),
    keptForms: createKeptForms(origin.origin, secret),
    tokens: createFormTokens(secret),
    /** @throws Error if the accounts cannot be read, in which case access is denied */
    accounts: parts.accounts.all,
    projects: parts.projects.all,
    countFiring: createCountFiring(parts.alerts.store),
    /** Counts a form submitted before sign-in. @throws PublicError TOO_MANY_REQUESTS_ERROR */
    admitAnonymous: createAdmit(ANONYMOUS_FORMS, 'your address'),
    admitAccount: createAdmit(ACCOUNT_FORMS, 'your account'),
    addressOf: createAddressOf(trustedProxies, parts.logger),
    formBytes: createBytesInFlight(FORM_BYTES_TOTAL_MAX),
    wallClockMs: Date.now,
  };
}

/** A new alert appears in the sidebar after at most this time, in addition to the evaluations that it takes to fire. */
const FIRING_TTL_MS = 5_000;

/** Returns the number of firing alerts by project id; an empty map if they cannot be read. */
function createCountFiring(store: Pick<AlertStore, 'read'>): () => Promise<ReadonlyMap<string, number>> {
  const count = createCachedRead(async () => {
    const counts = new Map<string, number>();
    for (const { projectId } of (await store.read()).filter(isFiring))
      counts.set(projectId, (counts.get(projectId) ?? 0) + 1);
    return counts;
  }, FIRING_TTL_MS);
  return () => count().catch(() => new Map());
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
