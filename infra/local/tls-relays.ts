// Starts the TLS relays of a stack.
import { join } from 'node:path';
import type { CertificateFiles } from './certificates.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { writePrivateFile } from './private-file.ts';
import { REGISTRY_PROBE } from './registry.ts';
import { type Account, createStackFetch, type StackSecurity } from './security.ts';
import { storeEnvironment } from './store-environment.ts';

export interface RelaySettings {
  readonly listenPort: number;
  readonly targetPort: number;
  readonly server: CertificateFiles;
  /** Null leaves authentication to the store. */
  readonly login: Account | null;
}

interface RelayedStack {
  readonly security: StackSecurity;
  readonly port: (name: string) => number;
  readonly start: (spec: ProcessSpec) => Promise<void>;
}

/** @param started resolves for each store when it is ready */
export function startRelays<T extends Record<'registry' | 'clickhouse', Promise<void>>>(
  paths: StackPaths,
  started: T,
  { security, port, start }: RelayedStack,
): T {
  const relay = (store: 'registry' | 'clickhouse', { login, probe }: { login: Account | null; probe: string }) => {
    const ports = { listen: port(`${store}-secured`), target: port(store) };
    const spec = tlsRelaySpec(paths, { name: `${store}-relay`, ports, security, login, probe });
    return Promise.all([started[store], start(spec)]).then(() => {});
  };
  return {
    ...started,
    registry: relay('registry', { login: security.registry, probe: REGISTRY_PROBE }),
    clickhouse: relay('clickhouse', { login: null, probe: '/ping' }),
  };
}

/** Ready once the store answers through it. */
function tlsRelaySpec(
  paths: StackPaths,
  relay: {
    name: string;
    ports: { listen: number; target: number };
    security: StackSecurity;
    login: Account | null;
    /** A path to which the store answers with 200. */
    probe: string;
  },
): ProcessSpec {
  const { name, ports, security, login, probe } = relay;
  const folder = join(paths.state, 'data', name);
  const path = join(paths.state, 'etc', `${name}.json`);
  const settings: RelaySettings = {
    listenPort: ports.listen,
    targetPort: ports.target,
    server: security.server,
    login,
  };
  writePrivateFile(path, JSON.stringify(settings));
  const send = createStackFetch(security.caFile, login ?? undefined);
  return {
    name,
    program: process.execPath,
    args: [join(import.meta.dirname, 'tls-relay.ts'), path],
    env: storeEnvironment(),
    folder,
    logFile: logFileOf(paths, name),
    isReady: async () => {
      const answer = await send(`https://127.0.0.1:${ports.listen}${probe}`, { signal: AbortSignal.timeout(2_000) });
      await answer.body?.cancel();
      return answer.ok;
    },
    // The slowest store's.
    readyDeadlineMs: 120_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 5_000,
  };
}
