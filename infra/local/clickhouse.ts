// The ClickHouse engine of a stack, with its configuration and accounts.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { respondsOk } from './http-probe.ts';
import type { ProcessSpec } from './keeper.ts';
import { nodeName } from './node-names.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { writePrivateFile } from './private-file.ts';
import type { Secrets } from './secrets.ts';
import { storeEnvironment } from './store-environment.ts';

/** The grants in users.xml depend on the prefix of this name. */
export const DATABASE = 'playline';
/** Half the memory of the smallest supported machine. Larger queries fail. */
const MEMORY_MAX_BYTES = 3_000_000_000;
const MARK_CACHE_BYTES = 256 * 1024 * 1024;
const ENGINE = join(import.meta.dirname, 'clickhouse-engine.ts');

/** Returns the path of the ClickHouse library for this machine. @throws Error if the package is not installed */
export function engineLibrary(): string {
  const platform = `${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`;
  const name = `@chdb/lib-${platform}`;
  try {
    const library = createRequire(import.meta.url)
      .resolve(`${name}/package.json`)
      .replace(/package\.json$/, 'libchdb.so');
    if (existsSync(library)) return library;
  } catch {}
  throw new Error(
    `${name} is not installed: either ClickHouse has no build for this machine, or npm skipped the optional package`,
  );
}

