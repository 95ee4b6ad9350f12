import { readdirSync, readFileSync } from 'node:fs';
import { ERRORS } from '@playline/errors';
import { toOpenApi } from './formats/openapi.ts';
import { toAnswerText, toCommand } from './formats/text.ts';
import { type Example, type ExampleRequest, errorPath, type Operation, type Parameter } from './operation.ts';
import { toExamplePair } from './pages/example.ts';
import { type HtmlValue, html, toCodeSpans } from './pages/html.ts';
import { toOperationLink } from './pages/navigation.ts';
import { relativeRoot, toPage } from './pages/page.ts';
import { createCodePages, createReferencePage } from './pages/reference.ts';
import { toTryForm } from './pages/try-form.ts';
import { allExamples, articlePath, type DocsSource, errorCodesOf, type PartCodes, partCodePath } from './source.ts';
import { describeValues, placeholdersIn } from './values.ts';

/** One file of the documentation, as its path serves it. */
export interface Document {
  readonly type: string;
  readonly text: string;
}

const HTML = 'text/html; charset=utf-8';
const PLAIN = 'text/plain; charset=utf-8';

/** By the extension of the file. */
const ASSET_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};
/** Files that pages load, below `/docs`. */
const FOLDER = new URL('./assets/', import.meta.url);
const ASSETS = readdirSync(FOLDER).map((name): [string, Document] => [
  `/docs/${name}`,
  { type: ASSET_TYPES[name.split('.').at(-1)!]!, text: readFileSync(new URL(name, FOLDER), 'utf8') },
]);

/** Every document of a source, by its path. */
export function createDocuments(source: DocsSource): ReadonlyMap<string, Document> {
  const pages = [
    ['/docs', createFirstPage(source)] as const,
    ['/docs/reference', createReferencePage(source)] as const,
    ...createCodePages(source),
    ...source.articles.map((article) => {
      const content = html`<p class="lead">${article.summary}</p>\n${article.content}`;
      const path = articlePath(article);
      return [path, toPage(source, { title: article.title, path, content })] as const;
    }),
  ];
  const files = source.articles.flatMap((article) =>
    article.files.map(({ name, text }) => [`${articlePath(article)}/${name}`, { type: PLAIN, text }] as const),
  );
  const json = (value: unknown): Document => ({ type: 'application/json', text: JSON.stringify(value, null, 2) });
  return new Map<string, Document>([
    ...pages.map(([path, text]) => [path, { type: HTML, text }] as const),
    ...files,
    ...ASSETS,
    ['/openapi.json', json(toOpenApi(source))],
    ['/collection.json', json(toCollection(source))],
    ['/llms.txt', { type: PLAIN, text: toLlmsText(source) }],
  ]);
}

const PATH = '/docs';
const TOP = relativeRoot(PATH);

function createFirstPage(source: DocsSource): string {
  const { operations, publicUrl, firstPage, articles } = source;
  const [tried] = operations;
  const content = html`<p class="lead">${firstPage.lead}</p>
${tried === undefined ? '' : toFirstRequest(tried, source)}
<h2>What comes next</h2>
<dl class="rows">
${operations.map((operation) => html`<div><dt>${toOperationLink(operation, TOP)}</dt><dd>${toCodeSpans(operation.description[0] ?? '')}</dd></div>\n`)}<div><dt><a href="${TOP}docs/errors">Error codes</a></dt><dd>What each code means and what to do. The <code>link</code> in every error opens its page.</dd></div>
${articles.map((article) => html`<div><dt><a href="${TOP}${articlePath(article).slice(1)}">${article.title}</a></dt><dd>${article.summary}</dd></div>\n`)}<div><dt><a href="${TOP}openapi.json">OpenAPI 3.1</a></dt><dd>Every operation and schema, for generators of clients.</dd></div>
<div><dt><a href="${TOP}collection.json">Collection</a></dt><dd>Every example as a request, for Postman and Bruno.</dd></div>
<div><dt><a href="${TOP}llms.txt">llms.txt</a></dt><dd>The whole interface in one text, for language models.</dd></div>
</dl>
<p>Base address: <code>${publicUrl}</code></p>`;
  return toPage(source, { title: firstPage.title, path: PATH, content, forms: true });
}

