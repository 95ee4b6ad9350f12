import type { HeaderList } from './exchange.ts';

/** Seconds a browser may keep a preflight's answer; Chromium's own cap. Contract, "CORS". */
const PREFLIGHT_MAX_AGE_S = 7200;

/** Cross-origin headers of operations with a publishable key. Operations with a secret key have none. */
export interface CorsHeaders {
  readonly answer: HeaderList;
  readonly preflight: HeaderList;
}

/**
 * Limits these headers to pages of one origin, or of none. If there are no headers, no page may call the operation, and
 * it stays so. Caches must keep the answer for that origin only.
 */
export function narrowOrigin(answer: HeaderList, origin: string | null): HeaderList {
  if (answer.length === 0) return answer;
  const vary = ['vary', 'Origin'];
  if (origin === null) return vary;
  const rest = answer.slice(2);
  // Called again when a key is checked again after the body.
  return [answer[0]!, origin, ...rest, ...(rest.includes('vary') ? [] : vary)];
}

/** Any origin, no credentials: contract, "CORS". */
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
