import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { TOPICS } from '@playline/contracts';
import { findAnvilProblem } from '../chain/anvil.ts';
import { chainSettings, signingSettings } from './chain.ts';
import { openChildrenFile } from './children.ts';
import { DATABASE } from './clickhouse.ts';
import { type Condition, removeConditions, writeConditions } from './condition.ts';
import {
  assertSameNodes,
  assertSameTopics,
  type ChainPart,
  demoKeysPath,
  deployClickHouse,
  deployKafka,
  initIdentityGraph,
  loadDemoKeys,
  openChainPart,
  readDemoKeys,
} from './deployment.ts';
import { markDroppedAccounts } from './dropped-accounts.ts';
import { installStores } from './install-stores.ts';
import { type Keeper, type KeeperEvents, keepRunning, NotReadyError, type ProcessSpec } from './keeper.ts';
import { nodeNames } from './node-names.ts';
import { type StackPaths, stackPathsOf } from './paths.ts';
import { claimPorts, type PortGuard } from './ports.ts';
import { redisAddress } from './redis.ts';
import { joinRedisCluster, redisClusterAddress } from './redis-cluster.ts';
import { registryAddress } from './registry.ts';
import { REDIS_IS_EMPTY } from './report.ts';
import { analystSettings, loadSecrets, type Secrets, signerPublicKeyOf } from './secrets.ts';
import { createSecurity, type StackSecurity, securitySettings } from './security.ts';
import {
  addressesOf,
  assertServicesExist,
  processNameOf,
  SERVICES,
  type ServiceEntry,
  serviceSpec,
  servicesFor,
} from './services.ts';
import {
  clusterSettings,
  removeStackFile,
  type StackAddresses,
  type StackFile,
  sharedSettingsOf,
  writeStackFile,
} from './stack-file.ts';
import { nodeCountsOf, portNamesFor, type Stack, type StackOptions, topicSettingsOf } from './stack-options.ts';
import { clickhouseClusterOf, redisClusterOf, type StoreName, storeNodes } from './store-nodes.ts';
import { startRelays } from './tls-relays.ts';

/** Readiness deadline of services that may wait for a rebuild of Redis. */
const WAITING_SERVICE_MS = 5_000;

type StartedStores = Record<StoreName, Promise<void>>;

const namesOf = (specs: readonly ProcessSpec[]) => specs.map(({ name }) => name);

class RunningStack implements Stack {
  readonly paths: StackPaths;
  file: StackFile;
  private readonly options: StackOptions;
  private readonly ports: Record<string, number>;
  private readonly guard: PortGuard;
  private readonly secrets: Secrets;
  private readonly security: StackSecurity | null;
  private readonly children: ReturnType<typeof openChildrenFile>;
  private readonly stores: Keeper[] = [];
  private readonly services: Keeper[] = [];
  private chain: ChainPart | null = null;
  private readonly conditions = new Map<string, Condition>();
  missing: readonly string[] = [];
  private stopping: Promise<void> | null = null;
  private isWritten = false;
  private keysWatcher: ReturnType<typeof watchFile> | null = null;

  constructor(paths: StackPaths, options: StackOptions, claimed: { ports: Record<string, number>; guard: PortGuard }) {
    this.paths = paths;
    this.options = options;
    this.ports = claimed.ports;
    this.guard = claimed.guard;
    removeConditions(paths);
    this.secrets = loadSecrets(paths);
    this.security = options.security === true ? createSecurity(paths, this.secrets) : null;
    this.children = openChildrenFile(paths);
    const settings = sharedSettingsOf({ ...process.env, ...options.settings });
    this.file = { ...this.addresses(), settings, signerPublicKey: signerPublicKeyOf(this.secrets), processes: {} };
  }

  get plaintext(): StackAddresses {
    const { operatorPassword: password, redisPassword } = this.secrets;
    const toUrl = (port: number) => `http://127.0.0.1:${port}`;
    const clickhouse = { url: toUrl(this.port('clickhouse')), user: 'operator', password, database: DATABASE };
    const shards = clickhouseClusterOf(this.nodeSetting);
    const cluster = shards && { name: shards.name, urls: shards.nodes.map(({ port }) => toUrl(port)) };
    const redis = redisClusterOf(this.nodeSetting);
    return {
      clickhouse: { ...clickhouse, ...(cluster && { cluster }) },
      ...(redis === null
        ? { redis: redisAddress(this.port('redis'), this.security?.redis ?? { password: redisPassword }) }
        : { redis: redisClusterAddress(redis), redisCells: TOPICS.identityLinks.partitions }),
      kafka: nodeNames('kafka', nodeCountsOf(this.options).kafka).map((name) => `127.0.0.1:${this.port(name)}`),
      registry: registryAddress(this.port('registry')),
    };
  }

