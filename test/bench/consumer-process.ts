import type { ServiceName } from '../../infra/local/services.ts';
import type { Bench } from './figure.ts';
import { findFreePort } from './free-port.ts';
import { type Measured, openService, waitUntilReady } from './processes.ts';

/** Consumer group of a service in this bench. */
export const groupOf = ({ topicPrefix }: Bench, service: ServiceName): string => topicPrefix + service;

/** Starts a service that reads topics, as it is deployed. */
export async function openConsumerService(
  bench: Bench,
  name: ServiceName,
  settings: Readonly<Record<string, string>> = {},
): Promise<Measured> {
  const adminPort = await findFreePort();
  const service = openService(name, {
    ...bench.serviceEnvironment,
    CONSUMER_GROUP: groupOf(bench, name),
    ADMIN_PORT: String(adminPort),
    ...settings,
  });
  await waitUntilReady(service, adminPort);
  return service;
}
