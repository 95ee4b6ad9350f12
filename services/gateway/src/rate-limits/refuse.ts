import { PublicError } from '@playline/errors';
import type { Exchange } from '@playline/http';
import { limitField, policyField, type RatePolicy, type Standing } from '@playline/rate-limit';

/** Why a request was refused, for the count of refusals. */
export type OnRefused = (limit: string) => void;

/** A bucket as far as answers show it. */
export interface Shown {
  readonly policy: RatePolicy;
  standing(): Standing;
}

/** Lets every answer of the exchange say where its caller stands when it goes out. */
export function showLimit(exchange: Exchange, bucketOf: () => Shown): void {
  exchange.lateHeaders = () => {
    const bucket = bucketOf();
    const standing = limitField(bucket.policy, bucket.standing());
    return ['ratelimit-policy', policyField(bucket.policy), 'ratelimit', standing];
  };
}

/** The answer to whoever has used up a limit: decided before any byte of the body is read. */
export function refusal({ waitS }: Standing): PublicError {
  return new PublicError('TOO_MANY_REQUESTS_ERROR', { retryAfterS: waitS });
}
