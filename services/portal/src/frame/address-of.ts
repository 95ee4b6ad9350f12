import { type ClientAddressOf, createClientAddress } from '@playline/http';
import type { Logger } from '@playline/runtime';

/** What proxies tell the client's address by. */
const FORWARDED = ['x-forwarded-for', 'forwarded'];

/**
 * Builds the reading of the address that people are counted under. Behind a proxy that is not trusted all of them have that
 * of the proxy, and the wrong tries of one lock everybody out: the first request that tells of one is told to the log, once.
 */
export function createAddressOf(trustedProxies: number, logger: Pick<Logger, 'warn'>): ClientAddressOf {
  const addressOf = createClientAddress(trustedProxies);
  if (trustedProxies > 0) return addressOf;
  let wasTold = false;
  return (request) => {
    if (!wasTold && FORWARDED.some((name) => request.headers[name] !== undefined)) {
      wasTold = true;
      logger.warn(
        {},
        'a request says that it was forwarded, and no proxy is trusted: everybody behind one proxy shares its tries to sign in, so that a few wrong ones lock all of them out. Set TRUSTED_PROXIES to the number of proxies in front',
      );
    }
    return addressOf(request);
  };
}
