import { countFault, type KeyRecord, type KeyVerifier, type UsageCounter } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { type ClientAddressOf, ClientDisconnected, type Exchange, type Route } from '@playline/http';
import { addLimitHeaders, type LocalLimiter, type OnRefused, rateLimitError } from '@playline/rate-limit';

/** Returns a promise only if the key must be fetched. */
export type Authorise = (exchange: Exchange) => KeyRecord | Promise<KeyRecord>;

/**
 * Checks the key in a header: contract, "Missing key" and "Keys". An error of the key store becomes a 500.
 * @throws PublicError VALIDATION_ERROR if the key is missing; UNAUTHORISED_REQUEST if the key is invalid, or if it
 *   does not allow the page's origin (after `onOriginRefused`); TOO_MANY_REQUESTS_ERROR after too many invalid keys
 */
export function createAuthorise(
  header: string,
  verify: GuardedVerifier,
  onOriginRefused: (key: KeyRecord, exchange: Exchange) => void = () => {},
): Authorise {
  const check = (record: KeyRecord | null, exchange: Exchange): KeyRecord => {
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    // The length check is fast, and most keys have no list of origins.
    if (record.origins.length !== 0 && !isOriginAllowed(record, exchange)) {
      onOriginRefused(record, exchange);
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
    const found = verify(key, exchange);
    return found instanceof Promise ? found.then((record) => check(record, exchange)) : check(found, exchange);
  };
}

const ORIGIN_MESSAGE = 'The key does not allow requests from this origin.';

/** Browsers send the origin of the page. Other clients send no origin and may use any key. */
function isOriginAllowed({ origins }: KeyRecord, exchange: Exchange): boolean {
  const { origin } = exchange.request.headers;
  if (origin === undefined) return true;
  const isListed = origins.includes(origin);
  exchange.allowOrigin(isListed ? origin : null);
  return isListed;
}

export type CountUse = Pick<UsageCounter, 'used' | 'refused'>;

/** The refusal reason of a batch without accepted messages. */
export const ALL_REJECTED = 'ALL_MESSAGES_REJECTED';

export const ORIGIN_NOT_ALLOWED = 'ORIGIN_NOT_ALLOWED';
export const KEY_ENDED = 'KEY_ENDED';

/** Counts a refused request, except when the client disconnected. */
export function countFailedRequest(
  usage: CountUse,
  key: KeyRecord,
  { exchange, error }: { exchange: Exchange; error: unknown },
) {
  if (!(error instanceof ClientDisconnected)) countFault(usage, key, { fault: error, traceId: exchange.traceId });
}

export type OperationCount = ReturnType<typeof createOperationCount>;

/**
 * Counts key usage of operations without messages. `authorise` stores the key of each request and `route` counts the
 * outcome. Storing the key costs more than counting, so the messages route counts its requests itself.
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

/** @throws PublicError TOO_MANY_REQUESTS_ERROR, or any error of the verifier */
type GuardedVerifier = (key: string, exchange: Exchange) => ReturnType<KeyVerifier>;

/**
 * Limits invalid keys per client address in this process. The limit only restricts how often a client learns that a key
 * is invalid; valid keys are always accepted. Keys are checked first, because most invalid keys require no query.
 */
export function createFailedKeyLimit(options: {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
  /** Called for each invalid key, also if the address is limited. */
  onInvalid: (key: string, exchange: Exchange) => void;
}) {
  const { limiter, addressOf, onRefused, onInvalid } = options;
  const bucketOf = (exchange: Exchange) => limiter.bucket(addressOf(exchange.request));
  const chargeInvalid = (record: KeyRecord | null, key: string, exchange: Exchange) => {
    if (record !== null) return record;
    onInvalid(key, exchange);
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
    /** Charges the address for each key that the verifier refuses. */
    guard: (verify: KeyVerifier) => (key: string, exchange: Exchange) => {
      const found = verify(key);
      return found instanceof Promise
        ? found.then((record) => chargeInvalid(record, key, exchange))
        : chargeInvalid(found, key, exchange);
    },
    /** Adds the limit's headers to every response, unless a more specific limit replaces them. */
    addHeaders: (route: Route): Route => ({
      ...route,
      handle: (exchange, params) => {
        addLimitHeaders(exchange, () => bucketOf(exchange));
        return route.handle(exchange, params);
      },
    }),
  };
}
