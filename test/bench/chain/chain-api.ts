import { CURSOR_KEYS } from '../feed/cases.ts';
import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import type { Server } from '../gateway-servers.ts';
import { openReady } from './open-ready.ts';

/** The most that the settings allow: what is measured is the chain API, limits and all, not where they end. */
const UNLIMITED = {
  ...{ RATE_LIMIT_CALLS: '1000000', RATE_LIMIT_WINDOW_S: '1' },
  ...{ MINTS_PER_MINUTE: '1000000', MINTS_BURST: '10000000' },
  // On a busy machine brokers take longer than a caller may wait, and a figure is no test.
  PUBLISH_DEADLINE_MS: '20000',
};

/** The chain API as it is deployed, without limits. */
export async function openChainApiOf(
  bench: Bench,
  chains: readonly { readonly name: string; readonly id: string }[],
): Promise<Server> {
  const port = await findFreePort();
  const server = await openReady(bench, 'chain-api', {
    ...{ ...UNLIMITED, CURSOR_KEYS, CHAINS: JSON.stringify(chains) },
    ...{ HTTP_HOST: '127.0.0.1', HTTP_PORT: String(port) },
  });
  return { ...server, port };
}
