import type { KeyRecord, UsageCounter } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { ClientGone, type Exchange, type Route } from '@playline/http';
import type { Authorise } from './authorise.ts';

/** Counts requests under keys that are good; nothing is counted before a key is known. */
export type CountUse = Pick<UsageCounter, 'used' | 'refused'>;

/** What a batch without one acceptable message is refused for, beside the codes of envelopes. */
export const ALL_REJECTED = 'ALL_MESSAGES_REJECTED';

/** What a page is refused for whose origin is not among those of the key. */
export const STRANGE_ORIGIN = 'ORIGIN_NOT_ALLOWED';

/** Counts a request that ended in a fault. One whose caller has gone was not refused. */
export function countFault(
  usage: CountUse,
  key: KeyRecord,
  { exchange, error }: { exchange: Exchange; error: unknown },
) {
  if (error instanceof ClientGone) return;
  const reason = error instanceof PublicError ? error.code : 'INTERNAL_SERVER_ERROR';
  // What is asked for is not there: that is an answer to a request which was served.
  if (reason === 'RESOURCE_NOT_FOUND') usage.used(key, 0, 0);
  else usage.refused(key, { reason, traceId: exchange.traceId });
}

/** Counts one operation: its check of keys says whom, its route how it ended. */
export interface OperationCount {
  authorise(authorise: Authorise): Authorise;
  route(route: Route): Route;
}

/**
 * Builds the count of operations that carry no messages. The route of messages counts by itself: remembering the key of
 * each request, as is done here, costs more than counting it.
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
          if (key !== undefined) countFault(usage, key, { exchange, error });
          throw error;
        }
        const key = keys.get(exchange);
        if (key !== undefined) usage.used(key, 0, 0);
      },
    }),
  };
}
