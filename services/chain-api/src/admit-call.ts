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
  /** null for an invalid key. @throws when the key cannot be checked now */
  find(key: string): Promise<RateLimitPlan | null>;
}

/**
 * Admits a call under the limit of its key, or else of its client address. @returns the key or the address @throws
 * PublicError TOO_MANY_REQUESTS_ERROR; AUTHENTICATION_ERROR for an invalid key
 */
export type AdmitCall = (exchange: Exchange) => Promise<string>;

export interface AdmitCallParts {
  keys: RateLimitKeys;
  limiter: WindowLimiter;
  /** Of a client address. */
  policy: WindowPolicy;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
  usage: Pick<UsageCounter, 'used' | 'refused'>;
}

const KEY_HEADER = 'x-api-key';

/** An invalid key counts against its address, so guesses are limited too. */
export function createAdmitCall({ keys, limiter, policy, addressOf, onRefused, usage }: AdmitCallParts): AdmitCall {
  const admitAddress = (exchange: Exchange) => {
    const caller = `address ${addressOf(exchange.request)}`;
    admitRequest(exchange, limiter.window(caller, policy), onRefused);
    return caller;
  };
  // A window keeps its first policy: a changed plan gets another window.
  const admitPlan = (exchange: Exchange, { keyId, calls, windowS }: RateLimitPlan) => {
    const key = { keyId, environmentId: null };
    const account = limiter.window(`key ${keyId} ${calls} ${windowS}`, { name: policy.name, calls, windowS });
    try {
      admitRequest(exchange, account, onRefused);
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
  /** Closed with the keys. */
  view: RecordView<RateLimitKeyRecord> & { close(): Promise<void> };
  /** ACCESS_KEY_PREFIX */
  prefix: string;
}

/** Copy of the rate limit keys in Redis, checked twice a second: calls with a key need no query. */
export function openRateLimitKeys({ view, prefix }: RateLimitKeysParts) {
  const { find, refresh, close } = openRateLimitKeyFinder({ view, prefix });
  return {
    find,
    /** Whether this process knows all current keys. */
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
