import { readFileSync } from 'node:fs';
import { toCollection } from './formats/collection.ts';
import { toLlmsText } from './formats/llms.ts';
import { toOpenApi } from './formats/openapi.ts';
import type { DocsSettings } from './operation.ts';
import { createCodePages } from './pages/code-pages.ts';
import { createReferencePage } from './pages/reference.ts';
import { createDocsSource } from './source.ts';

/** One thing that a path under documentation gives. */
export interface Document {
  /** Content type. */
  readonly type: string;
  readonly text: string;
}

const HTML = 'text/html; charset=utf-8';

const asset = (name: string): string => readFileSync(new URL(`./assets/${name}`, import.meta.url), 'utf8');

const ASSETS: readonly (readonly [string, Document])[] = [
  ['/docs/style.css', { type: 'text/css; charset=utf-8', text: asset('style.css') }],
  ['/docs/reference.js', { type: 'text/javascript; charset=utf-8', text: asset('reference.js') }],
  ['/docs/icon.svg', { type: 'image/svg+xml', text: asset('icon.svg') }],
];

/**
 * Every document by its path, all made of one source. Pure.
 * @param nowMs epoch milliseconds, for the events in the examples
 */
export function createDocuments(settings: DocsSettings, nowMs: number): ReadonlyMap<string, Document> {
  const source = createDocsSource({ ...settings, nowMs });
  const pages = [...createCodePages(source), ['/docs/reference', createReferencePage(source)] as const];
  const json = (value: unknown): Document => ({ type: 'application/json', text: JSON.stringify(value, null, 2) });
  return new Map<string, Document>([
    ...pages.map(([path, text]) => [path, { type: HTML, text }] as const),
    ...ASSETS,
    ['/openapi.json', json(toOpenApi(source))],
    ['/collection.json', json(toCollection(source))],
    ['/llms.txt', { type: 'text/plain; charset=utf-8', text: toLlmsText(source) }],
  ]);
}