  /** Returns the addresses for clients, which equal `plaintext` in a stack without TLS. */
  private addresses(): StackAddresses {
    if (this.security === null) return this.plaintext;
    const { caFile, kafka, redis, registry } = this.security;
    return {
      clickhouse: { ...this.plaintext.clickhouse, url: `https://127.0.0.1:${this.port('clickhouse-secured')}` },
      redis: redisAddress(this.port('redis-secured'), redis, 'rediss'),
      kafka: [`127.0.0.1:${this.port('kafka-secured')}`],
      registry: registryAddress(this.port('registry-secured'), 'https'),
      security: { caFile, kafka, registry },
    };
  }

  get kafkaFront(): number | null {
    return this.options.kafkaFrontPort === undefined ? null : this.port('kafka-front');
  }

  private get nodeSetting() {
    return { options: this.options, secrets: this.secrets, port: (name: string) => this.port(name) };
  }

  private port(name: string): number {
    const port = this.ports[name];
    if (port === undefined) throw new Error(`no port was claimed for ${name}`);
    return port;
  }

  private keep(group: Keeper[], spec: ProcessSpec): Keeper {
    if (this.stopping !== null) throw new Error('the stack is being stopped');
    const slackMs = this.options.timerSlackMs?.[group === this.stores ? 'stores' : 'services'];
    const events: KeeperEvents = {
      onPid: (name, pid) => {
        this.tryWrite(() => this.children.set(name, pid));
        const { [name]: _, ...others } = this.file.processes;
        this.file = { ...this.file, processes: pid === null ? others : { ...others, [name]: pid } };
        if (this.isWritten) this.tryWrite(() => this.writeFile());
      },
      onExit: (exit) => this.options.onExit?.(exit),
      onRecovery: (name) => this.report(`${name} is ready again`),
      onSilence: (silence) => this.options.onSilence?.(silence),
      onCondition: (condition) => {
        this.conditions.set(condition.name, condition);
        if (this.stopping !== null) return;
        this.tryWrite(() => writeConditions(this.paths, [...this.conditions.values()]));
      },
    };
    const keeper = keepRunning(spec, events, slackMs);
    group.push(keeper);
    return keeper;
  }

