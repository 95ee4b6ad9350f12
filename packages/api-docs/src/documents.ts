import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ERRORS } from '@playline/errors';
import { AREAS } from '@playline/guides';
import { toOpenApi } from './formats/openapi.ts';
import { toCommand, toFreshBody, toResponseText } from './formats/text.ts';
import { type Example, type ExampleRequest, errorPath, type Operation, type Parameter } from './operation.ts';
import { toExamplePair } from './pages/example.ts';
import { type HtmlValue, html, toCodeSpans } from './pages/html.ts';
import { pagesOf, toHref } from './pages/navigation.ts';
import { relativeRoot, toPage } from './pages/page.ts';
import { createCodePages, createReferencePage } from './pages/reference.ts';
import { createPageList, createSearchIndex } from './pages/search.ts';
import { toTryForm } from './pages/try-form.ts';
import {
  allExamples,
  articlePath,
  type CodeText,
  type DocsSource,
  type Document,
  errorCodesOf,
  rejectionPath,
} from './source.ts';
import { describeValues, placeholdersIn } from './values.ts';

const HTML = 'text/html; charset=utf-8';
const PLAIN = 'text/plain; charset=utf-8';

/** Content types by file extension. */
const ASSET_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};
const FONT = createRequire(import.meta.url).resolve('@fontsource-variable/inter/files/inter-latin-wght-normal.woff2');
const ASSETS_FOLDER = new URL('./assets/', import.meta.url);
const ASSETS = readdirSync(ASSETS_FOLDER).map((name): [string, Document] => [
  `/docs/${name}`,
  { type: ASSET_TYPES[name.split('.').at(-1)!]!, text: readFileSync(new URL(name, ASSETS_FOLDER), 'utf8') },
]);

/** Generates all documents, keyed by path. */
export function createDocuments(source: DocsSource): ReadonlyMap<string, Document> {
  const pages = [
    ['/docs', createFirstPage(source)] as const,
    ['/docs/reference', createReferencePage(source)] as const,
    ...source.articles.map((article) => {
      const content = html`<p class="lead">${toCodeSpans(article.summary)}</p>\n${article.content}`;
      const path = articlePath(article);
      return [path, toPage(source, { title: article.title, path, content })] as const;
    }),
    ...createCodePages(source),
  ];
  const index = createSearchIndex(pages);
  const files = source.articles.flatMap((article) =>
    article.files.map(({ name, text }) => [`${articlePath(article)}/${name}`, { type: PLAIN, text }] as const),
  );
  const json = (value: unknown): Document => ({ type: 'application/json', text: JSON.stringify(value, null, 2) });
  return new Map<string, Document>([
    ...pages.map(([path, text]) => [path, { type: HTML, text }] as const),
    ['/docs/pages', { type: HTML, text: createPageList(source, index) }],
    ['/docs/search.json', json(index)],
    ['/docs/inter.woff2', { type: 'font/woff2', text: '', bytes: readFileSync(FONT) }],
    ...files,
    ...ASSETS,
    ...(source.downloads ?? []),
    ['/openapi.json', json(toOpenApi(source))],
    ['/collection.json', json(toCollection(source))],
    ['/llms.txt', { type: PLAIN, text: toLlmsText(source) }],
  ]);
}

const PATH = '/docs';
const TOP = relativeRoot(PATH);

