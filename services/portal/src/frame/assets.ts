import { readFileSync } from 'node:fs';
import type { Route } from '@playline/http';

const FOLDER = new URL('../assets/', import.meta.url);

/** What pages are made of besides their text. A file that is not named here is served to nobody. */
const ASSETS = [
  { name: 'portal.css', type: 'text/css; charset=utf-8' },
  { name: 'portal.js', type: 'text/javascript; charset=utf-8' },
  { name: 'live.js', type: 'text/javascript; charset=utf-8' },
  { name: 'passkeys.js', type: 'text/javascript; charset=utf-8' },
  { name: 'icon.svg', type: 'image/svg+xml' },
] as const;

/** Long enough for a visit, short enough that an upgrade shows. */
const CACHE_MAX_AGE_S = 300;
const HEADERS = [
  ...['cache-control', `max-age=${CACHE_MAX_AGE_S}`],
  ...['x-content-type-options', 'nosniff'],
  ...['cross-origin-resource-policy', 'same-origin'],
];

/** One route for each file, read once. */
export function createAssetRoutes(): Route[] {
  return ASSETS.map(({ name, type }) => {
    const text = readFileSync(new URL(name, FOLDER), 'utf8');
    return {
      method: 'GET',
      path: `/assets/${name}`,
      handle: (exchange) => exchange.answerText(200, { type, text }, HEADERS),
    };
  });
}
