import type { ServiceName } from '../../../infra/local/services.ts';
import { groupOf } from '../consumer-process.ts';
import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import { type Measured, openService, waitFor } from '../processes.ts';

/** Generous: four services start one after the other, possibly on a busy machine. */
const READY_MAX_MS = 180_000;

/** A service as it is deployed, with the port of its own listener. */
export interface ReadyService extends Measured {
  readonly adminPort: number;
}

/**
 * Starts a service and waits until it is ready. When that takes too long, ends it.
 * @throws Error when it is not ready in time
 */
export async function openReady(
  bench: Bench,
  name: ServiceName,
  settings: Readonly<Record<string, string>> = {},
): Promise<ReadyService> {
  const adminPort = await findFreePort();
  const service = openService(name, {
    ...bench.serviceEnvironment,
    CONSUMER_GROUP: groupOf(bench, name),
    ADMIN_PORT: String(adminPort),
    ...settings,
  });
  const isReady = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok;
  try {
    await waitFor(`${name} is ready`, isReady, { measured: service, maxMs: READY_MAX_MS });
    return { ...service, adminPort };
  } catch (fault) {
    await service.close();
    throw fault;
  }
}
