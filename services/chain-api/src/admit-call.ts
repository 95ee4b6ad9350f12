import type { UsageCounter } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { ClientAddressOf, Exchange } from '@playline/http';
import { admitRequest, type OnRefused, type WindowLimiter, type WindowPolicy } from '@playline/rate-limit';

/** What the owner of a rate limit key may use. */
export interface RateLimitPlan {
  readonly keyId: string;
  readonly calls: number;
  readonly windowS: number;
}

/** Where rate limit keys are known. */
export interface RateLimitKeys {
  /** The plan of a key; null when it is not valid. @throws when nobody can tell: no fault of the caller */
  find(key: string): Promise<RateLimitPlan | null>;
}

/**
 * Lets a call in under the limit of its key, or without one of its client address.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when that is used up; AUTHENTICATION_ERROR for a key that is not valid
 */
export type AdmitCall = (exchange: Exchange) => Promise<void>;

export interface AdmitCallParts {
  keys: RateLimitKeys;
  limiter: WindowLimiter;
  /** Of a client address. */
  policy: WindowPolicy;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
  /** Counts calls under keys that are good. */
  usage: Pick<UsageCounter, 'used' | 'refused'>;
}

const KEY_HEADER = 'x-api-key';

/** A call under a key that is not valid counts against its address: guessing is bounded like everything else. */
export function createAdmitCall({ keys, limiter, policy, addressOf, onRefused, usage }: AdmitCallParts): AdmitCall {
  const admitAddress = (exchange: Exchange) =>
    admitRequest(exchange, limiter.window(`address ${addressOf(exchange.request)}`, policy), onRefused);
  // A window keeps the policy that it was made with, so a key whose plan has changed has another one.
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
