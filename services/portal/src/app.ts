import { randomUUID } from 'node:crypto';
import {
  createOpenIdSignIn,
  createSignIn,
  type OpenIdProvider,
  type Passkeys,
  type Passwords,
  recordPasskeyUse,
} from '@playline/access-keys';
import {
  createFailureLog,
  createHttpApp,
  createRequestDurations,
  type Exchange,
  type HttpApp,
  type Route,
} from '@playline/http';
import type { Metrics, Tracing } from '@playline/runtime';
import { createAssetRoutes } from './frame/assets.ts';
import { createFrameParts, type FrameOptions, type FrameParts } from './frame/frame-parts.ts';
import { createPageRoutes, respondWithError } from './frame/page-route.ts';
import { pageNotFound } from './frame/scope.ts';
import { countActions, watchLive } from './metrics.ts';
import { createPages } from './pages/index.ts';
import { OPEN_ID_PATH } from './pages/sign-in/open-id.ts';
import type { PortalParts } from './portal-parts.ts';
import { createWriteAudit } from './write-audit.ts';

export interface PortalAppParts extends PortalParts, FrameOptions {
  readonly passwords: Passwords;
  readonly passkeys: Passkeys;
  readonly openIdProvider: OpenIdProvider | null;
  readonly metrics: Pick<Metrics, 'histogram' | 'counter' | 'collectedGauge'>;
  readonly tracing: Tracing | null;
}

export function createPortalApp(parts: PortalAppParts): HttpApp {
  const { origin, sessions, oneTimeTokens, logger, accounts, openIdProvider: provider } = parts;
  const onFault = createFailureLog({ logger });
  const frame = createFrameParts(parts, onFault);
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
  const writeAudit = countActions(parts.metrics, createWriteAudit({ audit: parts.audit, onFault }));
  watchLive(parts.metrics, () => parts.live.subscribers);
  const pages = createPages({ ...parts, writeAudit, frame, signIn, openId });
  return createHttpApp({
    routes: [
      ...createAssetRoutes(),
      ...createDocsRoutes(parts.settings),
      ...pages.flatMap((page) => createPageRoutes(frame, page)),
      ...createNotFoundRoutes(frame),
    ],
    link: () => origin.origin,
    tracing: parts.tracing,
    onAnswer: createRequestDurations(parts.metrics),
    onFailure: onFault,
  });
}

/** Redirects links to the documentation: below `/docs/chain` to the chain API, all others to the gateway. */
function createDocsRoutes({ gatewayUrl, chainApiUrl }: PortalParts['settings']): Route[] {
  const handle: Route['handle'] = (exchange) => {
    const { pathname, search } = new URL(exchange.request.url ?? '/', 'http://portal');
    const chainPath = /^\/docs\/chain(\/.*)?$/.exec(pathname);
    const url = chainPath === null ? gatewayUrl + pathname : `${chainApiUrl}/docs${chainPath[1] ?? ''}`;
    exchange.answerEmpty(302, ['location', url + search]);
  };
  return ['/docs', '/docs/{*page}'].map((path) => ({ method: 'GET', path, handle }));
}

/** Shows an HTML page for unknown paths. */
function createNotFoundRoutes(frame: FrameParts): Route[] {
  const handle = (exchange: Exchange) => respondWithError(frame, exchange, pageNotFound());
  return (['GET', 'POST'] as const).map((method) => ({ method, path: '/{*unknown}', handle }));
}