function toFirstRequest(tried: Operation, source: DocsSource): HtmlValue {
  const [example] = tried.examples;
  if (example === undefined) return '';
  const { heading, anchor, before, after, command } = source.firstPage;
  return html`<h2 id="${anchor}">${heading}</h2>
${before}
${toTryForm(tried, source, PATH)}
${after}
<details class="fold"><summary>${command}</summary>
${toExamplePair(example, { source, top: TOP })}
</details>`;
}

/** Makes `/docs/errors/validation-error.html` match the page of `VALIDATION_ERROR`. */
const toPlain = (path: string): string =>
  (path.split('/').findLast((part) => part !== '') ?? '')
    .replace(/\.html?$/i, '')
    .replaceAll('-', '_')
    .toUpperCase();

/**
 * The 404 page. It suggests similar pages and repeats nothing of the path, which may contain a key.
 * @param path below `/docs`, without a query
 * @param known the paths of all documents
 */
export function createUnknownPage(source: DocsSource, path: string, known: readonly string[]): string {
  const top = relativeRoot(path);
  const meant = known.filter((one) => !one.includes('.') && toPlain(one) === toPlain(path));
  const guess =
    meant.length === 0
      ? ''
      : html`<p>Perhaps you mean ${meant.map((one, index) => html`${index === 0 ? '' : ' or '}<a href="${top}${one.slice(1)}"><code>${one}</code></a>`)}.</p>`;
  const content = html`<p class="lead"><strong class="status">404</strong> The documentation has nothing at this address.</p>
${guess}
<ul>
<li><a href="${top}docs">${source.firstPage.heading}</a>: the first page</li>
<li><a href="${top}docs/reference">Reference</a>: every operation</li>
<li><a href="${top}docs/errors">Error codes</a>: what they mean and what to do</li>
</ul>`;
  return toPage(source, { title: 'There is no such page', path, content });
}

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** A collection for Postman and Bruno: a folder for each operation, a request for each example. */
function toCollection(source: DocsSource): Record<string, unknown> {
  const { title, publicUrl, operations, otherExamples: nowhere } = source;
  const variable = (key: string, value: string) => ({ key, value, type: 'string' });
  return {
    info: {
      name: title,
      description: `${describeKeys(source)}Errors are explained at ${publicUrl}/docs.`,
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
        item: examples.filter(isUsual).map(toItem),
      })),
      { name: 'No operation', item: nowhere.map(toItem) },
    ],
  };
}

const COUNTS = ['', ' ', ' two ', ' three ', ' four '];

function describeKeys({ keys }: DocsSource): string {
  if (keys.length === 0) return '';
  const count = COUNTS[keys.length] ?? ' ';
  return `Set the${count}key${keys.length === 1 ? '' : 's'} in the variables of the collection. `;
}

/** False for examples that need an unusual state of the service. */
const isUsual = ({ situation }: Example): boolean => situation === undefined;

function toItem({ title, request, answer }: Example) {
  const sent = toRequest(request);
  const body = answer.body === null ? '' : JSON.stringify(answer.body, null, 2);
  const response = {
    name: `Answer ${answer.status}`,
    originalRequest: sent,
    code: answer.status,
    header: toHeaders(answer.headers),
    body,
  };
  return { name: title, request: sent, response: [response] };
}

