// The Redis process of a stack, and one-off queries.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { assertTakesWrites, openRedis, type Redis, type RedisClientOptions } from '@playline/stores/redis';
import { findProgram } from './command.ts';
import type { ProcessSpec } from './keeper.ts';
import { nodeName } from './node-names.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { writePrivateFile } from './private-file.ts';
import type { Account, StackSecurity } from './security.ts';
import { storeEnvironment } from './store-environment.ts';

const MEMORY_MAX = '512mb';

/** @param account without a user name, the password of `default` */
export function redisAddress(
  port: number,
  { username = '', password }: Partial<Account> & Pick<Account, 'password'>,
  scheme: 'redis' | 'rediss' = 'redis',
): string {
  return `${scheme}://${username}:${password}@127.0.0.1:${port}`;
}

/** Short, because a paused Redis accepts connections but does not respond. */
export const SHORT_TIMEOUTS = { connectMaxMs: 1_000, commandTimeoutMs: 2_000 };

/** @throws Error if Redis refuses the login or is loading its data */
const respondsToPing = async (url: string, ca: string | null): Promise<boolean> =>
  queryRedisOnce({ url, ca, ...SHORT_TIMEOUTS }, async (client) => (await client.ping()) === 'PONG');

/** @returns why Redis is impaired, or null @throws Error if Redis does not respond */
export async function findServerFault(url: string, ca: string | null): Promise<string | null> {
  return queryRedisOnce({ url, ca, ...SHORT_TIMEOUTS }, async (client) => {
    await client.ping();
    return findWriteRefusal(client);
  });
}

/** @returns why Redis refuses writes, or null if it accepts them */
export async function findWriteRefusal(client: Redis): Promise<string | null> {
  try {
    await assertTakesWrites(client);
    return null;
  } catch (error) {
    return `it refuses writes: ${(error as Error).message}`;
  }
}

/** Connects, runs the query and disconnects. @throws Error with the reason if Redis does not respond */
export async function queryRedisOnce<T>(
  {
    url,
    cluster = false,
    ca = null,
    ...timeouts
  }: Pick<RedisClientOptions, 'url' | 'cluster'> & {
    ca?: string | null;
    connectMaxMs?: number;
    commandTimeoutMs?: number;
  },
  query: (client: Redis) => Promise<T>,
): Promise<T> {
  // The client's error only reports a closed connection.
  let connectionError: Error | null = null;
  const onFault = (error: Error) => {
    connectionError = error;
  };
  const { redis, opened, close } = openRedis({ url, cluster, ...(ca !== null && { tls: { ca } }), onFault }, timeouts);
  try {
    await opened;
    return await query(redis);
  } catch (error) {
    const isTimeout = /^(Connection is closed|Command timed out|Stream isn't writeable)/.test((error as Error).message);
    throw connectionError ?? (isTimeout ? new Error('it does not respond') : error);
  } finally {
    await close();
  }
}

const quote = (text: string) => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;

/** Returns settings for a port with TLS, and a user that replaces `default`. */
function securedLines(port: number, { caFile, server, redis }: StackSecurity): string[] {
  return [
    `tls-port ${port}`,
    `tls-cert-file ${quote(server.certificate)}`,
    `tls-key-file ${quote(server.key)}`,
    `tls-ca-cert-file ${quote(caFile)}`,
    'tls-auth-clients no',
    `user ${redis.username} on >${redis.password} ~* &* +@all`,
    'user default off',
  ];
}

export interface RedisSpecOptions {
  readonly port: number;
  readonly password: string;
  readonly secured?: { readonly port: number; readonly security: StackSecurity } | null;
  /** Null for the only server. */
  readonly clusterNode?: { readonly number: number; readonly busPort: number } | null;
}

/** Describes the distribution's redis-server on loopback, with the settings in infra/redis. */
export function redisSpec(paths: StackPaths, options: RedisSpecOptions): ProcessSpec {
  const { port, password, secured = null, clusterNode = null } = options;
  const name = nodeName('redis', clusterNode?.number ?? 1);
  const program = findProgram('redis-server');
  if (program === null) throw new Error('redis-server is not installed');
  const folder = join(paths.state, 'data', name);
  const settings = join(paths.state, 'etc', `${name}.conf`);
  const includeOf = (file: string) => `include ${quote(join(paths.checkout, 'infra', 'redis', file))}`;
  // The password is in a file, because every user can read command lines.
  const lines = [
    includeOf('redis.conf'),
    ...(clusterNode === null
      ? []
      : [includeOf('cluster.conf'), `cluster-port ${clusterNode.busPort}`, `masterauth ${password}`]),
    'bind 127.0.0.1',
    `port ${port}`,
    ...(secured === null ? [`requirepass ${password}`] : securedLines(secured.port, secured.security)),
    `dir ${quote(folder)}`,
    `maxmemory ${MEMORY_MAX}`,
    // Background task runs per second (default 10), which cause most of the load of an idle Redis.
    'hz 5',
    'daemonize no',
  ];
  writePrivateFile(settings, `${lines.join('\n')}\n`);
  // Older stacks have the settings file at this path.
  rmSync(join(folder, 'redis.conf'), { force: true });
  return {
    name,
    program,
    args: [settings],
    env: storeEnvironment(),
    folder,
    logFile: logFileOf(paths, name),
    isReady: () => {
      if (secured === null) return respondsToPing(redisAddress(port, { password }), null);
      const { redis, caFile } = secured.security;
      return respondsToPing(redisAddress(secured.port, redis, 'rediss'), readFileSync(caFile, 'utf8'));
    },
    readyDeadlineMs: 60_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 15_000,
  };
}
