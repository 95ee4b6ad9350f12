import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TOPICS, type Topic } from '@playline/contracts';
import { servedChainsOf } from './chain-settings.ts';
import { assertReady } from './http-probe.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type Places } from './places.ts';
import type { StackFile } from './stack-file.ts';

/** One service of the stack. */
export interface ServiceEntry {
  /** Folder under `services/`, name in `stack.json`, in logs and in `npm run logs <name>`. */
  readonly name: string;
  /** `stack.json` field of its public address; absent for a service that only reads topics. */
  readonly address?: 'gateway' | 'chainApi' | 'portal';
  /** Its account of ClickHouse, unless it is `writer`; docker-compose.yml names the same. */
  readonly account?: 'reader' | 'portal';
  /** It does nothing while Redis holds no identity graph. */
  readonly needsIdentities?: boolean;
  /** It is started where the stack has a chain. */
  readonly needsChain?: boolean;
  /** Only this service gets the keys that open sealed keys. */
  readonly signs?: boolean;
  /** Topics that its consumer group, which bears its name, reads. */
  readonly reads?: readonly Topic[];
  /** Topics that a second group of the same process reads, whose name is the service's and `-audit`. */
  readonly audits?: readonly Topic[];
  /** Options of Node besides the file; docker-compose.yml and infra/docker/Dockerfile name the same ones. */
  readonly nodeOptions?: readonly string[];
  /** What its process finds in the environment besides its settings; docker-compose.yml names the same. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Node sizes the young generation by the machine's memory, 16 MiB and more a semi-space, although what a request leaves
 * behind dies at once. Measured on the gateway under full load: 50 MiB less resident, as many events per CPU-second; on
 * the writer with a full topic before it: 70 to 100 MiB less, as many rows per CPU-second.
 */
const SMALL_YOUNG_GENERATION = '--max-semi-space-size=8';

/**
 * Of the portal, which nobody waits for in microseconds: a small young generation, full collections at 1.2 times what
 * was alive, and a heap that V8 keeps small rather than fast. Measured with ten million events, a visit of every page,
 * and fifty lookers told of 1.3 million messages: peak 242 -> 190 MiB, before anybody looked 206 -> 157, 48 -> 89
 * CPU-seconds a million messages, which fifty people who look cost and nobody else; p99 of the slowest page 124 and 272
 * ms.
 */
const SMALL_HEAP = ['--max-semi-space-size=2', '--heap-growing-percent=20', '--optimize-for-size'];

/**
 * When 85 % of the objects that one expression of the code made were alive at a collection, V8 allocates them in the
 * old generation from then on. A request that waits for the brokers looks like that. Each such object, although dead,
 * keeps its whole request alive until the next full collection: a fifth of all that was allocated was copied twice, and
 * a full collection came every 0.4 s. Without it, measured beside the same gateway with it, medians of three or four
 * windows: 1.38, 1.15 and 1.32 times the events per CPU-second at batches of 1, 20 and 100; peak 333 → 268 MiB. On
 * writer and linker it changes nothing.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';

/**
 * Full collections are rare then, so they may come sooner: at 1.6 times what was alive, not at the two to four times
 * that V8 chooses. Measured in the same way: peak 263 → 201 MiB, and 0.99, 0.99 and 1.34 times the rate; at 1.3 times
 * 198 MiB and 0.88, 0.99 and 0.71 times.
 */
const EARLY_FULL_COLLECTIONS = '--heap-growing-percent=60';

/**
 * A page of the chain API stands in buffers outside of the heap, which count for when to collect it, and the heap is so
 * small that every 28 pages were a full collection: more than half of what a page cost the process. Measured on one
 * feed, 8 readers: 2.0 -> 0.9 CPU-ms a page, 172 MiB resident.
 */
const LATE_FULL_COLLECTIONS = '--heap-growing-percent=400';

/**
 * Also of the chain API: what eight pages leave behind fits in a young generation of twice the size, and one thread
 * collects it without waking up others. Measured in turn with the same process without both, on an idle machine: 1.02,
 * 1.03 and 1.08 times the pages per CPU-second, and 30 MiB more resident.
 */
const COLLECTED_BY_ONE_THREAD = ['--max-semi-space-size=16', '--single-threaded-gc'];

/**
 * Of glibc's allocator: few arenas, and blocks from 128 KiB on given back to the system at once. By itself it raises
 * that bound up to 32 MiB as such blocks are freed, and keeps what request bodies and records stood in. Measured on the
 * gateway at full load, one run each: peak 359 → 333 MiB, and 7, 1 and 2 % more events per CPU-second at batches of 1,
 * 20 and 100.
 */
const FRUGAL_ALLOCATOR = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
} as const;