function createFirstPage(source: DocsSource): string {
  const { operations, publicUrl, firstPage } = source;
  const [first] = operations;
  const areas = AREAS.map(({ area, about }) => ({ area, about, pages: pagesOf(source, area) }));
  const content = html`<p class="lead">${firstPage.lead}</p>
<div class="areas">
${areas
  .filter(({ pages }) => pages.length > 0)
  .map(
    ({ area, about, pages }) => html`<section class="panel"><p class="area">${area}</p>
<p>${about}</p>
<ul>${pages.map(({ path, text }) => html`<li><a href="${toHref(path, TOP)}">${text}</a></li>\n`)}</ul></section>
`,
  )}</div>
${first === undefined ? '' : toFirstRequest(first, source)}
<h2 id="machine-readable">Machine-readable</h2>
<ul>
<li><a href="${TOP}openapi.json">OpenAPI 3.1</a>: every operation and schema, for client generators</li>
<li><a href="${TOP}collection.json">Collection</a>: every example as a request, for Postman and Bruno</li>
<li><a href="${TOP}llms.txt">llms.txt</a>: the complete API as plain text, for language models</li>
</ul>
<p>Base URL: <code>${publicUrl}</code></p>`;
  return toPage(source, { title: firstPage.title, path: PATH, content, forms: true });
}

function toFirstRequest(operation: Operation, source: DocsSource): HtmlValue {
  const [example] = operation.examples;
  if (example === undefined) return '';
  const { heading, anchor, before, after } = source.firstPage;
  return html`<h2 id="${anchor}">${heading}</h2>
${before}
${toTryForm(operation, source, PATH)}
${after}
<details class="fold"><summary>The same request with curl</summary>
${toExamplePair(example, { source, top: TOP })}
</details>`;
}

/** Normalises a path, so that `/docs/errors/validation-error.html` matches the page for `VALIDATION_ERROR`. */
const toComparable = (path: string): string =>
  (path.split('/').findLast((part) => part !== '') ?? '')
    .replace(/\.html?$/i, '')
    .replaceAll('-', '_')
    .toUpperCase();

/**
 * Creates the 404 page. It suggests similar pages, but never shows the requested path, which may contain a key.
 * @param path below `/docs`, without a query string
 * @param paths all document paths
 */
export function createNotFoundPage(source: DocsSource, path: string, paths: readonly string[]): string {
  const top = relativeRoot(path);
  const similar = paths.filter((one) => !one.includes('.') && toComparable(one) === toComparable(path));
  const suggestion =
    similar.length === 0
      ? ''
      : html`<p>Did you mean ${similar.map((one, index) => html`${index === 0 ? '' : ' or '}<a href="${top}${one.slice(1)}"><code>${one}</code></a>`)}?</p>`;
  const content = html`<p class="lead"><strong class="status">404</strong> This page does not exist.</p>
${suggestion}
<ul>
<li><a href="${top}docs">${source.firstPage.heading}</a>: send a request from your browser</li>
<li><a href="${top}docs/reference">Reference</a>: every operation and schema</li>
<li><a href="${top}docs/errors">Error codes</a>: what each code means and how to fix the error</li>
</ul>`;
  return toPage(source, { title: 'Page not found', path, content });
}

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** Creates a collection for Postman and Bruno, with one folder per operation and one request per example. */
function toCollection(source: DocsSource): Record<string, unknown> {
  const { title, publicUrl, operations, otherExamples } = source;
  const variable = (key: string, value: string) => ({ key, value, type: 'string' });
  return {
    info: {
      name: title,
      description: `Set the keys in the collection variables. For error codes, see ${publicUrl}/docs/errors.`,
      schema: SCHEMA,
    },
    variable: [
      variable('baseUrl', publicUrl),
      ...placeholdersIn(source, allExamples(source)).map((one) => variable(one.replaceAll(/[{}]/g, ''), '')),
    ],
    item: [
      ...operations.map(({ summary, description, examples }) => ({
        name: summary,
        description: description.join('\n\n'),
        item: examples.filter(isReproducible).map((example) => toItem(example, operations)),
      })),
      { name: 'Unknown paths', item: otherExamples.map((example) => toItem(example, operations)) },
    ],
  };
}

/** False for examples that require the service to be in a special state. */
const isReproducible = ({ situation }: Example): boolean => situation === undefined;

