import { insideAddresses, type StackAddresses, securedAddresses } from './addresses.ts';
import { openChildrenFile } from './children.ts';
import { clickhouseSpec } from './clickhouse.ts';
import { demoKeysPath, deployClickHouse, deployKafka, loadDemoKeys, readDemoKeys } from './deployment.ts';
import { type FileWatch, openFileWatch } from './file-watch.ts';
import { brokerName, kafkaSpec } from './kafka.ts';
import { type Death, type Keeper, keepRunning, type ProcessSpec } from './keeper.ts';
import { type Places, placesOf } from './places.ts';
import { claimPorts, type PortGuard } from './ports.ts';
import { provideStores } from './provide.ts';
import { redisSpec } from './redis.ts';
import { REGISTRY_PROBE, registrySpec } from './registry.ts';
import { loadSecrets, type Secrets } from './secrets.ts';
import { type Account, createSecurity, type StackSecurity, securitySettings } from './security.ts';
import {
  assertServicesExist,
  portNamesOf,
  SERVICES,
  type ServiceEntry,
  type ServiceName,
  serviceSpec,
} from './services.ts';
import { removeStackFile, type StackFile, writeStackFile } from './stack-file.ts';
import { tlsRelaySpec } from './tls-relays.ts';

export interface StackOptions {
  /** The stack's own folder: its data, logs and records. Two stacks never share one. */
  directory?: string;
  /** All of them unless named; with none of them the stack is the four stores, without topics, tables or keys. */
  services?: readonly ServiceName[];
  /** Further settings for the services, by the names they have in the environment. */
  settings?: Record<string, string>;
  /** Told of progress, in words for people. */
  say?: (line: string) => void;
  /** Told of each process that exited by itself and is about to be started again. */
  onDeath?: (death: Death) => void;
  /**
   * Opens a second listener of Kafka whose clients are told to go to this port of loopback: whoever listens there stands
   * between them and the broker, as tests that cut the two off from each other do.
   */
  kafkaFrontPort?: number;
  /** Stores that want TLS, by an authority of the stack's own, and a login, as managed ones do; in the clear otherwise. */
  security?: boolean;
  /** Brokers of Kafka, for tests of what happens among several; one unless it says otherwise. */
  kafkaBrokers?: number;
  /** Ends a start that is under way. */
  signal?: AbortSignal;
}

export interface Stack {
  readonly places: Places;
  /** Addresses, keys and process ids as they are now. */
  readonly file: StackFile;
  /** Addresses of the stores without TLS, also in a stack that has it: for what is measured or changed beside it. */
  readonly inside: StackAddresses;
  /** Port of Kafka's second listener; null without `kafkaFrontPort`. */
  readonly kafkaFront: number | null;
  /** Drains and stops the services, then the stores; a second call waits for the first. */
  stop(): Promise<void>;
}

const brokersOf = ({ kafkaBrokers = 1 }: StackOptions): string[] =>
  Array.from({ length: kafkaBrokers }, (_, index) => brokerName(index + 1));

const STORE_PORTS = ['kafka', 'controller', 'registry', 'redis', 'clickhouse'] as const;
/** Where clients go instead in a stack with TLS. */
const SECURED_PORTS = ['kafka-secured', 'registry-secured', 'redis-secured', 'clickhouse-secured'] as const;

class RunningStack implements Stack {
  readonly places: Places;
  file: StackFile;
  private readonly options: StackOptions;
  private readonly ports: Record<string, number>;
  private readonly guard: PortGuard;
  private readonly secrets: Secrets;
  private readonly security: StackSecurity | null;
  private readonly children: ReturnType<typeof openChildrenFile>;
  private readonly stores: Keeper[] = [];
  private readonly services: Keeper[] = [];
  private stopping: Promise<void> | null = null;
  private isWritten = false;
  private keysWatch: FileWatch | null = null;

  constructor(places: Places, options: StackOptions, claimed: { ports: Record<string, number>; guard: PortGuard }) {
    this.places = places;
    this.options = options;
    this.ports = claimed.ports;
    this.guard = claimed.guard;
    this.secrets = loadSecrets(places);
    this.security = options.security === true ? createSecurity(places, this.secrets) : null;
    this.children = openChildrenFile(places);
    const { inside, security } = this;
    const addresses =
      security === null ? inside : securedAddresses(inside, { port: (name) => this.port(name), security });
    this.file = { ...addresses, processes: {} };
  }

