import { countFault, type KeyRecord, type UsageCounter } from '@playline/access-keys';
import { ClientGone, type Exchange, type Route } from '@playline/http';
import type { Authorise } from './authorise.ts';

/** Counts requests under valid keys; nothing is counted before a key is verified. */
export type CountUse = Pick<UsageCounter, 'used' | 'refused'>;

/** Reason counted for a batch without one acceptable message, which is answered without an error envelope. */
export const ALL_REJECTED = 'ALL_MESSAGES_REJECTED';

/** Reason counted for a page whose origin is not in the key's list. */
export const STRANGE_ORIGIN = 'ORIGIN_NOT_ALLOWED';

/** Counts a request that ended in a fault. A request whose caller has disconnected is not counted as refused. */
export function countEnd(usage: CountUse, key: KeyRecord, { exchange, error }: { exchange: Exchange; error: unknown }) {
  if (!(error instanceof ClientGone)) countFault(usage, key, { fault: error, traceId: exchange.traceId });
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
          if (key !== undefined) countEnd(usage, key, { exchange, error });
          throw error;
        }
        const key = keys.get(exchange);
        if (key !== undefined) usage.used(key, 0, 0);
      },
    }),
  };
}
