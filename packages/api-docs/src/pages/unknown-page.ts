import type { DocsSource } from '../source.ts';
import { html } from './html.ts';
import { toPage, toTop } from './page.ts';

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
export function createUnknownPage(source: DocsSource, path: string, known: readonly string[]): string {
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