const xml = (text: string | number) => String(text).replace(/[<>&'"]/g, (char) => `&#${char.charCodeAt(0)};`);
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** Matches the Base64 encoding of `default:` with any password, and of `:`, which is the same account. */
const SESSION_IN_BASE64 = '(ZGVmYXVsdD[o-r]|O[g-v])[A-Za-z0-9+/=]*';

/**
 * ClickHouse accepts only requests whose headers name an account other than the engine's own session account. That
 * account has no password and could close the listeners. A `user` parameter in the URL overrides the headers; the quota
 * stops such a request.
 */
function httpHandlers(): string {
  const rule = (condition: string, handler: string) => `<rule>${condition}<handler>${handler}</handler></rule>`;
  const matchHeader = (header: string, pattern: string) => `<headers><${header}>regex:${pattern}</${header}></headers>`;
  const respondWith = (status: number, text: string) =>
    `<type>static</type><status>${status}</status><response_content>${text}&#10;</response_content>`;
  const refuse = respondWith(403, 'this account is reserved for the engine. Use another account and its password');
  const query = '<type>dynamic_query_handler</type><query_param_name>query</query_param_name>';
  return `<http_handlers>
    ${rule('<url>/ping</url>', respondWith(200, 'Ok.'))}
    ${rule(matchHeader('Authorization', `Basic ${SESSION_IN_BASE64}`), refuse)}
    ${rule(matchHeader('X-ClickHouse-User', 'default'), refuse)}
    ${rule(matchHeader('Authorization', 'Basic [A-Za-z0-9+/=]+'), query)}
    ${rule(matchHeader('X-ClickHouse-User', '.+'), query)}
  </http_handlers>`;
}

function configuration(etc: string): string {
  return `<clickhouse>
  <users_config>${xml(join(etc, 'users.xml'))}</users_config>
  <!-- clickhouse-local reads its log level from here; without a <logger>, it writes to the log of the process. -->
  <log-level>error</log-level>
  <max_server_memory_usage>${MEMORY_MAX_BYTES}</max_server_memory_usage>
  <mark_cache_size>${MARK_CACHE_BYTES}</mark_cache_size>
  <!-- By default, the memory is checked twenty times per second. -->
  <memory_worker_period_ms>250</memory_worker_period_ms>
  <asynchronous_metrics_update_period_s>60</asynchronous_metrics_update_period_s>
  <!-- A stop waits this long for idle connections. -->
  <keep_alive_timeout>10</keep_alive_timeout>
  <timezone>UTC</timezone>
  ${httpHandlers()}
</clickhouse>
`;
}

/** Log tables cause half of the load of an idle ClickHouse. This file sorts after system-logs.xml and overrides it. */
const SLOW_LOG_FLUSH = `<clickhouse>
  <query_log><flush_interval_milliseconds>60000</flush_interval_milliseconds></query_log>
  <part_log><flush_interval_milliseconds>60000</flush_interval_milliseconds></part_log>
</clickhouse>
`;

/**
 * The engine's own session account `default` cannot have a password. It has only the rights for its one statement,
 * which uses up its quota. Quotas do not cover a SELECT without a table, such as the first statement, so it is limited
 * to 1 s.
 */
const SESSION_ACCOUNT = `<clickhouse>
  <users><default>
    <no_password/><networks><ip>127.0.0.1</ip></networks><profile>session</profile><quota>one_statement</quota>
    <grants><query>GRANT SYSTEM LISTEN ON *.*</query></grants>
  </default></users>
  <profiles><session>
    <profile>default</profile><max_execution_time>1</max_execution_time><max_threads>1</max_threads>
    <constraints><max_execution_time><const/></max_execution_time><max_threads><const/></max_threads></constraints>
  </session></profiles>
  <quotas><one_statement><interval><duration>2000000000</duration><queries>1</queries></interval></one_statement></quotas>
</clickhouse>
`;

function accountEnvironment(secrets: Secrets): Record<string, string> {
  const passwords = {
    operator: secrets.operatorPassword,
    writer: secrets.writerPassword,
    reader: secrets.readerPassword,
    portal: secrets.portalPassword,
    accounts: secrets.accountsPassword,
    views: secrets.viewsPassword,
    analyst: secrets.analystPassword,
    ...secrets.analystPasswords,
  };
  const hashes = Object.entries(passwords).map(([account, password]) => [
    `CLICKHOUSE_${account.toUpperCase()}_SHA256`,
    sha256(password),
  ]);
  // The password is in plain text, because ClickHouse logs in with it to load its dictionary.
  return { ...Object.fromEntries(hashes), CLICKHOUSE_VIEWS_PASSWORD: secrets.viewsPassword };
}

/** A node of a cluster. Each node is a shard, in this order, and the first is the home of the tables without shards. */
export interface ClickHouseNode {
  readonly port: number;
  /** Port of the native protocol, which only the nodes of the cluster use. */
  readonly nativePort: number;
}

export interface ClickHouseCluster {
  /** Name of the clusters in ClickHouse. Another set of shards has another name. */
  readonly name: string;
  readonly nodes: readonly ClickHouseNode[];
}

/**
 * The clusters of infra/clickhouse/cluster.ts: the shards, all nodes as copies of each other, and the home. Nodes with
 * the secret execute queries of other nodes as the account that sent the query.
 */
function clusterConfiguration(clusters: readonly ClickHouseCluster[], secret: string): string {
  const toReplica = ({ nativePort }: ClickHouseNode) =>
    `<replica><host>127.0.0.1</host><port>${nativePort}</port></replica>`;
  const toShard = (replicas: readonly ClickHouseNode[], isReplicated: boolean) =>
    `<shard><internal_replication>${isReplicated}</internal_replication>${replicas.map(toReplica).join('')}</shard>`;
  const toCluster = (cluster: string, shards: string) => `<${cluster}><secret>${secret}</secret>${shards}</${cluster}>`;
  const toClusters = ({ name, nodes }: ClickHouseCluster) => [
    toCluster(name, nodes.map((node) => toShard([node], true)).join('')),
    toCluster(`${name}_everywhere`, toShard(nodes, false)),
    toCluster(`${name}_home`, toShard(nodes.slice(0, 1), true)),
  ];
  return `<clickhouse>
  <remote_servers>
    ${clusters.flatMap(toClusters).join('\n    ')}
  </remote_servers>
</clickhouse>
`;
}

interface ClickHouseOptions {
  readonly port: number;
  readonly secrets: Secrets;
  /** Opens the listener of the native protocol. */
  readonly nativePort?: number;
  /** The clusters that the node knows, and its position among the nodes. */
  readonly clusters?: readonly ClickHouseCluster[];
  readonly index?: number;
}

/** Describes the processes of nodes that know clusters of some or all of them. */
export function clickhouseSpecs(
  paths: StackPaths,
  nodes: readonly ClickHouseNode[],
  { clusters, secrets }: { readonly clusters: readonly ClickHouseCluster[]; readonly secrets: Secrets },
): ProcessSpec[] {
  return nodes.map((node, index) => clickhouseSpec(paths, { ...node, secrets, clusters, index }));
}

/** Describes the ClickHouse process on loopback: the library from npm with the production accounts. */
export function clickhouseSpec(paths: StackPaths, options: ClickHouseOptions): ProcessSpec {
  const { port, secrets, nativePort, clusters, index = 0 } = options;
  const name = nodeName('clickhouse', index + 1);
  const folder = join(paths.state, 'data', name);
  const etc = join(paths.state, 'etc', name);
  for (const folder of ['users.d', 'config.d']) mkdirSync(join(etc, folder), { recursive: true });
  writePrivateFile(join(etc, 'config.xml'), configuration(etc));
  const source = join(paths.checkout, 'infra', 'clickhouse');
  copyFileSync(join(source, 'users.xml'), join(etc, 'users.xml'));
  for (const name of ['system-logs.xml', 'named-collections.xml', 'caches.xml'])
    copyFileSync(join(source, name), join(etc, 'config.d', name));
  writePrivateFile(join(etc, 'config.d', 'system-pace.xml'), SLOW_LOG_FLUSH);
  writePrivateFile(join(etc, 'users.d', 'session.xml'), SESSION_ACCOUNT);
  if (clusters !== undefined) {
    writePrivateFile(join(etc, 'config.d', 'cluster.xml'), clusterConfiguration(clusters, secrets.clusterSecret));
    for (const users of ['cluster-users.xml', ...(index === 0 ? [] : ['shard-users.xml'])])
      copyFileSync(join(source, users), join(etc, 'users.d', users));
  }
  const dataFolder = join(folder, 'data');
  const flags = {
    'config-file': join(etc, 'config.xml'),
    path: dataFolder,
    listen_host: '127.0.0.1',
    http_port: String(port),
    ...(nativePort !== undefined && { tcp_port: String(nativePort) }),
    history_file: join(folder, 'history'),
    progress: '0',
  };
  return {
    name,
    program: process.execPath,
    args: [
      ENGINE,
      engineLibrary(),
      dataFolder,
      nativePort === undefined ? 'SYSTEM START LISTEN HTTP' : 'SYSTEM START LISTEN QUERIES ALL',
      '--interactive',
      '--disable_suggestion',
      ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
    ],
    env: {
      ...storeEnvironment(),
      // Prevents colours and cursor movements in the log.
      TERM: 'dumb',
      ...accountEnvironment(secrets),
    },
    folder,
    logFile: logFileOf(paths, name),
    isReady: () => respondsOk(`http://127.0.0.1:${port}/ping`),
    readyDeadlineMs: 60_000,
    stopBy: 'end-of-input',
    stopDeadlineMs: 20_000,
  };
}