function toItem(example: Example, operations: readonly Operation[]) {
  const { title, request, response } = example;
  const isRepeated = (id: string) => request.body?.indexOf(id) !== request.body?.lastIndexOf(id);
  const id = (value: string) => (isRepeated(value) ? value : '{{$guid}}');
  const freshBody = toFreshBody(example, operations, { id, time: () => '{{$isoTimestamp}}' });
  const originalRequest = toCollectionRequest({ ...request, body: freshBody });
  const body = response.body === null ? '' : JSON.stringify(response.body, null, 2);
  const savedResponse = {
    name: `Response ${response.status}`,
    originalRequest,
    code: response.status,
    header: toHeaders(response.headers),
    body,
  };
  return { name: title, request: originalRequest, response: [savedResponse] };
}

function toCollectionRequest({ method, target, headers, body }: ExampleRequest) {
  const [path = '', query] = target.split('?');
  return {
    method,
    header: toHeaders(headers),
    ...(body === null ? {} : { body: { mode: 'raw', raw: body, options: { raw: { language: 'json' } } } }),
    url: {
      raw: `{{baseUrl}}${target}`,
      host: ['{{baseUrl}}'],
      path: path.split('/').slice(1),
      ...(query === undefined
        ? {}
        : { query: [...new URLSearchParams(query)].map(([key, value]) => ({ key, value })) }),
    },
  };
}

const toHeaders = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).map(([key, value]) => ({ key, value }));

/** Describes the complete API as text for language models. See https://llmstxt.org. */
function toLlmsText(source: DocsSource): string {
  const { publicUrl, title, about, notes, operations, otherExamples, articles } = source;
  const sections = [
    `# ${title}`,
    `> ${about}`,
    [`Base URL: ${publicUrl}`, ...notes].join('\n'),
    [
      '## Documents',
      '',
      `- [OpenAPI 3.1](${publicUrl}/openapi.json): every operation and schema`,
      `- [Collection](${publicUrl}/collection.json): every example as a request, for Postman and Bruno`,
      `- [Reference](${publicUrl}/docs/reference): every operation, with forms that send requests from the browser`,
      ...articles.map((article) => `- [${article.title}](${publicUrl}${articlePath(article)}): ${article.summary}`),
    ].join('\n'),
    ...operations.map((operation) => toSection(operation, source)),
    toErrors(source),
    ['## Unknown paths', ...otherExamples.map((example) => toExample(example, source))].join('\n\n'),
  ];
  return `${sections.join('\n\n')}\n`;
}

function toSection(operation: Operation, source: DocsSource): string {
  const { method, path, summary, description, responses, examples } = operation;
  const parameters = operation.parameters.map(toParameter);
  return [
    `## ${summary}: ${method} ${path}`,
    ...description,
    ...(parameters.length === 0 ? [] : [parameters.join('\n')]),
    responses.map(({ status, codes, description }) => `- ${[status, ...codes].join(' ')}: ${description}`).join('\n'),
    ...examples.map((example) => toExample(example, source)),
  ].join('\n\n');
}

function toParameter(parameter: Parameter): string {
  const { name, required, description, schema } = parameter;
  const facts = [parameter.in, required ? 'required' : 'optional', ...describeValues(schema)];
  return `- \`${name}\` (${facts.join(', ')}): ${description}`;
}

function toExample(example: Example, source: DocsSource): string {
  const { title, response } = example;
  return `### ${title}\n\n\`\`\`sh\n${toCommand(example, source)}\n\`\`\`\n\n\`\`\`http\n${toResponseText(response)}\n\`\`\``;
}

function toErrors({ publicUrl, errors, rejections }: DocsSource): string {
  const toLine = (path: string, status: string, { cause, fix }: CodeText) =>
    `- [${path.split('/').at(-1)}](${publicUrl}${path})${status}: ${cause} ${fix}`;
  const lines = errorCodesOf({ errors }).map((code) =>
    toLine(errorPath(code), ` (${ERRORS[code].status})`, errors[code] ?? ERRORS[code]),
  );
  const rejectionLines = Object.entries(rejections).map(([code, text]) => toLine(rejectionPath(code), '', text));
  const more = rejectionLines.length === 0 ? [] : ['', '## Rejection codes', '', ...rejectionLines];
  return ['## Error codes', '', ...lines, ...more].join('\n');
}

