import { AREAS, type Area } from '@playline/guides';
import type { Operation } from '../operation.ts';
import { articlePath, type DocsSource } from '../source.ts';
import { type HtmlValue, html, type Markup } from './html.ts';

interface Group {
  title: string;
  /** A path on this service, or an absolute URL. */
  links: { path: string; text: HtmlValue }[];
}

/** Returns the navigation for the page at `path`. `top` is the relative URL of the service root. */
export function toNavigation(source: DocsSource, path: string, top: string): Markup[] {
  return createGroups(source).map(
    ({ title, links }) => html`<p>${title}</p>
<ul>
${links.map(
  ({ path: target, text }) =>
    html`<li><a href="${toHref(target, top)}"${target === path ? html` aria-current="page"` : ''}>${text}</a></li>\n`,
)}</ul>
`,
  );
}

export const toHref = (path: string, top: string): string => (path.startsWith('/') ? top + path.slice(1) : path);

/** Returns the pages of an area without the pages of operations and error codes. */
export function pagesOf({ area, articles, elsewhere }: DocsSource, wanted: Area): Group['links'] {
  return [
    ...articles.filter((one) => one.area === wanted).map((one) => ({ path: articlePath(one), text: one.title })),
    ...(area === wanted ? [{ path: '/docs/reference', text: 'Reference' }] : []),
    ...(elsewhere?.pages ?? [])
      .filter((one) => one.area === wanted)
      .map(({ href, title }) => ({ path: href, text: title })),
  ];
}

function createGroups(source: DocsSource): Group[] {
  const operationLinks = [
    ...source.operations.map(({ id, method, summary }) => ({
      path: `/docs/reference#${id}`,
      text: [summary, ' ', toMethod(method)],
    })),
    { path: '/docs/reference#schemas', text: 'Schemas' },
  ];
  const areas = AREAS.map(({ area }) => ({
    title: area as string,
    links: [...pagesOf(source, area), ...(area === source.area ? operationLinks : [])],
  }));
  return [
    {
      title: 'Documentation',
      links: [
        { path: '/docs', text: 'Home' },
        { path: '/docs/pages', text: 'All pages' },
        { path: '/docs/errors', text: 'Error codes' },
      ],
    },
    ...areas.filter(({ links }) => links.length > 0),
    {
      title: 'Machine-readable',
      links: [
        { path: '/openapi.json', text: 'OpenAPI 3.1' },
        { path: '/collection.json', text: 'Collection' },
        { path: '/llms.txt', text: 'llms.txt' },
      ],
    },
  ];
}

export function toMethod(method: Operation['method']): Markup {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`;
}

export function toOperationLink({ id, method, path }: Operation, top: string): Markup {
  return html`<a class="route" href="${top}docs/reference#${id}">${toMethod(method)} <code>${path}</code></a>`;
}
