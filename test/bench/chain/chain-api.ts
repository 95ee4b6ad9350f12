import { CURSOR_KEYS } from '../feed/cases.ts';
import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import type { Server } from '../gateway-servers.ts';
import { openReady } from './open-ready.ts';

/** The highest limits that the settings allow, so that requests pass the limiter but are never refused. */
const UNLIMITED = {
  RATE_LIMIT_CALLS: '1000000',
  RATE_LIMIT_WINDOW_S: '1',
  MINTS_PER_MINUTE: '1000000',
  MINTS_BURST: '10000000',
  // On a busy machine brokers may take longer than a caller would wait. That must not fail a measurement.
  PUBLISH_DEADLINE_MS: '20000',
};

/** The chain API as it is deployed, except for its limits. */
export async function openChainApiOf(
  bench: Bench,
  chains: readonly { readonly name: string; readonly id: string }[],
): Promise<Server> {
  const port = await findFreePort();
  const server = await openReady(bench, 'chain-api', {
    ...UNLIMITED,
    CURSOR_KEYS,
    CHAINS: JSON.stringify(chains),
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: String(port),
  });
  return { ...server, port };
}
