import type { HeaderList } from './exchange.ts';

/** Seconds a browser may keep a preflight's answer; Chromium's own cap. Specification, part A, "CORS". */
const PREFLIGHT_MAX_AGE_S = 7200;

/** Cross-origin headers of the operations that take a publishable key; those with a secret key send none at all. */
export interface CorsHeaders {
  readonly answer: HeaderList;
  readonly preflight: HeaderList;
}

/** Any origin, no credentials: specification, part A, "CORS". */
export function corsHeaders(publishableKeyHeader: string | undefined): CorsHeaders {
  const keyHeader = publishableKeyHeader === undefined ? [] : [publishableKeyHeader];
  const allowed = ['content-type', 'content-encoding', ...keyHeader, 'traceparent'].join(', ');
  const origin = ['access-control-allow-origin', '*'];
  return {
    answer: [...origin, 'access-control-expose-headers', 'Retry-After, RateLimit, RateLimit-Policy, x-trace-id'],
    preflight: [
      'access-control-allow-headers',
      allowed,
      'access-control-allow-methods',
      'POST, GET, PUT',
      'access-control-max-age',
      PREFLIGHT_MAX_AGE_S,
    ],
  };
}
