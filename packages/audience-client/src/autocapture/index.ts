import { host } from '../host.ts';
import type { AudienceClient } from '../options.ts';
import { openSessions } from './sessions.ts';

export interface AutocaptureOptions {
  /** Sends a `page` for the first address and for each address that the page's history shows later (true). */
  pageViews?: boolean;
  /** Sends `session_started` and `session_ended`, and puts `sessionId` on every message in between (true). */
  sessions?: boolean;
  /** A session ends after this long without any activity (1,800,000: half an hour, the usual value). */
  inactivityTimeoutMs?: number;
}

export interface Autocapture {
  /**
   * Reports that the player is active although nothing was typed, clicked or tracked. For games that are played with a
   * gamepad.
   */
  touch(): void;
  /** Stops capturing. An open session stays in the store: the next page continues it or ends it. */
  close(): void;
}

/** Half an hour, as in most web analytics. */
const INACTIVITY_TIMEOUT_MS = 30 * 60 * 1000;

/** Makes a client report page views and sessions by itself, as far as its consent allows. */
export function openAutocapture(client: AudienceClient, options: AutocaptureOptions = {}): Autocapture {
  const { pageViews = true, sessions = true, inactivityTimeoutMs = INACTIVITY_TIMEOUT_MS } = options;
  // Sessions first, so that the first page view already carries a session id.
  const session = sessions ? openSessions(client, inactivityTimeoutMs) : null;
  const stopPageViews = pageViews ? capturePageViews(client) : () => {};
  const close = () => {
    stopPageViews();
    session?.close();
    unsubscribe();
  };
  const unsubscribe = client.subscribe((event) => event === 'close' && close());
  return { touch: () => session?.touch(), close };
}

/** How the page came to be shown; `properties.navigation` of each page view. */
type Navigation = 'load' | 'push' | 'replace' | 'traverse';

/**
 * Sends a page view now, and again whenever the address changes without a new page, once the consent allows it.
 * @returns a function that stops this
 */
function capturePageViews(client: AudienceClient): () => void {
  const { document, location, history } = host;
  if (!document || !location) return () => {};
  /** The address of the last page view; '' when there was none. */
  let shown = '';
  const view = (navigation: Navigation) => {
    if (client.consent === 'none') return;
    shown = location.href;
    client.page({ navigation });
  };
  const onMove = (navigation: Navigation) => {
    if (location.href !== shown) view(navigation);
  };
  const onTraverse = () => onMove('traverse');
  const onShow = (event: { persisted?: boolean }) => {
    // The browser had kept the whole page in its back/forward cache and shows it again.
    if (event.persisted) view('traverse');
  };
  const unwrap = history && [
    wrap(history, 'pushState', () => onMove('push')),
    // Games keep their state in the query and the hash, so only a different path counts as a different page.
    wrap(history, 'replaceState', () => pathOf(location.href) !== pathOf(shown) && onMove('replace')),
  ];
  host.addEventListener?.('popstate', onTraverse);
  host.addEventListener?.('hashchange', onTraverse);
  host.addEventListener?.('pageshow', onShow);
  // Consent that is given later counts for the page that is shown at that moment.
  const unsubscribe = client.subscribe((event) => {
    if (event !== 'consent') return;
    if (client.consent === 'none') shown = '';
    else if (shown === '') view('load');
  });
  view('load');
  return () => {
    for (const restore of unwrap ?? []) restore();
    host.removeEventListener?.('popstate', onTraverse);
    host.removeEventListener?.('hashchange', onTraverse);
    host.removeEventListener?.('pageshow', onShow);
    unsubscribe();
  };
}

const pathOf = (href: string): string => href.replace(/[?#].*$/s, '');

type Method = (...given: unknown[]) => void;

/** Makes a method call `after` when it has run. Its result and its exceptions stay as they are. */
function wrap<Name extends string>(owner: Record<Name, Method>, name: Name, after: () => void): () => void {
  const own = owner[name];
  let stopped = false;
  const wrapped: Method = function (this: unknown, ...given) {
    own.apply(this, given);
    if (!stopped) after();
  };
  owner[name] = wrapped as Record<Name, Method>[Name];
  return () => {
    stopped = true;
    // If another script has wrapped the method after us, its wrapper must stay.
    if (owner[name] === wrapped) owner[name] = own;
  };
}