  /** Reports a failed write, so that processes keep running without state records, for example on a full disk. */
  private tryWrite(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.report(`cannot write process states: ${error instanceof Error ? error.message : error}`);
    }
  }

  private report(line: string): void {
    this.options.report?.(line);
  }

  /** Writes the stack file, including keys that operator commands wrote to `keys.json`. */
  private writeFile(): void {
    const keys = this.file.keys === undefined ? null : readDemoKeys(this.paths);
    if (keys !== null) this.file = { ...this.file, keys };
    writeStackFile(this.paths, this.file);
  }

  private async whenReady(keeper: Keeper): Promise<void> {
    await keeper.whenReady();
    this.report(`${keeper.name} is ready`);
  }

  private async startStores(): Promise<StartedStores> {
    const { paths, security, nodeSetting } = this;
    const { port } = nodeSetting;
    const java = await installStores(paths, (line) => this.report(line));
    const nodes = await storeNodes(paths, { java, security, ...nodeSetting });
    const cluster = redisClusterOf(nodeSetting);
    this.report(`starting ${Object.values(nodes).flatMap(namesOf).join(', ')}`);
    const start = async (spec: ProcessSpec) => this.whenReady(this.keep(this.stores, spec));
    const startAll = async (specs: readonly ProcessSpec[]) => void (await Promise.all(specs.map(start)));
    const started = {
      kafka: startAll(nodes.kafka),
      registry: startAll(nodes.registry),
      redis: startAll(nodes.redis).then(() => (cluster === null ? undefined : joinRedisCluster(cluster))),
      clickhouse: startAll(nodes.clickhouse),
    };
    return security === null ? started : startRelays(paths, started, { security, port, start });
  }

  /** Returns the settings for all services, with the ClickHouse account `writer`. */
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
      ...clusterSettings(file),
      IDENTITY_PEPPER: secrets.identityPepper,
      SIGNER_PUBLIC_KEY: signerPublicKeyOf(secrets),
      ...chainSettings(secrets, this.ports.chain),
      PORTAL_SECRET: secrets.portalSecret,
      ...(this.security === null ? {} : securitySettings(this.security)),
      ...this.options.settings,
    };
  }

  private async startServices(services: readonly ServiceEntry[], isRedisEmpty: boolean): Promise<void> {
    this.report(`starting ${services.map(processNameOf).join(', ')}`);
    const { readerPassword: reader, portalPassword: portal } = this.secrets;
    const signing = signingSettings(this.secrets);
    const analysts = analystSettings(this.secrets);
    const setting = { ports: this.ports, env: this.serviceEnv(), passwords: { reader, portal }, signing, analysts };
    this.file = { ...this.file, ...addressesOf(services, setting) };
    if (isRedisEmpty) this.missing = [...this.missing, REDIS_IS_EMPTY];
    const started = services.map(async (service) => {
      const spec = serviceSpec(this.paths, service, setting);
      const isWaiting = isRedisEmpty && service.needsIdentities === true;
      const readyDeadlineMs = isWaiting ? WAITING_SERVICE_MS : spec.readyDeadlineMs;
      try {
        await this.whenReady(this.keep(this.services, { ...spec, readyDeadlineMs }));
      } catch (error) {
        if (this.options.isLenient !== true || !(error instanceof NotReadyError)) throw error;
        if (!isWaiting) this.missing = [...this.missing, `${spec.name} is not ready: ${error.reason}.`];
      }
    });
    await Promise.all(started);
  }

  private operatorEnv(): Record<string, string> {
    const { user, password } = this.file.clickhouse;
    return { ...this.serviceEnv(), CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password };
  }

  /** Creates topics and tables. */
  private deployStores(stores: StartedStores): [topics: Promise<void>, tables: Promise<void>] {
    const { paths, options } = this;
    const isLogReady = Promise.all([stores.kafka, stores.registry]);
    const topics = isLogReady.then(() => deployKafka(paths, { ...topicSettingsOf(options), ...this.serviceEnv() }));
    const tables = stores.clickhouse.then(() => deployClickHouse(paths, this.operatorEnv()));
    return [
      topics.then(() => this.report('topics and schemas created')),
      tables.then(() => this.report('tables and views created')),
    ];
  }

  /** Creates topics, tables, keys and the identity epoch. @returns true if Redis has lost its data */
  private async deploy(stores: StartedStores): Promise<boolean> {
    const { paths } = this;
    const [env, asOperator] = [this.serviceEnv(), this.operatorEnv()];
    const [topics, tables] = this.deployStores(stores);
    const keys = Promise.all([stores.redis, topics]).then(() => loadDemoKeys(paths, env));
    const identities = Promise.all([stores.redis, topics, tables]).then(() =>
      initIdentityGraph(paths, { env: asOperator, redis: this.plaintext }),
    );
    // All promises are awaited together, so that every rejection is handled.
    const [identityState] = await Promise.all([
      identities,
      keys.then(() => this.report('demo keys created')),
      topics,
      tables,
    ]);
    this.file = { ...this.file, keys: await keys };
    return identityState === 'lost';
  }

  private async linkChain(): Promise<void> {
    if (this.chain === null) return;
    try {
      const linked = await this.chain.link({ env: this.serviceEnv(), redis: this.plaintext });
      this.file = { ...this.file, chain: linked };
    } catch (error) {
      if (this.options.isLenient !== true) throw error;
      this.missing = [...this.missing, `The demo project is not linked to the chain: ${(error as Error).message}`];
    }
  }

  async start(services: readonly ServiceEntry[]): Promise<void> {
    const stores = await this.startStores();
    if (this.options.chain === true) {
      const start = async (spec: ProcessSpec) => this.whenReady(this.keep(this.stores, spec));
      this.chain = openChainPart(this.paths, { ...this.options, port: this.port('chain'), start });
    }
    const [isRedisEmpty] = await Promise.all([
      services.length === 0 ? false : this.deploy(stores),
      ...(services.length === 0 && this.options.createsTables === true ? this.deployStores(stores) : []),
      stores.clickhouse.then(() => this.options.fillClickHouse?.(this.file.clickhouse)),
      ...Object.values(stores),
    ]);
    await (this.options.isLenient === true ? this.chain?.contracts.catch(() => {}) : this.chain?.contracts);
    if (services.length > 0) await Promise.all([this.startServices(services, isRedisEmpty), this.linkChain()]);
    this.isWritten = true;
    this.writeFile();
    if (this.file.keys !== undefined) this.keysWatcher = watchFile(demoKeysPath(this.paths), () => this.writeFile());
  }

  stop(): Promise<void> {
    this.stopping ??= this.stopAll();
    return this.stopping;
  }

  private async stopAll(): Promise<void> {
    if (this.services.length > 0) this.report('stopping the services');
    await Promise.all(this.services.map((keeper) => keeper.stop()));
    if (this.services.length > 0) await markDroppedAccounts(this.paths, this.file);
    if (this.stores.length > 0) this.report('stopping the stores');
    await this.chain?.close();
    await Promise.all(this.stores.map((keeper) => keeper.stop({ immediately: this.options.isDisposable === true })));
    this.isWritten = false;
    this.keysWatcher?.close();
    removeStackFile(this.paths);
    removeConditions(this.paths);
    this.children.close();
    this.guard.close();
  }
}

