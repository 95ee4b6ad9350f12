import { host } from '../host.ts';
import type { AudienceClient } from '../options.ts';

/** How the page came to be shown; `properties.navigation` of each page view. */
type Navigation = 'load' | 'push' | 'replace' | 'traverse';

/**
 * Sends a page view now and whenever the address changes without a new page, once the consent allows it.
 * @returns what ends it
 */
export function capturePageViews(client: AudienceClient): () => void {
  const { document, location, history } = host;
  if (!document || !location) return () => {};
  /** The address that was sent last; '' when none was. */
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
    // The browser has kept the whole page and shows it again.
    if (event.persisted) view('traverse');
  };
  const unwrap = history && [
    wrap(history, 'pushState', () => onMove('push')),
    // Games keep their state in query and hash: only another path is another page.
    wrap(history, 'replaceState', () => pathOf(location.href) !== pathOf(shown) && onMove('replace')),
  ];
  host.addEventListener?.('popstate', onTraverse);
  host.addEventListener?.('hashchange', onTraverse);
  host.addEventListener?.('pageshow', onShow);
  // Who agrees later agrees for the page that is shown then.
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

/** Calls `after` behind a method, which keeps its own result and faults. */
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
    // Whoever wrapped it after us stays.
    if (owner[name] === wrapped) owner[name] = own;
  };
}
