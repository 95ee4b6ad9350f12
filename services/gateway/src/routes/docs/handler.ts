import type { Route } from '@playline/http';
import { createDocuments, createUnknownDocument, type DocsSettings } from '../../docs/index.ts';

/** Long enough for a reader who goes to and fro, short enough that an upgrade shows. */
const CACHE_MAX_AGE_S = 300;

/** Events in examples may be as old as this: making all documents takes ten milliseconds, so not at every request. */
const EXAMPLE_AGE_MAX_MS = 60 * 60 * 1000;

/**
 * Pages run one script of their own and reach this service alone. A form whose script did not load sends nothing:
 * it would put the key into the address.
 */
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

const SAFETY = [
  ...['content-security-policy', POLICY],
  ...['x-content-type-options', 'nosniff'],
  ...['referrer-policy', 'no-referrer'],
];
const HEADERS = ['cache-control', `max-age=${CACHE_MAX_AGE_S}`, ...SAFETY];
/** What is not there today may be there after an upgrade. */
const UNKNOWN_HEADERS = ['cache-control', 'no-store', ...SAFETY];

/** Milliseconds: what the age of the documents is measured by, and the hour that their events show. */
interface DocsClocks {
  monotonicMs: () => number;
  wallClockMs: () => number;
}

/** Every document of the interface, one route each: public, without a key, readable from any origin. */
export function createDocsRoutes(settings: DocsSettings, clocks: Partial<DocsClocks> = {}): Route[] {
  const { monotonicMs = () => performance.now(), wallClockMs = Date.now } = clocks;
  let madeAtMs = monotonicMs();
  let documents = createDocuments(settings, wallClockMs());
  const current = () => {
    const nowMs = monotonicMs();
    if (nowMs - madeAtMs > EXAMPLE_AGE_MAX_MS) {
      documents = createDocuments(settings, wallClockMs());
      madeAtMs = nowMs;
    }
    return documents;
  };
  const known = [...documents].map(
    ([path, first]): Route => ({
      method: 'GET',
      path,
      cors: true,
      handle: (exchange) => exchange.answerText(200, current().get(path) ?? first, HEADERS),
    }),
  );
  return [...known, createUnknownRoute(settings, new Set(documents.keys()))];
}

/** Whoever follows a broken address below `/docs` is a person: the answer is a page. The last of the routes. */
function createUnknownRoute(settings: DocsSettings, known: ReadonlySet<string>): Route {
  const toUnknown = createUnknownDocument(settings);
  return {
    method: 'GET',
    path: '/docs/{*unknown}',
    handle: (exchange) => {
      const [path = ''] = (exchange.request.url ?? '').split('?');
      const meant = path.slice(0, -1);
      if (path.endsWith('/') && known.has(meant))
        return exchange.answerEmpty(308, ['location', `../${meant.split('/').at(-1)}`]);
      exchange.answerText(404, toUnknown(path), UNKNOWN_HEADERS);
    },
  };
}