  get inside(): StackAddresses {
    const { secrets, security } = this;
    return insideAddresses({ port: (name) => this.port(name), brokers: brokersOf(this.options), secrets, security });
  }

  get kafkaFront(): number | null {
    return this.options.kafkaFrontPort === undefined ? null : this.port('kafka-front');
  }

  private port(name: string): number {
    const port = this.ports[name];
    if (port === undefined) throw new Error(`no port was claimed for ${name}`);
    return port;
  }

  private keep(group: Keeper[], spec: ProcessSpec): Keeper {
    if (this.stopping !== null) throw new Error('the stack is being stopped');
    const keeper = keepRunning(spec, {
      onPid: (name, pid) => {
        this.children.set(name, pid);
        const { [name]: _, ...others } = this.file.processes;
        this.file = { ...this.file, processes: pid === null ? others : { ...others, [name]: pid } };
        if (this.isWritten) this.writeFile();
      },
      onDeath: (death) => this.options.onDeath?.(death),
      onRecovery: (name) => this.say(`${name} is ready again`),
    });
    group.push(keeper);
    return keeper;
  }

  private say(line: string): void {
    this.options.say?.(line);
  }

  /** The one writer of the stack file: the operator's key commands change `keys.json`, and this follows. */
  private writeFile(): void {
    const keys = this.file.keys === undefined ? null : readDemoKeys(this.places);
    if (keys !== null) this.file = { ...this.file, keys };
    writeStackFile(this.places, this.file);
  }

  private async readyOf(keeper: Keeper): Promise<void> {
    await keeper.whenReady();
    this.say(`${keeper.name} is ready`);
  }

  /** All four at once: none needs another to start. */
  private async startStores(): Promise<{
    kafka: Promise<void>;
    registry: Promise<void>;
    redis: Promise<void>;
    clickhouse: Promise<void>;
  }> {
    const { places, secrets, security } = this;
    const java = await provideStores(places, (line) => this.say(line));
    const { kafkaFront } = this;
    const advertisedPort = this.options.kafkaFrontPort;
    const front = kafkaFront === null || advertisedPort === undefined ? null : { port: kafkaFront, advertisedPort };
    const names = brokersOf(this.options);
    const brokers = names.map((name, index) => {
      const ports = {
        ...{ kafka: this.port(name), controller: this.port('controller'), front: index === 0 ? front : null },
        secured: security === null ? null : this.port('kafka-secured'),
      };
      return kafkaSpec(places, { java, ports, member: { id: index + 1, of: names.length }, security });
    });
    this.say('starting kafka, registry, redis, clickhouse');
    const secured = security === null ? null : { port: this.port('redis-secured'), security };
    // The slowest first.
    const start = (spec: ProcessSpec) => this.readyOf(this.keep(this.stores, spec));
    const started = {
      kafka: Promise.all(brokers.map(async (spec) => start(await spec))).then(() => {}),
      registry: start(registrySpec(places, { java, port: this.port('registry') })),
      redis: start(redisSpec(places, { port: this.port('redis'), password: secrets.redisPassword, secured })),
      clickhouse: start(clickhouseSpec(places, { port: this.port('clickhouse'), secrets })),
    };
    return security === null ? started : this.secure(started, security);
  }

  /** The stores that speak no TLS here, behind processes that do. */
  private secure<T extends Record<'registry' | 'clickhouse', Promise<void>>>(started: T, security: StackSecurity): T {
    const relay = (store: 'registry' | 'clickhouse', { login, probe }: { login: Account | null; probe: string }) => {
      const ports = { listen: this.port(`${store}-secured`), target: this.port(store) };
      const spec = tlsRelaySpec(this.places, { name: `${store}-relay`, ports, security, login, probe });
      return Promise.all([started[store], this.readyOf(this.keep(this.stores, spec))]).then(() => {});
    };
    return {
      ...started,
      registry: relay('registry', { login: security.registry, probe: REGISTRY_PROBE }),
      clickhouse: relay('clickhouse', { login: null, probe: '/ping' }),
    };
  }

