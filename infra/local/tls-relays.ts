import { join } from 'node:path';
import type { CertificateFiles } from './certificates.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { writePrivateFile } from './private-file.ts';
import { REGISTRY_PROBE } from './registry.ts';
import { type Account, createStackFetch, type StackSecurity } from './security.ts';
import { storeEnvironment } from './store-environment.ts';

/** The settings of the process of tls-relay.ts. */
export interface RelaySettings {
  readonly listenPort: number;
  readonly targetPort: number;
  readonly server: CertificateFiles;
  /** Basic authentication; null leaves it to the store. */
  readonly login: Account | null;
}

interface RelayedStack {
  readonly security: StackSecurity;
  readonly port: (name: string) => number;
  /** Starts a process of the stack; resolves when it is ready. */
  readonly start: (spec: ProcessSpec) => Promise<void>;
}

/** Starts relays for the stores that have no TLS here. @param started resolves for each store when it is ready */
export function startRelays<T extends Record<'registry' | 'clickhouse', Promise<void>>>(
  places: StackPaths,
  started: T,
  { security, port, start }: RelayedStack,
): T {
  const relay = (store: 'registry' | 'clickhouse', { login, probe }: { login: Account | null; probe: string }) => {
    const ports = { listen: port(`${store}-secured`), target: port(store) };
    const spec = tlsRelaySpec(places, { name: `${store}-relay`, ports, security, login, probe });
    return Promise.all([started[store], start(spec)]).then(() => {});
  };
  return {
    ...started,
    registry: relay('registry', { login: security.registry, probe: REGISTRY_PROBE }),
    clickhouse: relay('clickhouse', { login: null, probe: '/ping' }),
  };
}

/** A relay with TLS before an HTTP store. It is ready once the store answers through it. */
function tlsRelaySpec(
  places: StackPaths,
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
  const folder = join(places.state, 'data', name);
  const path = join(places.state, 'etc', `${name}.json`);
  const settings: RelaySettings = {
    listenPort: ports.listen,
    targetPort: ports.target,
    server: security.server,
    login,
  };
  writePrivateFile(path, JSON.stringify(settings));
  const ask = createStackFetch(security.caFile, login ?? undefined);
  return {
    name,
    program: process.execPath,
    args: [join(import.meta.dirname, 'tls-relay.ts'), path],
    env: storeEnvironment(),
    folder,
    logFile: logFileOf(places, name),
    isReady: async () => {
      const answer = await ask(`https://127.0.0.1:${ports.listen}${probe}`, { signal: AbortSignal.timeout(2_000) });
      await answer.body?.cancel();
      return answer.ok;
    },
    // As long as the slowest store may take.
    readyDeadlineMs: 120_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 5_000,
  };
}
