import type { DocsSource } from '../source.ts';
import { type HtmlValue, html } from './html.ts';
import { toNavigation } from './navigation.ts';

/** Suffix of every page title. */
const PRODUCT = 'Playline';

/** The first style sheet defines the colours that all style sheets use. */
const STYLES = ['style.css', 'frame.css', 'samples.css', 'forms.css'];

/** Returns the URL of the service root, relative to the page at `path`. */
export const relativeRoot = (path: string): string => '../'.repeat(path.split('/').length - 2) || './';

/** Adds the layout of the documentation to the content of a page. */
export function toPage(
  source: DocsSource,
  /** All links are relative to `path`. `forms` loads the script that sends requests. */
  { title, path, content, forms = false }: { title: string; path: string; content: HtmlValue; forms?: boolean },
): string {
  const top = relativeRoot(path);
  const scripts = ['page.js', 'search.js', ...(forms ? ['forms.js'] : [])];
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title === PRODUCT ? `${PRODUCT}: documentation` : `${title} – ${PRODUCT}`}</title>
<link rel="icon" href="${top}docs/icon.svg" type="image/svg+xml">
${STYLES.map((name) => html`<link rel="stylesheet" href="${top}docs/${name}">\n`)}${scripts.map((name) => html`<script type="module" src="${top}docs/${name}"></script>\n`)}</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="top">
<a class="brand" href="${top}docs"><img src="${top}docs/icon.svg" alt="" width="22" height="22">${PRODUCT}</a>
<a class="search" href="${top}docs/pages" data-search="${source.elsewhere?.url ?? ''}">Search <kbd>/</kbd></a>
<button class="menu outline" type="button" popovertarget="menu">Menu</button>
</header>
<div class="frame">
<nav id="menu" class="links" popover aria-label="Documentation">
${toNavigation(source, path, top)}</nav>
<main id="content" class="page" tabindex="-1">
<h1>${title}</h1>
${content}
</main>
</div>
</body>
</html>
`;
  return page.text;
}