  /** What every service is told; the writer's account, not the operator's. */
  private serviceEnv(): Record<string, string> {
    const { file, secrets } = this;
    return {
      KAFKA_BROKERS: file.kafka.join(','),
      SCHEMA_REGISTRY_URL: file.registry,
      REDIS_URL: file.redis,
      CLICKHOUSE_URL: file.clickhouse.url,
      CLICKHOUSE_USER: 'writer',
      CLICKHOUSE_PASSWORD: secrets.writerPassword,
      CLICKHOUSE_DATABASE: file.clickhouse.database,
      IDENTITY_PEPPER: secrets.identityPepper,
      ...(this.security === null ? {} : securitySettings(this.security)),
      ...this.options.settings,
    };
  }

  private async startServices(services: readonly ServiceEntry[]): Promise<void> {
    this.say(`starting ${services.map((service) => service.name).join(', ')}`);
    const setting = { ports: this.ports, env: this.serviceEnv() };
    for (const { name, address } of services)
      if (address !== undefined) this.file = { ...this.file, [address]: `http://127.0.0.1:${this.port(name)}` };
    const specs = services.map((service) => serviceSpec(this.places, service, setting));
    await Promise.all(specs.map((spec) => this.readyOf(this.keep(this.services, spec))));
  }

  async start(services: readonly ServiceEntry[]): Promise<void> {
    const { places } = this;
    const stores = await this.startStores();
    const env = this.serviceEnv();
    const deploy = async () => {
      if (services.length === 0) return;
      const { user, password } = this.file.clickhouse;
      const topics = Promise.all([stores.kafka, stores.registry]).then(() => deployKafka(places, env));
      const keys = Promise.all([stores.redis, topics]).then(() => loadDemoKeys(places, env));
      const asOperator = { ...env, CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password };
      const tables = stores.clickhouse.then(() => deployClickHouse(places, asOperator));
      await Promise.all([
        keys.then(() => this.say('the demo keys are there')),
        topics.then(() => this.say('topics and schemas are there')),
        tables.then(() => this.say('tables and views are there')),
      ]);
      this.file = { ...this.file, keys: await keys };
    };
    await Promise.all([...Object.values(stores), deploy()]);
    if (services.length > 0) await this.startServices(services);
    this.isWritten = true;
    this.writeFile();
    if (this.file.keys !== undefined) {
      this.keysWatch = openFileWatch(demoKeysPath(places), () => this.writeFile());
    }
  }

  stop(): Promise<void> {
    this.stopping ??= this.stopAll();
    return this.stopping;
  }

  private async stopAll(): Promise<void> {
    if (this.services.length > 0) this.say('draining the services');
    await Promise.all(this.services.map((keeper) => keeper.stop()));
    if (this.stores.length > 0) this.say('stopping the stores');
    await Promise.all(this.stores.map((keeper) => keeper.stop()));
    this.isWritten = false;
    this.keysWatch?.close();
    removeStackFile(this.places);
    this.children.close();
    this.guard.close();
  }
}

/**
 * Starts a complete stack of real stores and services in a folder of its own, on ports of its own; resolves when every
 * process is ready. The processes are children of the caller, who must call `stop`.
 * @throws Error naming what failed, with the last lines of its log; everything started before it is stopped again
 */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const places = placesOf(options.directory);
  const services = SERVICES.filter((service) => options.services?.includes(service.name) ?? true);
  assertServicesExist(places, services);
  const front = options.kafkaFrontPort === undefined ? [] : ['kafka-front'];
  if (options.security === true && options.kafkaBrokers !== undefined && options.kafkaBrokers > 1)
    throw new RangeError('security: the listener with TLS is made for one broker');
  const secured = options.security === true ? SECURED_PORTS : [];
  const names = [...STORE_PORTS, ...secured, ...brokersOf(options).slice(1), ...front, ...portNamesOf(services)];
  // Ports that the environment names belong to the stack that people start; a test's stack finds its own.
  const environment = options.directory === undefined ? process.env : {};
  const stack = new RunningStack(places, options, await claimPorts(names, { places, environment }));
  const abort = () => void stack.stop();
  options.signal?.addEventListener('abort', abort);
  try {
    await stack.start(services);
  } catch (error) {
    await stack.stop();
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', abort);
  }
  return stack;
}
