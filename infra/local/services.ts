import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TOPICS, type Topic } from '@playline/contracts';
import { servedChainsOf } from './chain.ts';
import { assertReady } from './http-probe.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import type { StackFile } from './stack-file.ts';

/** One service of the stack. */
export interface ServiceEntry {
  /** Its folder under `services/`, and its name in `stack.json`, in logs and in `npm run logs <name>`. */
  readonly name: string;
  /** Its public address in `stack.json`; absent for a service that only reads topics. */
  readonly address?: 'gateway' | 'chainApi' | 'portal';
  /** Its ClickHouse account, if not `writer`. docker-compose.yml has the same. */
  readonly account?: 'reader' | 'portal';
  /** True when it does nothing while Redis has no identity graph. */
  readonly needsIdentities?: boolean;
  /** True when it needs the stack's chain. */
  readonly needsChain?: boolean;
  /** True for the one service that gets the keys that open sealed keys. */
  readonly signs?: boolean;
  /** Topics that its consumer group reads. The group has the service's name. */
  readonly reads?: readonly Topic[];
  /** Topics that a second group of the same process reads. Its name is the service's with `-audit`. */
  readonly audits?: readonly Topic[];
  /** Options of Node. docker-compose.yml and infra/docker/Dockerfile have the same. */
  readonly nodeOptions?: readonly string[];
  /** Environment variables other than its settings. docker-compose.yml has the same. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Node sizes the young generation by the machine's memory, with 16 MiB or more per semi-space, although garbage of a
 * request dies at once. Measured on the gateway under full load: 50 MiB less resident memory at the same rate. On the
 * writer with a full topic: 70 to 100 MiB less at the same rate.
 */
const SMALL_YOUNG_GENERATION = '--max-semi-space-size=8';

/**
 * For the portal, where microseconds do not matter: a small young generation, full collections at 1.2 times the live
 * heap, and a heap that V8 keeps small rather than fast. Measured with ten million events, a visit of every page, and
 * fifty users who watch 1.3 million live messages: peak 242 -> 190 MiB, before the first visit 206 -> 157. The watching
 * users cost 89 instead of 48 CPU-seconds per million messages. p99 of the slowest page: 124 -> 272 ms.
 */
const SMALL_HEAP = ['--max-semi-space-size=2', '--heap-growing-percent=20', '--optimize-for-size'];

/**
 * A heap that may grow by a fifth from one full collection to the next is collected many times while a start fills it.
 * With this option the first full collection comes when the live heap of a start has its size. Measured in turn, three
 * starts each: 1.16 -> 0.91 s of CPU until it is ready, and 112 -> 124 MiB.
 */
const NO_COLLECTIONS_AT_START = '--initial-old-space-size=64';

/**
 * When 85 % of the objects of one allocation site survive a collection, V8 allocates them in the old generation from
 * then on. Requests that wait for the brokers cause that. Each such object, even when dead, keeps its whole request
 * alive until the next full collection. A fifth of all allocations was copied twice, and a full collection came every
 * 0.4 s. With this option, beside the same gateway without it, medians of three or four windows: 1.38, 1.15 and 1.32
 * times the events per CPU-second at batches of 1, 20 and 100; peak 333 → 268 MiB. It changes nothing for writer and
 * linker.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';

/**
 * Full collections are rare then, so they may come sooner: at 1.6 times the live heap, not at V8's two to four times.
 * Measured in the same way: peak 263 → 201 MiB, and 0.99, 0.99 and 1.34 times the rate. At 1.3 times the live heap: 198
 * MiB and 0.88, 0.99 and 0.71 times the rate.
 */
const EARLY_FULL_COLLECTIONS = '--heap-growing-percent=60';

/**
 * Pages of the chain API are in buffers outside of the heap, which count for the time of a collection. The heap is so
 * small that every 28 pages caused a full collection, which was more than half of the CPU per page. Measured with 8
 * readers: 2.0 -> 0.9 CPU-ms per page, 172 MiB resident.
 */
const LATE_FULL_COLLECTIONS = '--heap-growing-percent=400';

/**
 * Also for the chain API: the garbage of eight pages fits into a young generation of twice the size, and a single
 * thread collects it without waking others. Measured beside the same process without both, on an idle machine: 1.02,
 * 1.03 and 1.08 times the pages per CPU-second, and 30 MiB more resident.
 */
const COLLECTED_BY_ONE_THREAD = ['--max-semi-space-size=16', '--single-threaded-gc'];

/**
 * For glibc's allocator: few arenas, and freed blocks from 128 KiB on are returned to the system at once. By default it
 * raises that threshold up to 32 MiB when such blocks are freed, and keeps the memory of request bodies and records.
 * Measured on the gateway at full load, one run each: peak 359 → 333 MiB, and 7, 1 and 2 % more events per CPU-second
 * at batches of 1, 20 and 100.
 */
const FRUGAL_ALLOCATOR = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
} as const;

/** All services of the stack. A new one is one line here. */
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
    nodeOptions: [...COLLECTED_BY_ONE_THREAD, LATE_FULL_COLLECTIONS],
  },
  {
    name: 'minter',
    needsChain: true,
    signs: true,
    nodeOptions: [SMALL_YOUNG_GENERATION],
    reads: [TOPICS.mintRequests],
  },
  {
    name: 'portal',
    address: 'portal',
    account: 'portal',
    nodeOptions: [NO_PRETENURING, ...SMALL_HEAP, NO_COLLECTIONS_AT_START],
    environment: FRUGAL_ALLOCATOR,
  },
] as const satisfies readonly ServiceEntry[];

export type ServiceName = (typeof SERVICES)[number]['name'];

