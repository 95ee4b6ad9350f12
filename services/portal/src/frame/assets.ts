/** The files that pages load: styles, scripts, the logo and the files of two libraries. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Route } from '@playline/http';

const FOLDER = new URL('../assets/', import.meta.url);
const fileOf = (module: string, path = '') => new URL(path, import.meta.resolve(module));

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
};

/** Longer than a typical visit, but short enough that upgrades take effect soon. */
const CACHE_MAX_AGE_S = 300;
const FONT_MAX_AGE_S = 30 * 86_400;

export function createAssetRoutes(): Route[] {
  const names = readdirSync(FOLDER).toSorted();
  const files = new Map(
    names.filter((name) => name.endsWith('.js')).map((name) => [name, readFileSync(new URL(name, FOLDER))]),
  );
  files.set('portal.css', Buffer.concat(listStyles(names).map((url) => readFileSync(url))));
  files.set('uplot.js', readFileSync(fileOf('uplot/dist/uPlot.esm.js')));
  files.set('icon.svg', readFileSync(fileOf('@playline/api-docs', './assets/icon.svg')));
  for (const subset of ['latin', 'latin-ext']) {
    const font = fileOf(`@fontsource-variable/inter/files/inter-${subset}-wght-normal.woff2`);
    files.set(`inter-${subset}.woff2`, readFileSync(font));
  }
  return [...files].map(([name, content]) => toRoute(name, content));
}

/** `portal.css` comes first, so that the styles of single pages can override it. */
function listStyles(names: readonly string[]): URL[] {
  const others = names.filter((name) => name.endsWith('.css') && name !== 'portal.css');
  return [fileOf('uplot/dist/uPlot.min.css'), ...['portal.css', ...others].map((name) => new URL(name, FOLDER))];
}

function toRoute(name: string, content: Buffer): Route {
  const extension = name.split('.').at(-1) ?? '';
  const headers = Object.entries({
    'cache-control': `max-age=${extension === 'woff2' ? FONT_MAX_AGE_S : CACHE_MAX_AGE_S}`,
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
  }).flat();
  const type = TYPES[extension] ?? '';
  return {
    method: 'GET',
    path: `/assets/${name}`,
    handle: (exchange) => exchange.answerBytes(200, content, headers, type),
  };
}
