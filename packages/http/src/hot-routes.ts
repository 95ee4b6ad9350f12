import type { Route } from './app.ts';

/** A hot route that matches, and the values of its named segments. */
export interface FoundRoute {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Null when Express must decide. */
export type FindHot = (method: string | undefined, path: string) => FoundRoute | null;

const NO_PARAMS = {};
const NAME_MARK = ':';
/** A segment without percent-encoding (RFC 3986, 2.3). Express judges all others. */
const PLAIN = /^[\w.~-]+$/;

/** Creates the search for hot routes: fixed paths in a map, then paths with named segments one by one. */
export function createFindHot(routes: readonly Route[]): FindHot {
  const hot = routes.filter((route) => route.hot);
  const isNamed = ({ path }: Route) => path.includes(NAME_MARK);
  const named = hot.filter(isNamed).map((route) => ({ route, segments: route.path.split('/') }));
  const whole = new Map(
    hot
      .filter((route) => !isNamed(route))
      .map((route) => [`${route.method} ${route.path}`, { route, params: NO_PARAMS }]),
  );
  return (method, path) => {
    const found = whole.get(`${method} ${path}`);
    if (found !== undefined) return found;
    if (named.length === 0) return null;
    const given = path.split('/');
    for (const { route, segments } of named) {
      const params = route.method === method ? matchSegments(segments, given) : null;
      if (params !== null) return { route, params };
    }
    return null;
  };
}

function matchSegments(segments: readonly string[], given: readonly string[]): Record<string, string> | null {
  if (segments.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [place, segment] of segments.entries()) {
    const text = given[place] as string;
    if (!segment.startsWith(NAME_MARK)) {
      if (segment !== text) return null;
    } else if (PLAIN.test(text)) params[segment.slice(NAME_MARK.length)] = text;
    else return null;
  }
  return params;
}
