// The nodes of a Redis Cluster: three primaries, each with a replica.
import { openRedis, type Redis } from '@playline/stores/redis';
import type { ProcessSpec } from './keeper.ts';
import type { StackPaths } from './paths.ts';
import { findWriteRefusal, queryRedisOnce, redisSpec, SHORT_TIMEOUTS } from './redis.ts';

const SLOTS = 16_384;
const PRIMARIES = 3;
export const REDIS_CLUSTER_NODES = 2 * PRIMARIES;

export interface RedisClusterNodes {
  /** A port for the clients of each node. */
  readonly ports: readonly number[];
  /** A port for the other nodes, for each node. */
  readonly busPorts: readonly number[];
  readonly password: string;
}

/** Address of all nodes, as in REDIS_URL. */
export const redisClusterAddress = ({ ports, password }: Omit<RedisClusterNodes, 'busPorts'>): string =>
  `redis://:${password}@${ports.map((port) => `127.0.0.1:${port}`).join()}`;

/** Returns the address of each node in the address of all nodes. */
export function redisNodeUrls(address: string): string[] {
  const [, start = '', hosts = ''] = /^(.*@)(.*)$/.exec(address) ?? [];
  return hosts.split(',').map((host) => start + host);
}

/** Describes the processes of the nodes. Once they are ready, `joinRedisCluster` connects them. */
export function redisClusterSpecs(paths: StackPaths, nodes: RedisClusterNodes): ProcessSpec[] {
  const { ports, busPorts, password } = nodes;
  return ports.map((port, index) =>
    redisSpec(paths, { port, password, clusterNode: { number: index + 1, busPort: busPorts[index]! } }),
  );
}

const POLL_MS = 100;
const JOIN_MAX_MS = 30_000;

/**
 * Assigns the slots to the first three nodes and makes each other node a replica of one of them. Repeats only what is
 * missing, after an interruption, and exchanges the addresses, which may have changed.
 * @throws Error if the nodes do not form a complete cluster in time
 */
export async function joinRedisCluster({ ports, busPorts, password }: RedisClusterNodes): Promise<void> {
  const urls = ports.map((port) => `redis://:${password}@127.0.0.1:${port}`);
  const connections = urls.map((url) => openRedis({ url }));
  const nodes = connections.map(({ redis }) => redis);
  try {
    await Promise.all(connections.map(({ opened }) => opened));
    await assignSlots(nodes.slice(0, PRIMARIES));
    for (const [index, port] of ports.entries())
      if (index > 0) await nodes[0]!.call('CLUSTER', 'MEET', '127.0.0.1', port, busPorts[index]!);
    const areKnown = async (node: Redis) => Number((await readInfo(node)).cluster_known_nodes) >= ports.length;
    await awaitAll(nodes, areKnown, 'the nodes do not find each other');
    await assignReplicas(nodes);
    const isComplete = async (node: Redis) =>
      (await readInfo(node)).cluster_state === 'ok' && (await isCopy(node)) && (await knowsReplicas(node));
    await awaitAll(nodes, isComplete, 'a slot has no node, or a replica has no copy');
  } finally {
    await Promise.all(connections.map(({ close }) => close()));
  }
}

/**
 * Checks a node of a cluster, which may be a primary or a replica.
 * @returns why the node is impaired, or null @throws Error if it does not respond
 */
export async function findNodeFault(url: string): Promise<string | null> {
  return queryRedisOnce({ url, ...SHORT_TIMEOUTS }, async (node) => {
    const { cluster_state: state } = await readInfo(node);
    if (state !== 'ok') return `its cluster_state is ${state}, because it does not reach most primaries`;
    const info = String(await node.call('INFO', 'replication'));
    if (info.includes('role:master')) return findWriteRefusal(node);
    return info.includes('master_link_status:up') ? null : 'it is a replica that does not reach its primary';
  });
}

async function assignSlots(primaries: readonly Redis[]): Promise<void> {
  for (const [index, node] of primaries.entries()) {
    // A node of a cluster knows all slots. A node that is being joined for the first time knows its own, if any.
    if ((await readInfo(node)).cluster_slots_assigned !== '0') continue;
    const [first, next] = [index, index + 1].map((at) => Math.ceil((at * SLOTS) / primaries.length));
    await node.call('CLUSTER', 'ADDSLOTSRANGE', first!, next! - 1);
    await node.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
  }
}

async function assignReplicas(nodes: readonly Redis[]): Promise<void> {
  const ids = await Promise.all(nodes.map(async (node) => String(await node.call('CLUSTER', 'MYID'))));
  for (const [index, node] of nodes.entries()) {
    if (index < PRIMARIES || !(await isEmptyPrimary(node))) continue;
    const primaryId = ids[index % PRIMARIES]!;
    const isKnown = async () => String(await node.call('CLUSTER', 'NODES')).includes(primaryId);
    await awaitAll([node], isKnown, 'a replica does not find its primary');
    await node.call('CLUSTER', 'REPLICATE', primaryId);
  }
}

/** Whether a node has neither slots nor a primary. */
async function isEmptyPrimary(node: Redis): Promise<boolean> {
  const lines = String(await node.call('CLUSTER', 'NODES')).split('\n');
  // Slots would follow the state at the end of the line.
  return lines.some((line) => /\bmyself,master\b.* connected$/.test(line));
}

async function readInfo(node: Redis): Promise<Record<string, string | undefined>> {
  const lines = String(await node.call('CLUSTER', 'INFO')).split('\r\n');
  return Object.fromEntries(lines.map((line) => line.split(':') as [string, string]));
}

/** Whether a replica has copied its primary. True for a primary. */
async function isCopy(node: Redis): Promise<boolean> {
  const info = String(await node.call('INFO', 'replication'));
  return info.includes('role:master') || info.includes('master_link_status:up');
}

/** Whether the node, as clients do, finds a replica of each primary. */
async function knowsReplicas(node: Redis): Promise<boolean> {
  const ranges = (await node.call('CLUSTER', 'SLOTS')) as [first: number, last: number, ...nodes: unknown[]][];
  return ranges.every(([, , ...owners]) => owners.length > 1);
}

async function awaitAll(nodes: readonly Redis[], isMet: (node: Redis) => Promise<boolean>, missing: string) {
  const deadlineMs = performance.now() + JOIN_MAX_MS;
  while (!(await Promise.all(nodes.map(isMet))).every((each) => each)) {
    if (performance.now() > deadlineMs) throw new Error(`the Redis Cluster is incomplete: ${missing}`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}
