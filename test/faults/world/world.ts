import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ACCESS_KEYS, createKey } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { applySql } from '@playline/infra/clickhouse';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { claimPorts, type Stack, stackPathsOf, startStack, sweepStacks } from '@playline/infra/local';
import { openRedisPeople } from '@playline/people/redis';
import { openLogReader } from '@playline/stream/kafka';
import { Redis } from 'ioredis';
import { SMALL_BLOCKS } from '../small-blocks.ts';
import { type Engine, query } from './clickhouse.ts';
import { openServiceProcess, type ServiceName, type ServiceProcess } from './service-process.ts';
import { type Store, type StoreProxies, startProxies } from './store-proxy.ts';
import { waitFor } from './wait.ts';

export type PortPool = Awaited<ReturnType<typeof openPortPool>>;

const PORTS = 36;

// Reserves ports below the ephemeral range, because an ephemeral port could be reassigned during an outage.
async function openPortPool(folder: string) {
  const names = Array.from({ length: PORTS }, (_, index) => `faults-${index}`);
  const { ports, guard } = await claimPorts(names, { paths: stackPathsOf(join(folder, 'ports')), environment: {} });
  const free = Object.values(ports);
  return {
    take: () => {
      const port = free.shift();
      if (port === undefined) throw new Error(`all ${PORTS} reserved ports are in use`);
      return port;
    },
    release: (port: number) => void free.push(port),
    close: () => guard.close(),
  };
}

/** All services share a pepper, because they must compute the same identity keys. */
const PEPPER = randomBytes(32).toString('hex');

/** Returns a service's settings. The service uses proxies for all stores, except for Kafka with several brokers. */
export function environmentOf(
  service: ServiceName,
  { stack, proxies, deployment }: { stack: Stack; proxies: StoreProxies; deployment: Deployment },
): Record<string, string> {
  const through = (address: string, port: number) => address.replace(/:\d+(?=\/|$)/, `:${port}`);
  const { engine, topicPrefix } = deployment;
  return {
    LOG_LEVEL: 'info',
    KAFKA_BROKERS: stack.kafkaFront === null ? stack.file.kafka.join(',') : `127.0.0.1:${proxies.kafka.port}`,
    SCHEMA_REGISTRY_URL: through(stack.file.registry, proxies.registry.port),
    REDIS_URL: through(stack.file.redis, proxies.redis.port),
    CLICKHOUSE_URL: through(engine.url, proxies.clickhouse.port),
    CLICKHOUSE_USER: engine.user,
    CLICKHOUSE_PASSWORD: engine.password,
    CLICKHOUSE_DATABASE: engine.database,
    IDENTITY_PEPPER: PEPPER,
    TOPIC_PREFIX: topicPrefix,
    CONSUMER_GROUP: groupOf(service, deployment),
    // Short, so that a killed or frozen member is soon replaced, but long enough for heartbeats on a busy machine.
    SESSION_TIMEOUT_MS: '2000',
    // Small blocks, so that faults often occur between the intent, the insert and the commit.
    BLOCK_AGE_MAX_MS: '100',
    ...SMALL_BLOCKS,
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
    // Rate limits would hide the effects of store faults.
    RATE_LIMIT_MESSAGES_PER_S: '200000',
    RATE_LIMIT_BURST: '10000000',
  };
}

const groupOf = (service: ServiceName, deployment: Deployment): string => `${deployment.topicPrefix}${service}`;

/** Topics, tables and access keys that all seeds share until a seed fails. */
type Deployment = Awaited<ReturnType<typeof openDeployment>>;

const PARTITIONS = 3;

type MakeTables = (engine: Engine) => Promise<unknown>;

async function openDeployment(stack: Stack, makeTables: MakeTables = applySql) {
  const name = randomBytes(4).toString('hex');
  const { kafka, registry, redis, clickhouse } = stack.file;
  const engine = { ...clickhouse, database: `playline_test_${name}` };
  const topics = { brokers: kafka, registry, prefix: `test-${name}.`, partitions: PARTITIONS };
  const keys = await openRedisRecords(ACCESS_KEYS, { url: redis });
  const people = await openRedisPeople({ url: redis });
  await Promise.all([
    applyTopics(topics),
    makeTables(engine),
    waitFor('the key store is ready', () => keys.ready()),
    waitFor('the epoch is created', () => people.rebuild.mintEpoch()),
  ]);
  await people.close();
  return {
    topicPrefix: topics.prefix,
    engine,
    /** Creates an access key for an environment. @returns the key */
    addEnvironment: async (environmentId: string, kind: 'publishable' | 'secret' = 'publishable') => {
      const project = { projectId: 'test-faults', environment: 'production' } as const;
      const owner = { ...project, environmentId, kind };
      return (await createKey({ store: createUnloggedStore(keys), prefix: 'svcapik' }, owner)).key;
    },
    disconnect: () => keys.close(),
    close: async () => {
      await keys.close();
      // The next deployment has new topics and tables, and must not find the persons of this deployment in Redis.
      const client = new Redis(redis);
      await client.flushall();
      client.disconnect();
      await query({ ...engine, database: 'system' }, `DROP DATABASE IF EXISTS ${engine.database} SYNC`);
      await dropTopics(topics);
    },
  };
}

