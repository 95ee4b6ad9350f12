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
const SAME_ORIGIN = ['cross-origin-resource-policy', 'same-origin'];

export function createAssetRoutes(): Route[] {
  const names = readdirSync(FOLDER).toSorted();
  const styles = names.filter((name) => name.endsWith('.css') && name !== 'portal.css');
  const inFolder = (name: string) => new URL(name, FOLDER);
  // `portal.css` comes first, so that the styles of single pages can override it.
  const sheets = [fileOf('uplot/dist/uPlot.min.css'), ...['portal.css', ...styles].map(inFolder)];
  const font = (subset: string) => fileOf(`@fontsource-variable/inter/files/inter-${subset}-wght-normal.woff2`);
  return [
    ...names.filter((name) => name.endsWith('.js')).map((name) => toRoute(name, [inFolder(name)])),
    toRoute('portal.css', sheets),
    toRoute('uplot.js', [fileOf('uplot/dist/uPlot.esm.js')]),
    toRoute('icon.svg', [fileOf('@playline/api-docs', './assets/icon.svg')]),
    toRoute('inter-latin.woff2', [font('latin')]),
    toRoute('inter-latin-ext.woff2', [font('latin-ext')]),
  ];
}

function toRoute(name: string, files: readonly URL[]): Route {
  const content = Buffer.concat(files.map((file) => readFileSync(file)));
  const extension = name.split('.').at(-1) ?? '';
  const maxAgeS = extension === 'woff2' ? FONT_MAX_AGE_S : CACHE_MAX_AGE_S;
  const headers = ['cache-control', `max-age=${maxAgeS}`, 'x-content-type-options', 'nosniff', ...SAME_ORIGIN];
  const handle: Route['handle'] = (exchange) => exchange.answerBytes(200, content, headers, TYPES[extension]);
  return { method: 'GET', path: `/assets/${name}`, handle };
}
