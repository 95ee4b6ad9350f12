import { SERVICES, type ServiceEntry } from '../../infra/local/services.ts';
import type { Bench } from './figure.ts';
import { findFreePort } from './free-port.ts';
import { type Measured, openProcess, waitUntilReady } from './processes.ts';

/** The event writer as it is deployed. */
export async function openWriter(bench: Bench): Promise<Measured> {
  const adminPort = await findFreePort();
  const { nodeOptions } = SERVICES.find(({ name }) => name === 'event-writer') as ServiceEntry;
  const writer = openProcess('services/event-writer/src/main.ts', {
    NODE_OPTIONS: nodeOptions?.join(' ') ?? '',
    ...bench.environment,
    CONSUMER_GROUP: `${bench.topicPrefix}event-writer`,
    ADMIN_PORT: String(adminPort),
  });
  await waitUntilReady(writer, adminPort);
  return writer;
}
