import type { Bench } from './figure.ts';
import { findFreePort } from './free-port.ts';
import { type Measured, openService, waitUntilReady } from './processes.ts';

/** The event writer as it is deployed. */
export async function openWriter(bench: Bench): Promise<Measured> {
  const adminPort = await findFreePort();
  const writer = openService('event-writer', {
    ...bench.serviceEnvironment,
    CONSUMER_GROUP: `${bench.topicPrefix}event-writer`,
    ADMIN_PORT: String(adminPort),
  });
  await waitUntilReady(writer, adminPort);
  return writer;
}