export interface ServiceCounts {
  linkers: number;
  writers: number;
}

const portIn = (address: string) => Number(/:(\d+)(?:\/|$)/.exec(address.replace(/^\w+:\/\//, ''))?.[1]);

function portOf(stack: Stack, store: Store): number {
  if (store === 'kafka') return stack.kafkaFront ?? 0;
  if (store === 'redis') return Number(new URL(stack.file.redis).port);
  return portIn(store === 'clickhouse' ? stack.file.clickhouse.url : stack.file.registry);
}

interface Parts {
  readonly stack: Stack;
  readonly proxies: StoreProxies;
  readonly deployment: Deployment;
  readonly folder: string;
  readonly ports: PortPool;
  readonly makeTables: MakeTables | undefined;
}

export class World {
  readonly stack: Stack;
  readonly proxies: StoreProxies;
  readonly folder: string;
  /** Reads the log directly, not through the proxy. */
  readonly log;
  deployment: Deployment;
  readonly #parts: Parts;
  readonly #processes = new Set<ServiceProcess>();
  #services: ServiceProcess[] = [];
  #started = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.stack = parts.stack;
    this.proxies = parts.proxies;
    this.folder = parts.folder;
    this.deployment = parts.deployment;
    this.log = openLogReader({ brokers: parts.stack.file.kafka, clientId: 'faults' });
  }

  async start(service: ServiceName, settings: Record<string, string> = {}): Promise<ServiceProcess> {
    const name = `${service}-${++this.#started}`;
    const environment = { ...environmentOf(service, this), ...settings };
    const logFile = join(this.folder, 'logs', `${name}.log`);
    const pool = this.#parts.ports;
    const ports = { http: pool.take(), admin: pool.take() };
    const child = await openServiceProcess({ service, name, environment, logFile, ports });
    this.#processes.add(child);
    void child.exited.then(() => {
      this.#processes.delete(child);
      for (const port of Object.values(ports)) pool.release(port);
    });
    return child;
  }

  /** Starts or stops service processes until the counts match. Resolves when all services are ready. */
  async setServices({ linkers, writers }: ServiceCounts): Promise<readonly ServiceProcess[]> {
    const kept: ServiceProcess[] = [];
    const ended: ServiceProcess[] = [];
    for (const [service, count] of [['identity-linker', linkers] as const, ['event-writer', writers] as const]) {
      const alive = this.#services.filter((child) => child.service === service && child.isAlive);
      kept.push(...alive.slice(0, count));
      ended.push(...alive.slice(count));
      for (let missing = count - alive.length; missing > 0; missing--) kept.push(await this.start(service));
    }
    this.#services = kept;
    await Promise.all([...kept.map((child) => child.whenReady()), ...ended.map((child) => child.close())]);
    return kept;
  }

  groupOf(service: ServiceName): string {
    return groupOf(service, this.deployment);
  }

  /** Returns a store's process id. Waits while the stack restarts the store. */
  storePid(name: Store | `kafka-${number}`): Promise<number> {
    return waitFor(`${name} has a process`, () => this.stack.file.processes[name] ?? null);
  }

  brokerPid(id: number): Promise<number> {
    return this.storePid(id === 1 ? 'kafka' : `kafka-${id}`);
  }

  async #closeProcesses(): Promise<void> {
    await this.proxies.openAll();
    await Promise.all([...this.#processes].map((child) => child.close()));
    this.#services = [];
  }

  async renew(): Promise<void> {
    await this.#closeProcesses();
    await this.deployment.close();
    this.deployment = await openDeployment(this.stack, this.#parts.makeTables);
  }

  async close(): Promise<void> {
    await this.#closeProcesses();
    await this.log.close();
    await this.deployment.disconnect();
    await this.proxies.close();
    await this.stack.stop();
    this.#parts.ports.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface WorldOptions {
  report?: (line: string) => void;
  /** Number of brokers; default: 1. With several brokers, services connect to Kafka without a proxy. */
  brokers?: number;
  /** Default: applies the SQL files in sequence. */
  makeTables?: MakeTables;
}

export async function openWorld({ report = () => {}, brokers = 1, makeTables }: WorldOptions = {}): Promise<World> {
  const parent = join(stackPathsOf().state, 'test');
  mkdirSync(parent, { recursive: true });
  await sweepStacks(stackPathsOf, parent);
  const folder = mkdtempSync(join(parent, 'faults-'));
  let stack: Stack | null = null;
  const ports = await openPortPool(folder);
  const proxies = await startProxies(ports, (store) => (stack === null ? 0 : portOf(stack, store)));
  try {
    const kafka = brokers === 1 ? { kafkaFrontPort: proxies.kafka.port } : { kafkaBrokers: brokers };
    stack = await startStack({ directory: folder, services: [], report, ...kafka });
    const deployment = await openDeployment(stack, makeTables);
    return new World({ stack, proxies, ports, folder, deployment, makeTables });
  } catch (error) {
    await stack?.stop();
    await proxies.close();
    ports.close();
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
