import { countFault, type KeyRecord, type KeyVerifier, type UsageCounter } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { type ClientAddressOf, ClientDisconnected, type Exchange, type Route } from '@playline/http';
import { addLimitHeaders, type LocalLimiter, type OnRefused, rateLimitError } from '@playline/rate-limit';

/** Returns the record of the request's key; a promise only when the key must be looked up. */
export type Authorise = (exchange: Exchange) => KeyRecord | Promise<KeyRecord>;

/**
 * Builds the check of one key header: contract, "Missing key" and "Keys".
 * - Missing: VALIDATION_ERROR.
 * - Malformed, unknown, revoked, replaced by a refresh or of the other kind: UNAUTHORISED_REQUEST.
 * - A valid key on a page whose origin is not in its list: UNAUTHORISED_REQUEST, after a call of `onOtherOrigin`.
 * - Too many wrong keys from this address: TOO_MANY_REQUESTS_ERROR, thrown by the guard around the verifier.
 * - A store that cannot answer: the store's own fault, which becomes a 500. A temporary fault is never a 4xx.
 */
export function createAuthorise(
  header: string,
  verify: GuardedVerifier,
  onOtherOrigin: (key: KeyRecord, exchange: Exchange) => void = () => {},
): Authorise {
  const check = (record: KeyRecord | null, exchange: Exchange): KeyRecord => {
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    // Most keys have no list of origins, so the common case costs one comparison.
    if (record.origins.length !== 0 && !isForOrigin(record, exchange)) {
      onOtherOrigin(record, exchange);
      throw new PublicError('UNAUTHORISED_REQUEST', { message: ORIGIN_MESSAGE, details: { header: 'origin' } });
    }
    return record;
  };
  return (exchange) => {
    const key = exchange.request.headers[header];
    if (typeof key !== 'string' || key === '') {
      const message = `The header ${header} is missing.`;
      throw new PublicError('VALIDATION_ERROR', { message, details: { header } });
    }
    const verdict = verify(key, exchange);
    return verdict instanceof Promise ? verdict.then((record) => check(record, exchange)) : check(verdict, exchange);
  };
}

const ORIGIN_MESSAGE = 'The key is not for pages of this origin.';

/**
 * Whether a key with a list of origins may be used by this caller. A browser always sends the origin of a page that
 * calls another site. A program sends none, and may use any key. Only pages of a listed origin may read the answer.
 */
function isForOrigin({ origins }: KeyRecord, exchange: Exchange): boolean {
  const { origin } = exchange.request.headers;
  if (origin === undefined) return true;
  const isListed = origins.includes(origin);
  exchange.allowOrigin(isListed ? origin : null);
  return isListed;
}

/** Counts requests under valid keys; nothing is counted before a key is verified. */
export type CountUse = Pick<UsageCounter, 'used' | 'refused'>;

/** Reason counted for a batch without one acceptable message, which is answered without an error envelope. */
export const ALL_REJECTED = 'ALL_MESSAGES_REJECTED';

/** Reason counted for a page whose origin is not in the key's list. */
export const ORIGIN_NOT_ALLOWED = 'ORIGIN_NOT_ALLOWED';

/** Counts a request that ended in a fault. A request whose caller has disconnected is not counted as refused. */
export function countFailedRequest(
  usage: CountUse,
  key: KeyRecord,
  { exchange, error }: { exchange: Exchange; error: unknown },
) {
  if (!(error instanceof ClientDisconnected)) countFault(usage, key, { fault: error, traceId: exchange.traceId });
}

/** Counts one operation: its key check gives the key, its route the outcome. */
export interface OperationCount {
  authorise(authorise: Authorise): Authorise;
  route(route: Route): Route;
}

/**
 * Builds the count of operations that carry no messages. The messages route counts by itself, because remembering the
 * key of each request, as is done here, costs more than counting it.
 */
export function createOperationCount(usage: CountUse): OperationCount {
  const keys = new WeakMap<Exchange, KeyRecord>();
  return {
    authorise: (authorise) => async (exchange) => {
      const key = await authorise(exchange);
      keys.set(exchange, key);
      return key;
    },
    route: (route) => ({
      ...route,
      handle: async (exchange, params) => {
        try {
          await route.handle(exchange, params);
        } catch (error) {
          const key = keys.get(exchange);
          if (key !== undefined) countFailedRequest(usage, key, { exchange, error });
          throw error;
        }
        const key = keys.get(exchange);
        if (key !== undefined) usage.used(key, 0, 0);
      },
    }),
  };
}

/** A verifier that knows the caller. @throws PublicError TOO_MANY_REQUESTS_ERROR besides what the verifier throws */
type GuardedVerifier = (key: string, exchange: Exchange) => ReturnType<KeyVerifier>;

/** The limit on wrong keys per client address; counted in this process only. */
export interface FailedKeyLimit {
  /** Wraps a verifier: keys that it refuses are charged. */
  guard(verify: KeyVerifier): GuardedVerifier;
  /** Adds the limit's header fields to every answer of a route, unless a more specific limit replaces them. */
  addHeaders(route: Route): Route;
}

interface FailedKeyParts {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
}

/**
 * Builds the limit. It bounds only how often a caller learns that a key is wrong. A valid key is always served, even if
 * other clients of the same address guess keys or still use a replaced one. No bound is needed before the check,
 * because a wrong key is recognised without a look-up in the store (`@playline/access-keys`).
 */
export function createFailedKeyLimit({ limiter, addressOf, onRefused }: FailedKeyParts): FailedKeyLimit {
  const bucketOf = (exchange: Exchange) => limiter.bucket(addressOf(exchange.request));
  const judge = (record: KeyRecord | null, exchange: Exchange) => {
    if (record === null) take(exchange);
    return record;
  };
  const take = (exchange: Exchange) => {
    const bucket = bucketOf(exchange);
    const standing = bucket.status();
    if (standing.allowed) return bucket.charge(1);
    addLimitHeaders(exchange, () => bucket);
    onRefused(limiter.policy.name);
    throw rateLimitError(standing);
  };
  return {
    guard: (verify) => (key, exchange) => {
      const verdict = verify(key);
      return verdict instanceof Promise ? verdict.then((record) => judge(record, exchange)) : judge(verdict, exchange);
    },
    addHeaders: (route) => ({
      ...route,
      handle: (exchange, params) => {
        addLimitHeaders(exchange, () => bucketOf(exchange));
        return route.handle(exchange, params);
      },
    }),
  };
}