function toRequest({ method, target, headers, body }: ExampleRequest) {
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

/** The whole interface as text for language models: https://llmstxt.org. */
function toLlmsText(source: DocsSource): string {
  const { publicUrl, title, about, notes, operations, partCodes, otherExamples: nowhere, articles } = source;
  const sections = [
    `# ${title}`,
    `> ${about}`,
    [`Base address: ${publicUrl}`, ...notes].join('\n'),
    [
      '## Documents',
      '',
      `- [OpenAPI 3.1](${publicUrl}/openapi.json): every operation and schema`,
      `- [Collection](${publicUrl}/collection.json): every example as a request, for Postman and Bruno`,
      `- [Reference](${publicUrl}/docs/reference): the same to read and try in a browser`,
      ...articles.map((article) => `- [${article.title}](${publicUrl}${articlePath(article)}): ${article.summary}`),
    ].join('\n'),
    ...operations.map((operation) => toSection(operation, publicUrl)),
    toErrors(source),
    ...(partCodes === null ? [] : [toPartCodes(partCodes, publicUrl)]),
    ['## Requests that reach no operation', ...nowhere.map((example) => toExample(example, publicUrl))].join('\n\n'),
  ];
  return `${sections.join('\n\n')}\n`;
}

function toSection(operation: Operation, publicUrl: string): string {
  const { method, path, summary, description, answers, examples } = operation;
  const parameters = operation.parameters.map(toParameter);
  return [
    `## ${summary}: ${method} ${path}`,
    ...description,
    ...(parameters.length === 0 ? [] : [parameters.join('\n')]),
    answers.map(({ status, codes, description }) => `- ${[status, ...codes].join(' ')}: ${description}`).join('\n'),
    ...examples.map((example) => toExample(example, publicUrl)),
  ].join('\n\n');
}

function toParameter(parameter: Parameter): string {
  const { name, required, description, schema } = parameter;
  const facts = [parameter.in, required ? 'required' : 'optional', ...describeValues(schema)];
  return `- \`${name}\` (${facts.join(', ')}): ${description}`;
}

function toExample(example: Operation['examples'][number], publicUrl: string): string {
  const { title, answer } = example;
  return `### ${title}\n\n\`\`\`sh\n${toCommand(example, publicUrl)}\n\`\`\`\n\n\`\`\`http\n${toAnswerText(answer)}\n\`\`\``;
}

function toErrors(source: DocsSource): string {
  const lines = errorCodesOf(source).map((code) => {
    const { cause, fix } = source.errors[code] ?? ERRORS[code];
    return `- [${code}](${source.publicUrl}${errorPath(code)}) (${ERRORS[code].status}): ${cause} ${fix}`;
  });
  return `## Error codes\n\n${lines.join('\n')}`;
}

function toPartCodes(partCodes: PartCodes, publicUrl: string): string {
  const lines = Object.entries(partCodes.entries).map(
    ([code, { cause, fix }]) => `- [${code}](${publicUrl}${partCodePath(partCodes, code)}): ${cause} ${fix}`,
  );
  return `## ${partCodes.texts.textHeading}\n\n${lines.join('\n')}`;
}

const CACHE_MAX_AGE_S = 300;

/** Making all documents takes ten milliseconds, too long for each request. */
const EXAMPLE_AGE_MAX_MS = 60 * 60 * 1000;

/** Forms have no action: without its script a form would put the key into the address. */
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

const SAFETY = [
  ...['content-security-policy', POLICY],
  ...['x-content-type-options', 'nosniff'],
  ...['referrer-policy', 'no-referrer'],
];
const HEADERS = ['cache-control', `max-age=${CACHE_MAX_AGE_S}`, ...SAFETY];
/** A page that is missing today may exist after an upgrade. */
const UNKNOWN_HEADERS = ['cache-control', 'no-store', ...SAFETY];

/** The part of an exchange of `@playline/http` that these routes need; `headers` holds names and values in turn. */
export interface DocsExchange {
  readonly request: { readonly url?: string };
  answerText(status: number, document: Document, headers: readonly string[]): void;
  answerEmpty(status: number, headers: readonly string[]): void;
}

export interface DocsRoute {
  readonly method: 'GET';
  readonly path: string;
  /** True when pages of any origin may read it. */
  readonly cors: boolean;
  handle(exchange: DocsExchange): void;
}

/**
 * Creates a public route for each document, and one for every other path below `/docs`. The documents are created again
 * each hour.
 * @param createSource takes epoch milliseconds, the time that examples show
 */
export function createDocsRoutes(
  createSource: (nowMs: number) => DocsSource,
  { monotonicMs = () => performance.now(), wallClockMs = Date.now } = {},
): DocsRoute[] {
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
  return [...known, createUnknownRoute(createSource(0), [...documents.keys()])];
}

function createUnknownRoute(source: DocsSource, known: readonly string[]): DocsRoute {
  return {
    method: 'GET',
    path: '/docs/{*unknown}',
    cors: false,
    handle: (exchange) => {
      const [path = ''] = (exchange.request.url ?? '').split('?');
      const meant = path.slice(0, -1);
      if (path.endsWith('/') && known.includes(meant))
        return exchange.answerEmpty(308, ['location', `../${meant.split('/').at(-1)}`]);
      exchange.answerText(404, { type: HTML, text: createUnknownPage(source, path, known) }, UNKNOWN_HEADERS);
    },
  };
}
