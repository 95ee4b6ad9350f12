import { countFault, type KeyRecord, type KeyVerifier, type UsageCounter } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { type ClientAddressOf, ClientDisconnected, type Exchange, type Route } from '@playline/http';
import { addLimitHeaders, type LocalLimiter, type OnRefused, rateLimitError } from '@playline/rate-limit';

/** A promise only when the key must be fetched. */
export type Authorise = (exchange: Exchange) => KeyRecord | Promise<KeyRecord>;

/**
 * Checks a key header: contract, "Missing key" and "Keys". A fault of the store becomes a 500.
 * @throws PublicError VALIDATION_ERROR when the key is missing; UNAUTHORISED_REQUEST when it is invalid, or not for the
 *   origin (after `onOtherOrigin`); TOO_MANY_REQUESTS_ERROR after too many invalid keys
 */
export function createAuthorise(
  header: string,
  verify: GuardedVerifier,
  onOtherOrigin: (key: KeyRecord, exchange: Exchange) => void = () => {},
): Authorise {
  const check = (record: KeyRecord | null, exchange: Exchange): KeyRecord => {
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    // Most keys have no list of origins.
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

/** Browsers send the origin of a page; programs send none and may use any key. */
function isForOrigin({ origins }: KeyRecord, exchange: Exchange): boolean {
  const { origin } = exchange.request.headers;
  if (origin === undefined) return true;
  const isListed = origins.includes(origin);
  exchange.allowOrigin(isListed ? origin : null);
  return isListed;
}

export type CountUse = Pick<UsageCounter, 'used' | 'refused'>;

/** Counted for a batch without an accepted message. */
export const ALL_REJECTED = 'ALL_MESSAGES_REJECTED';

export const ORIGIN_NOT_ALLOWED = 'ORIGIN_NOT_ALLOWED';

/** A caller that disconnected is not counted as refused. */
export function countFailedRequest(
  usage: CountUse,
  key: KeyRecord,
  { exchange, error }: { exchange: Exchange; error: unknown },
) {
  if (!(error instanceof ClientDisconnected)) countFault(usage, key, { fault: error, traceId: exchange.traceId });
}

export type OperationCount = ReturnType<typeof createOperationCount>;

/**
 * Counts operations without messages: the key check gives the key, the route the outcome. Remembering the key of each
 * request costs more than counting, so the messages route counts by itself.
 */
export function createOperationCount(usage: CountUse) {
  const keys = new WeakMap<Exchange, KeyRecord>();
  return {
    authorise: (authorise: Authorise) => async (exchange: Exchange) => {
      const key = await authorise(exchange);
      keys.set(exchange, key);
      return key;
    },
    route: (route: Route): Route => ({
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

/** @throws PublicError TOO_MANY_REQUESTS_ERROR besides what the verifier throws */
type GuardedVerifier = (key: string, exchange: Exchange) => ReturnType<KeyVerifier>;

/**
 * The limit on invalid keys per client address, in this process. Bounds only how often a caller learns that a key is
 * invalid; valid keys are always served. Invalid keys are recognised without a query, so nothing is checked before.
 */
export function createFailedKeyLimit(options: {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
}) {
  const { limiter, addressOf, onRefused } = options;
  const bucketOf = (exchange: Exchange) => limiter.bucket(addressOf(exchange.request));
  const chargeInvalid = (record: KeyRecord | null, exchange: Exchange) => {
    if (record !== null) return record;
    const bucket = bucketOf(exchange);
    const status = bucket.status();
    if (!status.allowed) {
      addLimitHeaders(exchange, () => bucket);
      onRefused(limiter.policy.name);
      throw rateLimitError(status);
    }
    bucket.charge(1);
    return record;
  };
  return {
    /** Charges keys that the verifier refuses. */
    guard: (verify: KeyVerifier) => (key: string, exchange: Exchange) => {
      const verdict = verify(key);
      return verdict instanceof Promise
        ? verdict.then((record) => chargeInvalid(record, exchange))
        : chargeInvalid(verdict, exchange);
    },
    /** Adds the limit's header fields to every answer, unless a more specific limit replaces them. */
    addHeaders: (route: Route): Route => ({
      ...route,
      handle: (exchange, params) => {
        addLimitHeaders(exchange, () => bucketOf(exchange));
        return route.handle(exchange, params);
      },
    }),
  };
}
