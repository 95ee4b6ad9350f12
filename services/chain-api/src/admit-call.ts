import {
  openRateLimitKeyFinder,
  type RateLimitKeyRecord,
  type RecordView,
  type UsageCounter,
} from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { ClientAddressOf, Exchange } from '@playline/http';
import { admitRequest, type OnRefused, type WindowLimiter, type WindowPolicy } from '@playline/rate-limit';

export interface RateLimitPlan {
  readonly keyId: string;
  readonly calls: number;
  readonly windowS: number;
}

export interface RateLimitKeys {
  /** Returns null for an invalid key. @throws Error if the key cannot be checked */
  find(key: string): Promise<RateLimitPlan | null>;
}

/**
 * Counts a call against the plan of its key, or against its client address if there is no key. @returns the caller
 * @throws PublicError TOO_MANY_REQUESTS_ERROR; AUTHENTICATION_ERROR for an invalid key
 */
export type AdmitCall = (exchange: Exchange) => Promise<string>;

export interface AdmitCallParts {
  keys: RateLimitKeys;
  limiter: WindowLimiter;
  /** Limit per client address. */
  policy: WindowPolicy;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
  usage: Pick<UsageCounter, 'used' | 'refused'>;
}

const KEY_HEADER = 'x-api-key';

/** A call with an invalid key counts against the client address, which limits key guessing. */
export function createAdmitCall({ keys, limiter, policy, addressOf, onRefused, usage }: AdmitCallParts): AdmitCall {
  const admitAddress = (exchange: Exchange) => {
    const caller = `address ${addressOf(exchange.request)}`;
    admitRequest(exchange, limiter.window(caller, policy), onRefused);
    return caller;
  };
  // A window never changes its policy, so a changed plan needs a new window.
  const admitPlan = (exchange: Exchange, { keyId, calls, windowS }: RateLimitPlan) => {
    const key = { keyId, environmentId: null };
    const window = limiter.window(`key ${keyId} ${calls} ${windowS}`, { name: policy.name, calls, windowS });
    try {
      admitRequest(exchange, window, onRefused);
    } catch (error) {
      usage.refused(key, { reason: 'TOO_MANY_REQUESTS_ERROR', traceId: exchange.traceId });
      throw error;
    }
    usage.used(key, 0, 0);
    return `key ${keyId}`;
  };
  return async (exchange) => {
    const key = exchange.request.headers[KEY_HEADER];
    if (key === undefined) return admitAddress(exchange);
    const plan = await keys.find(String(key));
    if (plan !== null) return admitPlan(exchange, plan);
    admitAddress(exchange);
    const message = `The key in ${KEY_HEADER} is not valid.`;
    throw new PublicError('AUTHENTICATION_ERROR', { message, details: { header: KEY_HEADER } });
  };
}

interface RateLimitKeysParts {
  /** Closed together with the keys. */
  view: RecordView<RateLimitKeyRecord> & { close(): Promise<void> };
  /** The setting `ACCESS_KEY_PREFIX`. */
  prefix: string;
}

/** Keeps the rate limit keys in memory and refreshes them twice a second, so that calls need no Redis query. */
export function openRateLimitKeys({ view, prefix }: RateLimitKeysParts) {
  const { find, refresh, close } = openRateLimitKeyFinder({ view, prefix });
  return {
    find,
    /** Returns true if the copy is current. */
    ready: () =>
      refresh().then(
        () => true,
        () => false,
      ),
    close: async () => {
      close();
      await view.close();
    },
  };
}
