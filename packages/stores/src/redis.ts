import { createHash } from 'node:crypto';
import { Cluster, ReplyError, Redis as Server } from 'ioredis';
import { createReconnectPace } from './connection-faults.ts';
import { pause, type TlsOptions } from './store-fetch.ts';

/** A client of one server or of a cluster. */
export type Redis = Server | Cluster;

export interface RedisClientOptions {
  /** `redis://[user]:password@host:port`. Nodes of a cluster and sentinels are separated by commas after the `@`. */
  url: string;
  /** The addresses are nodes of a Redis Cluster. */
  cluster?: boolean;
  /** The addresses are sentinels, which know the current primary by this name. */
  sentinel?: string;
  /** TLS options for `rediss://` URLs. */
  tls?: TlsOptions;
  /** Called with every connection fault. The client reconnects automatically. */
  onFault?: (fault: Error) => void;
}

export interface RedisAdapterOptions extends RedisClientOptions {
  /** Prefix of all keys, used by tests. */
  namespace?: string;
  /**
   * Number of hash tags over which identities are distributed. 0 uses the names of a single server, which a cluster
   * cannot store.
   */
  cells?: number;
}

/** The name of a key family. The braces keep the keys whose names start with it in one slot of a cluster. */
export function toFamily({ namespace = '', cells = 0 }: Partial<RedisAdapterOptions>, name: string): string {
  return `${namespace}${cells > 0 ? `{${name}}` : name}`;
}

export interface RedisLimits {
  readonly connectMaxMs?: number;
  readonly reconnectMaxMs?: number;
  readonly commandTimeoutMs?: number;
  /** Replaces a connection that receives nothing for this long while a command is pending. */
  readonly silenceMaxMs?: number;
  readonly enableAutoPipelining?: boolean;
}

export interface RedisConnection {
  readonly redis: Redis;
  /** Resolves when Redis is connected or the first attempt has failed. Never rejects. */
  readonly opened: Promise<void>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Connects in the background. While Redis is unavailable, commands fail. Commands are never queued or resent. */
export function openRedis(options: RedisClientOptions, limits: RedisLimits = {}): RedisConnection {
  const pace = createReconnectPace('Redis', limits.reconnectMaxMs ?? 500);
  const onFault = (fault: Error) => {
    pace.recordFault(fault);
    options.onFault?.(fault);
  };
  const redis = options.cluster ? openCluster(options, limits, pace.waitMs) : openServer(options, limits, pace.waitMs);
  // Without a listener, ioredis prints every failed attempt.
  redis.on('error', onFault);
  if (redis instanceof Cluster) redis.on('node error', onFault).on('+node', readBeforeTimeout);
  else readBeforeTimeout(redis);
  const timer = redis instanceof Cluster ? pollSlots(redis) : undefined;
  return {
    redis,
    opened: connect(redis).catch(() => {}),
    ready: async () => redis.status === 'ready' && (await respond(redis)),
    close: async () => {
      clearInterval(timer);
      redis.disconnect();
    },
  };
}

/**
 * Replaces a connection only if no response has arrived. A process that was busy for longer than the limit finds its timer
 * expired before it reads the responses of this time.
 */
function readBeforeTimeout(redis: Server): void {
  redis.on('connect', () => {
    const { stream } = redis;
    const destroy = stream.destroy.bind(stream);
    stream.destroy = (fault) => {
      if (fault?.message.startsWith('Socket timeout') !== true) return destroy(fault);
      const { bytesRead } = stream;
      setImmediate(() => {
        if (stream.bytesRead === bytesRead) destroy(fault);
      });
      return stream;
    };
  });
}

type RetryStrategy = ReturnType<typeof createReconnectPace>['waitMs'];

const CONNECT_MAX_MS = 2_000;
/** Five seconds for connecting to a node, reading the slots, and connecting to the primaries. */
const CLUSTER_ATTEMPTS = 50;
const CLUSTER_PAUSE_MS = 100;

/** A suspended server may have been replaced. Longer than any script. */
const SERVER_SILENCE_MAX_MS = 10_000;

function openServer({ url, tls, sentinel }: RedisClientOptions, limits: RedisLimits, retryStrategy: RetryStrategy) {
  const server = toServerOptions(tls, { silenceMaxMs: SERVER_SILENCE_MAX_MS, ...limits });
  const options = { ...server, enableOfflineQueue: false, retryStrategy };
  const enableAutoPipelining = limits.enableAutoPipelining ?? false;
  if (sentinel === undefined) return new Server(url, { ...options, enableAutoPipelining });
  const { nodes, login } = parseAddresses(url);
  const sentinels = {
    sentinels: nodes,
    name: sentinel,
    sentinelRetryStrategy: retryStrategy,
    ...(login.username !== undefined && { sentinelUsername: login.username }),
    ...(login.password !== undefined && { sentinelPassword: login.password }),
    ...(tls !== undefined && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
  };
  return new Server({ ...options, ...login, ...sentinels, enableAutoPipelining });
}

/** A suspended node responds to nothing. Its replica replaces it within three seconds. */
const NODE_SILENCE_MAX_MS = 3_000;
/** How long a replaced node may receive commands. A suspended node does not redirect them. */
const SLOTS_MAX_AGE_MS = 500;
/** A suspended node may be the one from which the slots are read. */
const SLOTS_READ_MAX_MS = 1_000;

function openCluster({ url, tls }: RedisClientOptions, limits: RedisLimits, retryStrategy: RetryStrategy) {
  const { nodes, login } = parseAddresses(url);
  const server = toServerOptions(tls, { silenceMaxMs: NODE_SILENCE_MAX_MS, ...limits });
  const cluster = new Cluster(nodes, {
    redisOptions: { ...server, ...login },
    // Commands wait only for a slot that is being moved. A command whose connection has failed may have been executed.
    enableOfflineQueue: false,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshInterval: 0,
    slotsRefreshTimeout: SLOTS_READ_MAX_MS,
    clusterRetryStrategy: retryStrategy,
    // Certificates contain host names.
    dnsLookup: (host, callback) => callback(null, host),
    lazyConnect: true,
  });
  // Nodes connect at their first command, and further commands would fail until then.
  cluster.on('+node', (node: Server) => {
    if (node.options.readOnly !== true) node.connect().catch(() => {});
  });
  return cluster;
}

/** Replaces the client's own timer, which continues after a disconnect during a read and keeps the process running. */
const pollSlots = (cluster: Cluster): NodeJS.Timeout =>
  setInterval(() => {
    if (cluster.status === 'ready') cluster.refreshSlotsCache();
  }, SLOTS_MAX_AGE_MS);

function toServerOptions(tls: TlsOptions | undefined, limits: RedisLimits) {
  const { connectMaxMs = CONNECT_MAX_MS, commandTimeoutMs, silenceMaxMs } = limits;
  return {
    // TLS is enabled if this option is present.
    ...(tls !== undefined && { tls }),
    ...(commandTimeoutMs !== undefined && { commandTimeout: commandTimeoutMs }),
    ...(silenceMaxMs !== undefined && { socketTimeout: silenceMaxMs }),
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectMaxMs,
    // The address of a managed primary leads to another server after a failover.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
    lazyConnect: true,
  };
}

/** Splits a URL with several addresses. All have the same login. */
function parseAddresses(url: string) {
  const [, start = '', hosts = ''] = /^(rediss?:\/\/(?:[^@/]*@)?)([^/?]+)/.exec(url) ?? [];
  const addresses = hosts.split(',').map((host) => new URL(start + host));
  const { username, password } = addresses[0]!;
  return {
    nodes: addresses.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 6379),
    })),
    login: {
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
    },
  };
}

