import type { DocsSource } from '../source.ts';
import { html } from './html.ts';
import { relativeRoot, toPage } from './page.ts';

/** A section of a page. `assets/search.js` finds sections by their texts. */
export interface SearchEntry {
  /** Path below the service root, with a fragment. */
  readonly path: string;
  readonly page: string;
  /** Empty for the start of the page. */
  readonly heading: string;
  readonly text: string;
}

/** Long sections, such as tables of fields, are cut off. */
const TEXT_CHARACTERS_MAX = 5000;

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&', '#39': "'" };

/** Examples are left out, because every page contains the same ids and headers. */
const toPlainText = (markup: string): string =>
  markup
    .replaceAll(/<(form|details|dialog)\b[\s\S]*?<\/\1>/g, ' ')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(\w+|#39);/g, (entity, name: string) => ENTITIES[name] ?? entity)
    .replaceAll(/\s+/g, ' ')
    .trim();

/** Returns an entry for each heading of the second level and for the start of each page. */
export function createSearchIndex(pages: readonly (readonly [path: string, page: string])[]): SearchEntry[] {
  return pages.flatMap(([path, page]) => {
    const [, title = '', main = ''] = /<h1>(.*?)<\/h1>([\s\S]*)<\/main>/.exec(page) ?? [];
    const [start = '', ...sections] = main.split(/(?=<h2\b)/);
    const entry = (at: string, heading: string, text: string) => ({
      path: at,
      page: toPlainText(title),
      heading,
      text: toPlainText(text).slice(0, TEXT_CHARACTERS_MAX),
    });
    return [
      entry(path, '', start),
      ...sections.map((section) => {
        const [, id, heading = '', text = ''] = /^<h2(?: id="([^"]*)")?>(.*?)<\/h2>([\s\S]*)$/.exec(section) ?? [];
        return entry(id === undefined ? path : `${path}#${id}`, toPlainText(heading), text);
      }),
    ];
  });
}

const PATH = '/docs/pages';

/** Lists all pages, for readers without JavaScript. */
export function createPageList(source: DocsSource, index: readonly SearchEntry[]): string {
  const top = relativeRoot(PATH);
  const pages = index.filter(({ heading }) => heading === '');
  const content = html`<p class="lead">Every page of this service. With JavaScript, press <kbd>/</kbd> on any page to search.</p>
<ul>
${pages.map(({ path, page }) => html`<li><a href="${top}${path.slice(1)}">${page}</a></li>\n`)}${(source.elsewhere?.pages ?? []).map(({ href, title }) => html`<li><a href="${href}">${title}</a></li>\n`)}</ul>`;
  return toPage(source, { title: 'All pages', path: PATH, content });
}
