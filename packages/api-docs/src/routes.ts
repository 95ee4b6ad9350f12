import { createDocuments, createUnknownDocument, type Document } from './documents.ts';
import type { DocsSource } from './source.ts';

/** Long enough for a reader who goes back and forth, short enough that an upgrade is soon seen. */
const CACHE_MAX_AGE_S = 300;

/** How old the times in examples may get. Making all documents takes ten milliseconds, too long for every request. */
const EXAMPLE_AGE_MAX_MS = 60 * 60 * 1000;

/**
 * Pages run only scripts of their own and connect only to the service that serves them. A form whose script did not
 * load must send nothing, since it would put the key into the address.
 */
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

const SAFETY = [
  ...['content-security-policy', POLICY],
  ...['x-content-type-options', 'nosniff'],
  ...['referrer-policy', 'no-referrer'],
];
const HEADERS = ['cache-control', `max-age=${CACHE_MAX_AGE_S}`, ...SAFETY];
/** Not cached: a page that is missing today may exist after an upgrade. */
const UNKNOWN_HEADERS = ['cache-control', 'no-store', ...SAFETY];

/** The part of an exchange of `@playline/http` that these routes need. `headers` holds names and values in turn. */
export interface DocsExchange {
  readonly request: { readonly url?: string };
  answerText(status: number, document: Document, headers: readonly string[]): void;
  answerEmpty(status: number, headers: readonly string[]): void;
}

/** A route of `@playline/http`. */
export interface DocsRoute {
  readonly method: 'GET';
  readonly path: string;
  /** True when pages of any origin may read it. */
  readonly cors: boolean;
  handle(exchange: DocsExchange): void;
}

/**
 * Both in milliseconds: the clock that measures the age of the documents, and the time of day that their examples show.
 */
export interface DocsClocks {
  monotonicMs: () => number;
  wallClockMs: () => number;
}

/**
 * Creates one route for each document of an interface. They are public and need no key. The documents are made anew
 * each hour. The last route answers every other path below `/docs`.
 * @param createSource creates the source with examples of that time, in epoch milliseconds
 */
export function createDocsRoutes(
  createSource: (nowMs: number) => DocsSource,
  clocks: Partial<DocsClocks> = {},
): DocsRoute[] {
  const { monotonicMs = () => performance.now(), wallClockMs = Date.now } = clocks;
  let madeAtMs = monotonicMs();
  let documents = createDocuments(createSource(wallClockMs()));
  const current = () => {
    const nowMs = monotonicMs();
    if (nowMs - madeAtMs > EXAMPLE_AGE_MAX_MS) {
      documents = createDocuments(createSource(wallClockMs()));
      madeAtMs = nowMs;
    }
    return documents;
  };
  const known = [...documents].map(
    ([path, first]): DocsRoute => ({
      method: 'GET',
      path,
      cors: true,
      handle: (exchange) => exchange.answerText(200, current().get(path) ?? first, HEADERS),
    }),
  );
  // The page for unknown paths shows no example, so it needs no time.
  return [...known, createUnknownRoute(createSource(0))];
}

/** Only people follow a broken link below `/docs`, so the answer is a page. */
function createUnknownRoute(source: DocsSource): DocsRoute {
  const known = new Set(createDocuments(source).keys());
  const toUnknown = createUnknownDocument(source);
  return {
    method: 'GET',
    path: '/docs/{*unknown}',
    cors: false,
    handle: (exchange) => {
      const [path = ''] = (exchange.request.url ?? '').split('?');
      const meant = path.slice(0, -1);
      if (path.endsWith('/') && known.has(meant))
        return exchange.answerEmpty(308, ['location', `../${meant.split('/').at(-1)}`]);
      exchange.answerText(404, toUnknown(path), UNKNOWN_HEADERS);
    },
  };
}