/** The requested services of a stack, or all for which it has the parts. */
export function servicesFor({
  services,
  chain = false,
}: {
  readonly services?: readonly ServiceName[];
  readonly chain?: boolean;
}): readonly ServiceEntry[] {
  if (services !== undefined) return SERVICES.filter(({ name }) => services.includes(name));
  return (SERVICES as readonly ServiceEntry[]).filter(({ needsChain = false }) => chain || !needsChain);
}

/** Options of Node for a service. Benches and trials use them too, so that they run the same process. */
export function nodeOptionsOf(name: ServiceName): readonly string[] {
  return serviceOf(name).nodeOptions ?? [];
}

export function serviceOf(name: ServiceName): ServiceEntry {
  return SERVICES.find((each) => each.name === name) as ServiceEntry;
}

/** Port names of the given services: an admin port for each, and a public port for those that have an address. */
export function portNamesOf(services: readonly ServiceEntry[]): string[] {
  return services.flatMap((service) => [
    ...(service.address === undefined ? [] : [service.name]),
    `${service.name}-admin`,
  ]);
}

export interface ServiceSetting {
  ports: Record<string, number>;
  /** Settings of all services: addresses, accounts, the pepper. */
  env: Record<string, string>;
  /** Further settings of services that sign: the keys that open sealed keys. */
  signing: Readonly<Record<string, string>>;
  /** Passwords of the accounts that only some services use. */
  passwords: { readonly reader: string; readonly portal: string };
}

const mainOf = (places: StackPaths, service: ServiceEntry) =>
  join(places.checkout, 'services', service.name, 'src', 'main.ts');

/** Checks before anything is started. @throws Error naming services without a folder in this checkout */
export function assertServicesExist(places: StackPaths, services: readonly ServiceEntry[]): void {
  const absent = services.filter((service) => !existsSync(mainOf(places, service)));
  if (absent.length > 0)
    throw new Error(`no src/main.ts in ${absent.map((service) => `services/${service.name}`).join(', ')}`);
}

/** Settings with addresses and logins of stores, for every service and command. */
const STORE_SETTING = /^(KAFKA|REDIS|CLICKHOUSE|SCHEMA_REGISTRY)_/;

/** Whether a setting is about a store. */
export const isStoreSetting = (name: string): boolean => STORE_SETTING.test(name);

/**
 * This process's environment without addresses and logins of stores. A stack has its own, and a mixture would not work.
 */
export function environmentWithoutStores(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isStoreSetting(name)));
}

/** Address of a service's admin listener. */
function adminAddressOf(name: string, ports: Record<string, number>): string {
  return `http://127.0.0.1:${ports[`${name}-admin`]}`;
}

/** What the stack file says about services: their addresses, and the chains that they serve. */
export function addressesOf(
  services: readonly ServiceEntry[],
  { ports, env }: Pick<ServiceSetting, 'ports' | 'env'>,
): Partial<StackFile> {
  const parts: Partial<StackFile> = {
    admin: Object.fromEntries(services.map(({ name }) => [name, adminAddressOf(name, ports)])),
  };
  for (const { name, address } of services) {
    if (address !== undefined) parts[address] = `http://${hostOf(address)}:${ports[name]}`;
    if (address === 'chainApi') parts.chains = servedChainsOf(env);
  }
  return parts;
}

/** Passkeys work only with host names, so the portal uses `localhost`. */
const hostOf = (address: ServiceEntry['address']) => (address === 'portal' ? 'localhost' : '127.0.0.1');

/** Addresses that the portal shows in commands, and its own. That of a service that does not run is absent. */
function publicUrlsOf(ports: Record<string, number>): Record<string, string> {
  const urls = [
    ['GATEWAY_URL', hostOf('gateway'), ports.gateway],
    ['CHAIN_API_URL', hostOf('chainApi'), ports['chain-api']],
    ['PORTAL_ORIGIN', hostOf('portal'), ports.portal],
  ] as const;
  const known = urls.filter(([, , port]) => port !== undefined);
  return Object.fromEntries(known.map(([name, host, port]) => [name, `http://${host}:${port}`]));
}

/** A service as a separate process. It is ready when its `/readyz` says so. */
export function serviceSpec(places: StackPaths, service: ServiceEntry, setting: ServiceSetting): ProcessSpec {
  const { ports, env, passwords, signing } = setting;
  const admin = adminAddressOf(service.name, ports);
  const publicPort =
    service.address === undefined ? {} : { HTTP_HOST: '127.0.0.1', HTTP_PORT: String(ports[service.name]) };
  const { account } = service;
  const login = account === undefined ? {} : { CLICKHOUSE_USER: account, CLICKHOUSE_PASSWORD: passwords[account] };
  return {
    name: service.name,
    program: process.execPath,
    args: [...(service.nodeOptions ?? []), mainOf(places, service)],
    env: {
      ...environmentWithoutStores(),
      ...service.environment,
      // A value from the environment would put services that read different topics into one group.
      CONSUMER_GROUP: service.name,
      // The eraser waits for the commits of these consumer groups. A group is named like its service.
      LINKER_GROUP: 'identity-linker',
      WRITER_GROUP: 'event-writer',
      ...publicUrlsOf(ports),
      ...env,
      ...(service.signs === true ? signing : {}),
      ...login,
      ...publicPort,
      ADMIN_HOST: '127.0.0.1',
      ADMIN_PORT: new URL(admin).port,
    },
    folder: places.checkout,
    logFile: logFileOf(places, service.name),
    isReady: () => assertReady(admin),
    readyDeadlineMs: 60_000,
    stopBy: 'SIGTERM',
    // A service allows itself 25 s to drain, and then ends by itself.
    stopDeadlineMs: 26_000,
  };
}
