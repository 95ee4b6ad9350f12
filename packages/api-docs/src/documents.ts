import { readFileSync } from 'node:fs';
import { toCollection } from './formats/collection.ts';
import { toLlmsText } from './formats/llms.ts';
import { toOpenApi } from './formats/openapi.ts';
import { createCodePages } from './pages/code-pages.ts';
import { createFirstPage } from './pages/first-page.ts';
import { createArticlePage } from './pages/page.ts';
import { createReferencePage } from './pages/reference.ts';
import { createUnknownPage } from './pages/unknown-page.ts';
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
