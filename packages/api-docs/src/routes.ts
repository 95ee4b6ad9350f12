import { createDocuments, createUnknownDocument, type Document } from './documents.ts';
import type { DocsSource } from './source.ts';

/** Long enough for a reader who goes to and fro, short enough that an upgrade shows. */
const CACHE_MAX_AGE_S = 300;

/** Times in examples may be as old as this: making all documents takes ten milliseconds, so not at every request. */
const EXAMPLE_AGE_MAX_MS = 60 * 60 * 1000;

/**
 * Pages run scripts of their own and reach the service that serves them alone. A form whose script did not load sends
 * nothing: it would put the key into the address.
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

/** What a route answers: the part of an exchange of `@playline/http` that it needs. Headers: names and values in turn. */
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

/** Milliseconds: what the age of the documents is measured by, and the hour that their examples show. */
export interface DocsClocks {
  monotonicMs: () => number;
  wallClockMs: () => number;
}

/**
 * Every document of an interface, one route each: public, without a key. They are made anew each hour. The last route is
 * for every other path below `/docs`.
 * @param createSource gives the source with examples of that time, in epoch milliseconds
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
  // Its page shows no example, so no time.
  return [...known, createUnknownRoute(createSource(0))];
}

/** Whoever follows a broken address below `/docs` is a person: the answer is a page. */
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
