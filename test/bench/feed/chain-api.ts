import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import type { Server } from '../gateway-servers.ts';
import { openService, waitUntilReady } from '../processes.ts';
import { CURSOR_KEYS } from './cases.ts';
import { CHAINS } from './fill.ts';

/** The highest limits that the settings allow, so that requests pass the limiter but are never refused. */
const UNLIMITED = { RATE_LIMIT_CALLS: '1000000', RATE_LIMIT_WINDOW_S: '1' };

/** The chain API as it is deployed, except for its limits. */
export async function openChainApi(bench: Bench): Promise<Server> {
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const server = openService('chain-api', {
    ...bench.serviceEnvironment,
    ...UNLIMITED,
    CHAINS: JSON.stringify(CHAINS.map((name, at) => ({ name, id: `eip155:${at + 1}` }))),
    CURSOR_KEYS,
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: String(port),
    ADMIN_PORT: String(adminPort),
  });
  await waitUntilReady(server, adminPort);
  return { ...server, port };
}
