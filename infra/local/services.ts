// The services of a stack, with their names, Node options and settings.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TOPICS, type Topic } from '@playline/contracts';
import { assertReady } from './http-probe.ts';
import type { ProcessSpec } from './keeper.ts';
import { nodeName, parseNodeName } from './node-names.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import type { StackFile } from './stack-file.ts';

export interface ServiceEntry {
  /** Name of the folder below `services/`. The first process of the service also has this name. */
  readonly name: string;
  /** Number of the process, from 2; absent for the first process. */
  readonly instance?: number;
  /** Name of the address in `stack.json`; absent for services without a public listener. */
  readonly address?: 'gateway' | 'chainApi' | 'portal';
  /** ClickHouse account, if not `writer`, as in docker-compose.yml. */
  readonly account?: 'reader' | 'portal';
  /** True if the service waits until Redis has an identity graph. */
  readonly needsIdentities?: boolean;
  readonly needsChain?: boolean;
  /** True if the service creates analyst accounts, with the ClickHouse account `accounts`. */
  readonly assignsAnalysts?: boolean;
  /** True if the service receives the keys that decrypt sealed keys. */
  readonly canSign?: boolean;
  /** Topics of the consumer group, which has the name of the service. */
  readonly reads?: readonly Topic[];
  /** Topics of the second consumer group, `<name>-audit`. */
  readonly audits?: readonly Topic[];
  /** Node options, as in docker-compose.yml and infra/docker/Dockerfile. */
  readonly nodeOptions?: readonly string[];
  /** Additional environment variables, as in docker-compose.yml. */
  readonly environment?: Readonly<Record<string, string>>;
}

// Node options with their measured effects; see infra/decisions/0019-idle-and-startup-costs.md.

/** Most objects live only for one request. Smaller semi-spaces than the default of 16 MiB save 50 to 100 MiB. */
const SMALL_YOUNG_GENERATION = '--max-semi-space-size=8';

/** Avoids full collections while the heap grows during startup: 1.16 -> 0.91 s of CPU time. */
const NO_COLLECTIONS_AT_START = '--initial-old-space-size=64';

/**
 * By default, V8 soon allocates objects of pending requests in the old generation, where each object retains its
 * complete request until a full collection. Effect: 1.15 to 1.38 times the events per CPU-second, 333 -> 268 MiB.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';

/**
 * Starts a full collection when the heap has grown to 1.6 times its live size. Gateway: 263 -> 201 MiB at the same rate.
 * Portal: 322 -> 225 MiB for the same pages. A smaller growth (20 %) makes its slowest page a third slower.
 */
const EARLY_FULL_COLLECTIONS = '--heap-growing-percent=60';

/**
 * Chain API pages are buffers outside V8's heap and would trigger full collections: 2.0 -> 0.9 CPU-ms per page. A growth
 * of 400 % cost the same in short runs, but an idle process then retains 160 MiB of garbage for hours.
 */
const LATE_FULL_COLLECTIONS = '--heap-growing-percent=100';

/** One thread collects the garbage of eight pages at a time: 1.02 to 1.08 times the pages per CPU-second. */
const SINGLE_THREADED_COLLECTIONS = ['--max-semi-space-size=16', '--single-threaded-gc'];

/** Makes glibc release freed blocks of 128 KiB or more, instead of retaining blocks up to 32 MiB: 359 -> 333 MiB. */
const FRUGAL_ALLOCATOR = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
} as const;