/**
 * Starts a stack of stores and services as child processes, and resolves when all are ready. The caller must call
 * `stop`.
 * @throws Error with the failed process and its last log lines, after all other processes were stopped
 */
export async function startStack(requested: StackOptions = {}): Promise<Stack> {
  const { options, missing } = withUsableChain(requested);
  const paths = stackPathsOf(options.directory);
  const services = servicesFor(options);
  assertServicesExist(paths, services);
  assertSameTopics(paths, { ...process.env, ...options.settings });
  assertSameNodes(paths, nodeCountsOf(options));
  // Configured ports are for the stack of `npm start`. Test stacks find free ports.
  const environment = options.directory === undefined ? process.env : {};
  const claimed = await claimPorts(portNamesFor(options, services), { paths, environment });
  for (const change of claimed.changes) options.report?.(change);
  const stack = new RunningStack(paths, options, claimed);
  stack.missing = missing;
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

/** Disables the chain if anvil cannot run. @throws Error if `isLenient` is not set */
function withUsableChain(options: StackOptions): { options: StackOptions; missing: readonly string[] } {
  const problem = options.chain === true ? findAnvilProblem(options.chainProgram) : null;
  if (problem === null) return { options, missing: [] };
  if (options.isLenient !== true) throw new Error(`${problem.what}. ${problem.fix}`);
  const names = (SERVICES as readonly ServiceEntry[]).filter(({ needsChain }) => needsChain === true);
  const without = names.map(({ name }) => name).join(' and ');
  const sentence = `The stack runs without the chain, ${without}: ${problem.what}. ${problem.fix}.`;
  options.report?.(sentence);
  return { options: { ...options, chain: false }, missing: [sentence] };
}

/** Polling interval, for file systems without notifications. */
const POLL_MS = 2_000;

/** Calls `onChange` when a file has changed since the last check. Folder notifications only trigger checks. */
export function watchFile(path: string, onChange: () => void): { close(): void } {
  let lastVersion = '';
  const check = () => {
    const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
    const version = stat === undefined ? '' : `${stat.ino} ${stat.mtimeNs}`;
    if (version === lastVersion) return;
    lastVersion = version;
    onChange();
  };
  const folderWatcher = watchFolder(dirname(path), check);
  const timer = setInterval(check, POLL_MS).unref();
  // Deferred, because the caller does not have the handle yet.
  const firstCheck = setImmediate(check).unref();
  return {
    close: () => {
      clearInterval(timer);
      clearImmediate(firstCheck);
      folderWatcher?.close();
    },
  };
}

/** @returns null if the system refuses, for example if no watches are left; polling still works */
function watchFolder(folder: string, onEvent: () => void): FSWatcher | null {
  try {
    return watch(folder, { persistent: false }, onEvent).on('error', () => {});
  } catch {
    return null;
  }
}