const CACHE_MAX_AGE_S = 300;

/** Documents are cached, because generating all of them takes about 10 ms. */
const EXAMPLE_AGE_MAX_MS = 60 * 60 * 1000;

/** Blocks native form submission, which would put the key into the URL if the scripts failed to load. */
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

function createSecurityHeaders({ elsewhere }: DocsSource): readonly string[] {
  // The search also reads the index of the other service.
  const connect = elsewhere === null ? '' : `; connect-src 'self' ${new URL(elsewhere.url).origin}`;
  return [
    ...['content-security-policy', POLICY + connect],
    ...['x-content-type-options', 'nosniff'],
    ...['referrer-policy', 'no-referrer'],
  ];
}

/** A subset of `Exchange` in `@playline/http`. `headers` contains names and values alternately. */
export interface DocsExchange {
  readonly request: { readonly url?: string };
  answerText(status: number, document: Document, headers: readonly string[]): void;
  answerBytes(status: number, bytes: Buffer, headers: readonly string[], type: string): void;
  answerEmpty(status: number, headers: readonly string[]): void;
}

export interface DocsRoute {
  readonly method: 'GET';
  readonly path: string;
  /** Whether pages from any origin can read the document. */
  readonly cors: boolean;
  handle(exchange: DocsExchange): void;
}

/**
 * Creates a public route for each document, and one route for all other paths below `/docs`. Documents are regenerated
 * every hour, and when the value of `version` changes.
 * @param createSource receives the time to use in examples, in epoch milliseconds
 */
export function createDocsRoutes(
  createSource: (nowMs: number) => DocsSource,
  { monotonicMs = () => performance.now(), wallClockMs = Date.now, version = (): unknown => null } = {},
): DocsRoute[] {
  let createdAtMs = monotonicMs();
  let createdFor = version();
  let documents = createDocuments(createSource(wallClockMs()));
  const current = () => {
    const nowMs = monotonicMs();
    if (nowMs - createdAtMs > EXAMPLE_AGE_MAX_MS || version() !== createdFor) {
      createdFor = version();
      documents = createDocuments(createSource(wallClockMs()));
      createdAtMs = nowMs;
    }
    return documents;
  };
  const source = createSource(0);
  const security = createSecurityHeaders(source);
  const headers = ['cache-control', `max-age=${CACHE_MAX_AGE_S}`, ...security];
  const routes = [...documents].map(
    ([path, initial]): DocsRoute => ({
      method: 'GET',
      path,
      cors: true,
      handle: (exchange) => {
        const { type, text, bytes = Buffer.from(text) } = current().get(path) ?? initial;
        exchange.answerBytes(200, bytes, headers, type);
      },
    }),
  );
  const home: DocsRoute = {
    method: 'GET',
    path: '/',
    cors: false,
    handle: (exchange) => exchange.answerEmpty(302, ['location', './docs']),
  };
  return [home, ...routes, createNotFoundRoute(source, [...documents.keys()], security)];
}

function createNotFoundRoute(source: DocsSource, paths: readonly string[], security: readonly string[]): DocsRoute {
  // Not cached, because the requested page may exist after an upgrade.
  const headers = ['cache-control', 'no-store', ...security];
  return {
    method: 'GET',
    path: '/docs/{*unknown}',
    cors: false,
    handle: (exchange) => {
      const [path = ''] = (exchange.request.url ?? '').split('?');
      const withoutSlash = path.slice(0, -1);
      if (path.endsWith('/') && paths.includes(withoutSlash))
        return exchange.answerEmpty(308, ['location', `../${withoutSlash.split('/').at(-1)}`]);
      exchange.answerText(404, { type: HTML, text: createNotFoundPage(source, path, paths) }, headers);
    },
  };
}