export const SERVICES = [
  {
    name: 'gateway',
    address: 'gateway',
    nodeOptions: [SMALL_YOUNG_GENERATION, NO_PRETENURING, EARLY_FULL_COLLECTIONS],
    environment: FRUGAL_ALLOCATOR,
  },
  { name: 'identity-linker', needsIdentities: true, reads: [TOPICS.identityLinks] },
  {
    name: 'event-writer',
    nodeOptions: [SMALL_YOUNG_GENERATION],
    reads: [TOPICS.messages, TOPICS.identityDecisions, TOPICS.consents, TOPICS.rejections],
    audits: [
      ...[TOPICS.projects, TOPICS.accessKeys, TOPICS.rateLimitKeys, TOPICS.collections, TOPICS.accounts],
      ...[TOPICS.signableKeys, TOPICS.audit],
    ],
  },
  {
    name: 'activity-writer',
    nodeOptions: [SMALL_YOUNG_GENERATION],
    reads: [TOPICS.activities, TOPICS.tokens, TOPICS.mintRequests, TOPICS.mintStates, TOPICS.chainMetadata],
  },
  { name: 'chain-indexer', needsChain: true, nodeOptions: [SMALL_YOUNG_GENERATION] },
  { name: 'eraser', needsIdentities: true, nodeOptions: [SMALL_YOUNG_GENERATION], reads: [TOPICS.erasures] },
  {
    name: 'chain-api',
    address: 'chainApi',
    account: 'reader',
    nodeOptions: [...SINGLE_THREADED_COLLECTIONS, LATE_FULL_COLLECTIONS],
  },
  {
    name: 'minter',
    needsChain: true,
    canSign: true,
    nodeOptions: [SMALL_YOUNG_GENERATION],
    reads: [TOPICS.mintRequests],
  },
  {
    name: 'portal',
    address: 'portal',
    account: 'portal',
    assignsAnalysts: true,
    nodeOptions: [SMALL_YOUNG_GENERATION, NO_PRETENURING, EARLY_FULL_COLLECTIONS, NO_COLLECTIONS_AT_START],
    environment: FRUGAL_ALLOCATOR,
  },
] as const satisfies readonly ServiceEntry[];

export type ServiceName = (typeof SERVICES)[number]['name'];

/** Returns the requested services, or all services that can run in the stack, twice in a cluster. */
export function servicesFor({
  services,
  chain = false,
  cluster = false,
}: {
  readonly services?: readonly ServiceName[];
  readonly chain?: boolean;
  readonly cluster?: boolean;
}): readonly ServiceEntry[] {
  const isChosen = ({ name, needsChain = false }: ServiceEntry) =>
    services === undefined ? chain || !needsChain : services.includes(name as ServiceName);
  const chosen = (SERVICES as readonly ServiceEntry[]).filter(isChosen);
  return cluster ? chosen.flatMap((service) => [service, { ...service, instance: 2 }]) : chosen;
}

/** Returns the name of a process in `stack.json`, for logs and ports: `gateway`, `gateway-2`. */
export const processNameOf = ({ name, instance = 1 }: ServiceEntry): string => nodeName(name, instance);

/** @param process name of a process, such as `gateway-2` or `kafka` */
export const isService = (process: string): boolean =>
  SERVICES.some(({ name }) => name === parseNodeName(process).kind);

/** Returns a service's Node options, for benchmarks and tests that start the service themselves. */
export const nodeOptionsOf = (name: ServiceName): readonly string[] => serviceOf(name).nodeOptions ?? [];

export const serviceOf = (name: ServiceName): ServiceEntry =>
  SERVICES.find((each) => each.name === name) as ServiceEntry;

export function portNamesOf(services: readonly ServiceEntry[]): string[] {
  return services.flatMap((service) => {
    const name = processNameOf(service);
    return [...(service.address === undefined ? [] : [name]), `${name}-admin`];
  });
}

interface ServiceSetting {
  ports: Record<string, number>;
  /** Settings for all services: addresses, accounts, the pepper. */
  env: Record<string, string>;
  /** Settings only for services that sign. */
  signing: Readonly<Record<string, string>>;
  passwords: { readonly reader: string; readonly portal: string };
  /** Settings only for services that create analyst accounts. */
  analysts: Readonly<Record<string, string>>;
}

const mainOf = (paths: StackPaths, service: ServiceEntry) =>
  join(paths.checkout, 'services', service.name, 'src', 'main.ts');

/** @throws Error that names services without a folder in this checkout */
export function assertServicesExist(paths: StackPaths, services: readonly ServiceEntry[]): void {
  const absent = services.filter((service) => !existsSync(mainOf(paths, service)));
  const folders = new Set(absent.map(({ name }) => `services/${name}`));
  if (folders.size > 0) throw new Error(`no src/main.ts in ${[...folders].join(', ')}`);
}

