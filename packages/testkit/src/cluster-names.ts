import { toPartition } from '@playline/stores';
import type { Cluster, Redis } from 'ioredis';

/** Hash tags of mints (`packages/mints/src/redis`). */
const MINT_TAGS = 64;
/** Names that already contain the hash tag of a cluster. */
const HAS_TAG = /\{[cm]\d+[/}]|\{(access|alerts)\b/;
/** Families with one hash tag each. */
const FAMILY = /(access:(?!one-time)[\w-]+|alerts)(?=:|$)/;
const TAGGED_FAMILY = /\{(access:[\w-]+|alerts)\}/;
const MINT_OF_PROJECT = /mint:([\w-]+):([^:]*)$/;
/** Keys that every cell of the people store has. */
const OF_CELL = /(identity:epoch|f:complete|erasure:lapsing|identity:applied|c:log)(:[^{}]*)?$/;
/** Keys of an environment in the people store. */
const OF_ENVIRONMENT = /^(.*?[a-z]{1,2}):\{([^}]*)\}(.*)$/s;

/** Names in a cluster with this number of cells, for a name in a single server. */
export function toClusterNames(name: string, cells: number): string[] {
  if (HAS_TAG.test(name)) return [name];
  if (FAMILY.test(name)) return [name.replace(FAMILY, '{$1}')];
  const [mint, family, projectId = ''] = MINT_OF_PROJECT.exec(name) ?? [];
  if (mint !== undefined)
    return [name.replace(mint, `mint:${family}:{m${toPartition(Buffer.from(projectId), MINT_TAGS)}}:${projectId}`)];
  if (name === 'mint:complete') return Array.from({ length: MINT_TAGS }, (_, group) => `${name}:{m${group}}`);
  const [whole, start, environmentId = '', rest] = OF_ENVIRONMENT.exec(name) ?? [];
  if (whole !== undefined)
    return [`${start}:{c${toPartition(Buffer.from(environmentId), cells)}/${cells}}:${environmentId}${rest}`];
  const [, base, topic = ''] = OF_CELL.exec(name) ?? [];
  if (base === undefined) return [name];
  const prefix = name.slice(0, name.length - base.length - topic.length);
  return Array.from({ length: cells }, (_, cell) => `${prefix}${base}:{c${cell}/${cells}}${topic}`);
}

type Key = string | Buffer;

/**
 * A client for tests that use the key names of a single server. Sends a command to the key with this name in the
 * cluster. If there is one such key for each cell, their replies are equal, and the first is returned, or null if one of them is null.
 */
export function openRenamingClient(cluster: Cluster, cells: number): Redis {
  const toKeys = (name: Key) =>
    toClusterNames(name.toString('latin1'), cells).map((each) => Buffer.from(each, 'latin1'));
  const send = async (command: string, name: Key, args: unknown[]) => {
    const isBuffer = command.endsWith('Buffer');
    const bare = isBuffer ? command.slice(0, -'Buffer'.length) : command;
    const calls = toKeys(name).map((key): Promise<unknown> => {
      const rest = args.flat().map((arg) => (typeof arg === 'object' ? (arg as Buffer) : String(arg)));
      return isBuffer ? cluster.callBuffer(bare, key, ...rest) : cluster.call(bare, key, ...rest);
    });
    const replies = await Promise.all(calls);
    return replies.includes(null) ? null : replies[0];
  };
  const primaries = () => cluster.nodes('master');
  const special: Record<string, (...args: never[]) => unknown> = {
    keys: async (pattern: string) => {
      const names = (await Promise.all(primaries().map((node) => node.keys(pattern)))).flat();
      return names.map((name) => name.replace(TAGGED_FAMILY, '$1'));
    },
    // Keys of several slots cannot be deleted by one command.
    del: async (...names: Key[]) => (await Promise.all(names.flat().map((name) => send('del', name, [])))).length,
    callBuffer: (command: string, name: Key, ...args: unknown[]) => send(`${command}Buffer`, name, args),
    hgetall: async (name: Key) => cluster.hgetall(toKeys(name)[0]!),
    flushdb: async () => void (await Promise.all(primaries().map((node) => node.flushdb()))),
    disconnect: () => {},
  };
  return new Proxy({} as Redis, {
    get: (_target, command: string) =>
      command === 'then'
        ? undefined
        : (special[command] ?? ((name: Key, ...args: unknown[]) => send(command, name, args))),
  });
}

/** Deletes all keys that match a pattern, on every primary. */
export async function deleteKeys(client: Redis | Cluster, match: string): Promise<void> {
  for (const node of 'nodes' in client ? client.nodes('master') : [client])
    for await (const names of node.scanBufferStream({ match, count: 1_000 }))
      await Promise.all((names as Buffer[]).map((name) => node.unlink(name)));
}
