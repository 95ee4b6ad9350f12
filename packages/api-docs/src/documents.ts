import { readFileSync } from 'node:fs';
import { toCollection } from './formats/collection.ts';
import { toLlmsText } from './formats/llms.ts';
import { toOpenApi } from './formats/openapi.ts';
import type { Operation } from './operation.ts';
import { createCodePages } from './pages/code-pages.ts';
import { toExamplePair } from './pages/example.ts';
import { type HtmlValue, html, toCodeSpans } from './pages/html.ts';
import { toOperationLink } from './pages/navigation.ts';
import { createArticlePage, toPage, toTop } from './pages/page.ts';
import { createReferencePage } from './pages/reference.ts';
import { toTryForm } from './pages/try-form.ts';
import { articlePath, type DocsSource } from './source.ts';

/** One file of the documentation, as its path serves it. */
export interface Document {
  /** Content type. */
  readonly type: string;
  readonly text: string;
}

const HTML = 'text/html; charset=utf-8';
const PLAIN = 'text/plain; charset=utf-8';

const STYLE = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** Files that pages load, by name below `/docs`, with their content types. */
const ASSET_TYPES: Readonly<Record<string, string>> = {
  'style.css': STYLE,
  'frame.css': STYLE,
  'samples.css': STYLE,
  'forms.css': STYLE,
  'page.js': SCRIPT,
  'forms.js': SCRIPT,
  'keys.js': SCRIPT,
  'fresh-ids.js': SCRIPT,
  'answer.js': SCRIPT,
  'icon.svg': 'image/svg+xml',
};

const ASSETS = Object.entries(ASSET_TYPES).map(([name, type]): [string, Document] => [
  `/docs/${name}`,
  { type, text: readFileSync(new URL(`./assets/${name}`, import.meta.url), 'utf8') },
]);

/** Every document by its path, all made of one source. Pure. */
export function createDocuments(source: DocsSource): ReadonlyMap<string, Document> {
  const pages = [
    ['/docs', createFirstPage(source)] as const,
    ['/docs/reference', createReferencePage(source)] as const,
    ...createCodePages(source),
    ...source.articles.map((article) => [articlePath(article), createArticlePage(source, article)] as const),
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

/**
 * Creates the page for paths below `/docs` that are none of the documents.
 * @returns a function from the path of a request, without its query, to the page
 */
export function createUnknownDocument(source: DocsSource): (path: string) => Document {
  const known = [...createDocuments(source).keys()].filter((path) => !path.includes('.'));
  return (path) => ({ type: HTML, text: createUnknownPage(source, path, known) });
}

const PATH = '/docs';
const TOP = toTop(PATH);

/** The first page: what the product is, a first request, and where to read on. */
function createFirstPage(source: DocsSource): string {
  const { operations, publicUrl, first, articles } = source;
  const [tried] = operations;
  const content = html`<p class="lead">${first.lead}</p>
${tried === undefined ? '' : toFirstRequest(tried, source)}
<h2>What comes next</h2>
<dl class="rows">
${operations.map((operation) => html`<div><dt>${toOperationLink(operation, TOP)}</dt><dd>${toCodeSpans(operation.description[0] ?? '')}</dd></div>\n`)}<div><dt><a href="${TOP}docs/errors">Error codes</a></dt><dd>What each code means and what to do. The <code>link</code> in every error opens its page.</dd></div>
${articles.map((article) => html`<div><dt><a href="${TOP}${articlePath(article).slice(1)}">${article.title}</a></dt><dd>${article.summary}</dd></div>\n`)}<div><dt><a href="${TOP}openapi.json">OpenAPI 3.1</a></dt><dd>Every operation and schema, for generators of clients.</dd></div>
<div><dt><a href="${TOP}collection.json">Collection</a></dt><dd>Every example as a request, for Postman and Bruno.</dd></div>
<div><dt><a href="${TOP}llms.txt">llms.txt</a></dt><dd>The whole interface in one text, for language models.</dd></div>
</dl>
<p>Base address: <code>${publicUrl}</code></p>`;
  return toPage(source, { title: first.title, path: PATH, content, forms: true });
}

function toFirstRequest(tried: Operation, source: DocsSource): HtmlValue {
  const [example] = tried.examples;
  if (example === undefined) return '';
  const { heading, anchor, before, after, command } = source.first;
  return html`<h2 id="${anchor}">${heading}</h2>
${before}
${toTryForm(tried, source, PATH)}
${after}
<details class="fold"><summary>${command}</summary>
${toExamplePair(example, { source, top: TOP })}
</details>`;
}

/**
 * Upper case, without what people tend to add, so that `/docs/errors/validation-error.html` finds the page it means.
 */
const toPlain = (path: string): string =>
  (path.split('/').findLast((part) => part !== '') ?? '')
    .replace(/\.html?$/i, '')
    .replaceAll('-', '_')
    .toUpperCase();

/**
 * The page for a path below `/docs` that does not exist. It names pages that may have been meant. It repeats nothing of
 * the path, since that may contain somebody's key.
 * @param path of the request, without its query; links of the page are relative to it
 */
function createUnknownPage(source: DocsSource, path: string, known: readonly string[]): string {
  const top = toTop(path);
  const meant = known.filter((one) => toPlain(one) === toPlain(path));
  const guess =
    meant.length === 0
      ? ''
      : html`<p>Perhaps you mean ${meant.map((one, index) => html`${index === 0 ? '' : ' or '}<a href="${top}${one.slice(1)}"><code>${one}</code></a>`)}.</p>`;
  const content = html`<p class="lead"><strong class="status">404</strong> The documentation has nothing at this address.</p>
${guess}
<ul>
<li><a href="${top}docs">${source.first.heading}</a>: the first page</li>
<li><a href="${top}docs/reference">Reference</a>: every operation</li>
<li><a href="${top}docs/errors">Error codes</a>: what they mean and what to do</li>
</ul>`;
  return toPage(source, { title: 'There is no such page', path, content });
}