const STORE_SETTING = /^(KAFKA|REDIS|CLICKHOUSE|SCHEMA_REGISTRY)_/;
export const isStoreSetting = (name: string): boolean => STORE_SETTING.test(name);

/** Returns the environment without store settings, which would conflict with the settings of the stack. */
export const environmentWithoutStores = (): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !isStoreSetting(name)));

const adminAddressOf = (name: string, ports: Record<string, number>): string =>
  `http://127.0.0.1:${ports[`${name}-admin`]}`;

/** Returns the members of the stack file that describe services. */
export function addressesOf(
  services: readonly ServiceEntry[],
  { ports, env }: Pick<ServiceSetting, 'ports' | 'env'>,
): Partial<StackFile> {
  const names = services.map(processNameOf);
  const members: Partial<StackFile> = {
    admin: Object.fromEntries(names.map((name) => [name, adminAddressOf(name, ports)])),
  };
  const others: Record<string, string> = {};
  for (const service of services) {
    const { address, instance } = service;
    if (address === undefined) continue;
    const url = `http://${hostOf(address)}:${ports[processNameOf(service)]}`;
    if (instance === undefined) members[address] = url;
    else others[processNameOf(service)] = url;
    if (address === 'chainApi') members.chains = JSON.parse(env.CHAINS ?? '[]');
  }
  return { ...members, ...(Object.keys(others).length > 0 && { others }) };
}

/** Returns `localhost` for the portal, because passkeys require a host name. */
const hostOf = (address: ServiceEntry['address']) => (address === 'portal' ? 'localhost' : '127.0.0.1');

/** Returns the public URLs of running services. Each portal has its own origin, because no proxy precedes them. */
function publicUrlsOf(service: ServiceEntry, ports: Record<string, number>): Record<string, string> {
  const portal = service.address === 'portal' ? processNameOf(service) : 'portal';
  const urls = [
    ['GATEWAY_URL', hostOf('gateway'), ports.gateway],
    ['CHAIN_API_URL', hostOf('chainApi'), ports['chain-api']],
    ['PORTAL_ORIGIN', hostOf('portal'), ports[portal]],
  ] as const;
  const available = urls.filter(([, , port]) => port !== undefined);
  return Object.fromEntries(available.map(([name, host, port]) => [name, `http://${host}:${port}`]));
}

export function serviceSpec(paths: StackPaths, service: ServiceEntry, setting: ServiceSetting): ProcessSpec {
  const { ports, env, passwords, signing, analysts } = setting;
  const name = processNameOf(service);
  const admin = adminAddressOf(name, ports);
  const publicPort = service.address === undefined ? {} : { HTTP_HOST: '127.0.0.1', HTTP_PORT: String(ports[name]) };
  const { account } = service;
  const login = account === undefined ? {} : { CLICKHOUSE_USER: account, CLICKHOUSE_PASSWORD: passwords[account] };
  return {
    name,
    program: process.execPath,
    args: [...(service.nodeOptions ?? []), mainOf(paths, service)],
    env: {
      ...environmentWithoutStores(),
      ...service.environment,
      // Not taken from the environment, because all services would share one group.
      CONSUMER_GROUP: service.name,
      // The eraser waits for these groups.
      LINKER_GROUP: 'identity-linker',
      WRITER_GROUP: 'event-writer',
      ...publicUrlsOf(service, ports),
      CLICKHOUSE_PUBLIC_URL: env.CLICKHOUSE_URL,
      ...env,
      ...(service.canSign === true ? signing : {}),
      ...(service.assignsAnalysts === true ? analysts : {}),
      ...login,
      ...publicPort,
      ADMIN_HOST: '127.0.0.1',
      ADMIN_PORT: new URL(admin).port,
    },
    folder: paths.checkout,
    logFile: logFileOf(paths, name),
    isReady: () => assertReady(admin),
    readyDeadlineMs: 60_000,
    stopBy: 'SIGTERM',
    // A service may take up to 25 s to stop.
    stopDeadlineMs: 26_000,
  };
}