async function connect(redis: Redis): Promise<void> {
  if (!(redis instanceof Cluster)) return redis.connect();
  // The client's promise is never settled if most primaries are down during the first attempt.
  redis.connect().catch(() => {});
  // Counted instead of timed: a process that loads modules for seconds notices its time limits before its responses.
  for (let attempt = 0; attempt < CLUSTER_ATTEMPTS; attempt++) {
    if (redis.status === 'ready' && (await respondAll(redis))) return;
    await pause(CLUSTER_PAUSE_MS);
  }
}

const respondAll = async (redis: Redis): Promise<boolean> => {
  const replies = await Promise.allSettled(primariesOf(redis).map((node) => node.ping()));
  return replies.every(({ status }) => status === 'fulfilled');
};

/** Whether a server responds. In a cluster, other nodes serve their data while a node is unavailable. */
const respond = (redis: Redis): Promise<boolean> =>
  Promise.any(primariesOf(redis).map((node) => node.ping())).then((reply) => reply === 'PONG');

/** The nodes of a cluster that own slots, or the only server. */
export const primariesOf = (redis: Redis): readonly Server[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis];

/** All nodes of a cluster, or the only server. */
export const nodesOf = (redis: Redis): readonly Server[] => (redis instanceof Cluster ? redis.nodes() : [redis]);

/** A script that is declared as writing but writes nothing. */
const MAY_WRITE = '#!lua\nreturn 1';

/** @throws ReplyError if a primary rejects writes: full, disk error, read-only replica, or too few replicas */
export async function assertTakesWrites(redis: Redis): Promise<void> {
  await Promise.all(primariesOf(redis).map((node) => node.eval(MAY_WRITE, 0)));
}

export const isReplyError = (fault: unknown): fault is Error => fault instanceof ReplyError;

const hashes = new Map<string, string>();

function hashOf(script: string): string {
  const cached = hashes.get(script);
  if (cached !== undefined) return cached;
  const hash = createHash('sha1').update(script).digest('hex');
  hashes.set(script, hash);
  return hash;
}

export interface ScriptCall {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

/** Runs a script by hash, or by source if the server has not cached it. The reply contains strings. */
export function runScript(redis: Redis, call: ScriptCall): Promise<unknown> {
  return byHash(call, (command, args) => redis.call(command, args));
}

/** Like `runScript`, but the reply contains buffers. */
export function runScriptBuffer(redis: Redis, call: ScriptCall): Promise<unknown> {
  return byHash(call, (command, args) => redis.callBuffer(command, args));
}

async function byHash(
  { script, keys, args }: ScriptCall,
  send: (command: 'EVALSHA' | 'EVAL', args: (string | number | Buffer)[]) => Promise<unknown>,
): Promise<unknown> {
  const params = [keys.length, ...keys, ...args];
  try {
    return await send('EVALSHA', [hashOf(script), ...params]);
  } catch (fault) {
    if (!isReplyError(fault) || !fault.message.startsWith('NOSCRIPT')) throw fault;
    return send('EVAL', [script, ...params]);
  }
}

/**
 * Lua: `present_run()` identifies the current Redis process and its primary. The value changes after a restart or a
 * promotion, either of which may lose the last writes.
 */
export const PRESENT_RUN_LUA = `
local function present_run()
  local info = redis.call('INFO', 'server', 'replication')
  return string.match(info, 'run_id:(%x+)') .. ':' .. string.match(info, 'master_replid:(%x+)')
end
`;
