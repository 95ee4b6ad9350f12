import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { answersOk } from './http-probe.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type Places } from './places.ts';

/** One service of the stack. */
export interface ServiceEntry {
  /** Folder under `services/`, name in `stack.json`, in logs and in `npm run logs <name>`. */
  readonly name: string;
  /** `stack.json` field of its public address; absent for a service that only reads topics. */
  readonly address?: 'gateway' | 'chainApi';
  /** Options of Node besides the file; docker-compose.yml and infra/docker/Dockerfile name the same ones. */
  readonly nodeOptions?: readonly string[];
}

/**
 * Node sizes the young generation by the machine's memory, 16 MiB and more a semi-space, although what a request leaves
 * behind dies at once. Measured on the gateway under full load: 50 MiB less resident, as many events per CPU-second; on
 * the writer with a full topic before it: 70 to 100 MiB less, as many rows per CPU-second.
 * A bound on the old generation (512 MiB) takes another 60 MiB off and costs a third of the rate: not taken.
 */
const SMALL_YOUNG_GENERATION = ['--max-semi-space-size=8'] as const;

/** Every service of the stack; a new one is one line here. */
export const SERVICES = [
  { name: 'gateway', address: 'gateway', nodeOptions: SMALL_YOUNG_GENERATION },
  { name: 'identity-linker' },
  { name: 'event-writer', nodeOptions: SMALL_YOUNG_GENERATION },
] as const satisfies readonly ServiceEntry[];

export type ServiceName = (typeof SERVICES)[number]['name'];

/** Options of Node that a service runs with wherever it runs: what is measured or tried of it must be the same process. */
export function nodeOptionsOf(name: ServiceName): readonly string[] {
  const service: ServiceEntry | undefined = SERVICES.find((each) => each.name === name);
  return service?.nodeOptions ?? [];
}

/** Port names of the given services: one for operation each, one more for those the world talks to. */
export function portNamesOf(services: readonly ServiceEntry[]): string[] {
  return services.flatMap((service) => [
    ...(service.address === undefined ? [] : [service.name]),
    `${service.name}-admin`,
  ]);
}

export interface ServiceSetting {
  ports: Record<string, number>;
  /** What all services share: addresses, accounts, the pepper. */
  env: Record<string, string>;
}

const mainOf = (places: Places, service: ServiceEntry) =>
  join(places.checkout, 'services', service.name, 'src', 'main.ts');

/** @throws Error naming the services that are not in the tree, before anything is started in vain */
export function assertServicesExist(places: Places, services: readonly ServiceEntry[]): void {
  const absent = services.filter((service) => !existsSync(mainOf(places, service)));
  if (absent.length > 0)
    throw new Error(`no src/main.ts in ${absent.map((service) => `services/${service.name}`).join(', ')}`);
}

/** A service as its own process, ready when its `/readyz` says so. */
export function serviceSpec(places: Places, service: ServiceEntry, { ports, env }: ServiceSetting): ProcessSpec {
  const adminPort = ports[`${service.name}-admin`];
  const publicPort =
    service.address === undefined ? {} : { HTTP_HOST: '127.0.0.1', HTTP_PORT: String(ports[service.name]) };
  return {
    name: service.name,
    program: process.execPath,
    args: [...(service.nodeOptions ?? []), mainOf(places, service)],
    env: { ...process.env, ...env, ...publicPort, ADMIN_HOST: '127.0.0.1', ADMIN_PORT: String(adminPort) },
    folder: places.checkout,
    logFile: logFileOf(places, service.name),
    isReady: () => answersOk(`http://127.0.0.1:${adminPort}/readyz`),
    readyDeadlineMs: 60_000,
    stopBy: 'SIGTERM',
    // A service gives itself 25 s to drain and then ends by itself.
    stopDeadlineMs: 26_000,
  };
}