/** Every service of the stack; a new one is one line here. */
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
  { name: 'eraser', needsIdentities: true, reads: [TOPICS.erasures] },
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
    nodeOptions: [NO_PRETENURING, ...SMALL_HEAP],
    environment: FRUGAL_ALLOCATOR,
  },
] as const satisfies readonly ServiceEntry[];

export type ServiceName = (typeof SERVICES)[number]['name'];

/** The services of a stack: those that are asked for, or all that have what they need. */
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

/** Options of Node that a service runs with wherever it runs: what is measured or tried of it must be the same process. */
export function nodeOptionsOf(name: ServiceName): readonly string[] {
  return serviceOf(name).nodeOptions ?? [];
}

export function serviceOf(name: ServiceName): ServiceEntry {
  return SERVICES.find((each) => each.name === name) as ServiceEntry;
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
  /** Further settings of services that sign: the keys that open sealed keys. */
  signing: Readonly<Record<string, string>>;
  /** Of the accounts that only some have. */
  passwords: { readonly reader: string; readonly portal: string };
}

const mainOf = (places: Places, service: ServiceEntry) =>
  join(places.checkout, 'services', service.name, 'src', 'main.ts');

/** @throws Error naming the services that are not in the tree, before anything is started in vain */
export function assertServicesExist(places: Places, services: readonly ServiceEntry[]): void {
  const absent = services.filter((service) => !existsSync(mainOf(places, service)));
  if (absent.length > 0)
    throw new Error(`no src/main.ts in ${absent.map((service) => `services/${service.name}`).join(', ')}`);
}

/** Where stores are and who logs in, of every service and command. */
const STORE_SETTING = /^(KAFKA|REDIS|CLICKHOUSE|SCHEMA_REGISTRY)_/;

/** Whether a setting is about a store. */
export const isStoreSetting = (name: string): boolean => STORE_SETTING.test(name);

/**
 * This process's environment without addresses and logins of stores: a stack has its own, and a mixture of two would
 * not work.
 */
export function environmentWithoutStores(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isStoreSetting(name)));
}

/** Where a service's own listener is. */
function adminAddressOf(name: string, ports: Record<string, number>): string {
  return `http://127.0.0.1:${ports[`${name}-admin`]}`;
}

/** What the stack file says of services: where they answer, and what they serve there. */
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

/** Passkeys know names only: the portal answers under that of this machine. */
const hostOf = (address: ServiceEntry['address']) => (address === 'portal' ? 'localhost' : '127.0.0.1');

/** Where people reach the portal, and what it shows commands for; absent without that service. */
function publicUrlsOf(ports: Record<string, number>): Record<string, string> {
  const urls = [
    ['GATEWAY_URL', hostOf('gateway'), ports.gateway],
    ['CHAIN_API_URL', hostOf('chainApi'), ports['chain-api']],
    ['PORTAL_ORIGIN', hostOf('portal'), ports.portal],
  ] as const;
  const known = urls.filter(([, , port]) => port !== undefined);
  return Object.fromEntries(known.map(([name, host, port]) => [name, `http://${host}:${port}`]));
}

/** A service as its own process, ready when its `/readyz` says so. */
export function serviceSpec(places: Places, service: ServiceEntry, setting: ServiceSetting): ProcessSpec {
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
      // One name in the environment would put services that read different topics into one group.
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
    // A service gives itself 25 s to drain and then ends by itself.
    stopDeadlineMs: 26_000,
  };
}
