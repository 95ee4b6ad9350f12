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
  /** Null if the store itself authenticates requests. */
  readonly login: Account | null;
}

interface RelayedStack {
  readonly security: StackSecurity;
  readonly port: (name: string) => number;
  readonly start: (spec: ProcessSpec) => Promise<void>;
}

/** @param started promises that resolve when the stores are ready */
export function startRelays<T extends Record<'registry' | 'clickhouse', Promise<void>>>(
  paths: StackPaths,
  started: T,
  { security, port, start }: RelayedStack,
): T {
  /** @param probe a path for which the store responds with 200 */
  const relay = (store: 'registry' | 'clickhouse', login: Account | null, probe: string) => {
    const [listenPort, targetPort] = [port(`${store}-secured`), port(store)];
    const settings: RelaySettings = { listenPort, targetPort, server: security.server, login };
    const spec = tlsRelaySpec(paths, `${store}-relay`, { settings, caFile: security.caFile, probe });
    return Promise.all([started[store], start(spec)]).then(() => {});
  };
  return {
    ...started,
    registry: relay('registry', security.registry, REGISTRY_PROBE),
    clickhouse: relay('clickhouse', null, '/ping'),
  };
}

/** Describes a relay process that is ready once the store responds through the relay. */
function tlsRelaySpec(
  paths: StackPaths,
  name: string,
  { settings, caFile, probe }: { settings: RelaySettings; caFile: string; probe: string },
): ProcessSpec {
  const path = join(paths.state, 'etc', `${name}.json`);
  writePrivateFile(path, JSON.stringify(settings));
  const send = createStackFetch(caFile, settings.login ?? undefined);
  const url = `https://127.0.0.1:${settings.listenPort}${probe}`;
  return {
    name,
    program: process.execPath,
    args: [join(import.meta.dirname, 'tls-relay.ts'), path],
    env: storeEnvironment(),
    folder: join(paths.state, 'data', name),
    logFile: logFileOf(paths, name),
    isReady: async () => {
      const response = await send(url, { signal: AbortSignal.timeout(2_000) });
      await response.body?.cancel();
      return response.ok;
    },
    // The deadline of the slowest store.
    readyDeadlineMs: 120_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 5_000,
  };
}
