import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { redisClusterSpecs } from '@playline/infra/local';
import { Cluster, Redis } from 'ioredis';
import { testStackFolder } from './stack-folder.ts';
import { until } from './until.ts';

/** A node that tests can kill and suspend. */
export interface ClusterNode {
  readonly port: number;
  readonly client: Redis;
  /** Starts the process, unless it is running. */
  start(): Promise<void>;
  /** Kills the process. */
  kill(): Promise<void>;
  suspend(): void;
  resume(): void;
}

/** A Redis Cluster with three primaries and three replicas, for exclusive use by one test file. */
export interface TestRedisCluster {
  /** All nodes, as in REDIS_URL. */
  readonly url: string;
  readonly client: Cluster;
  readonly nodes: readonly ClusterNode[];
  /** The node that currently owns the slot of a key. */
  primaryOf(key: string): Promise<ClusterNode>;
  /** Waits for a replica in sync of the node that owns the slot of a key. */
  replicaOf(key: string): Promise<ClusterNode>;
  /** Starts to move the slot of a key to another primary. */
  startMove(key: string): Promise<SlotMove>;
  /** Starts a further node, which is not a member of the cluster yet. */
  startNode(): Promise<ClusterNode>;
  flush(): Promise<void>;
  close(): Promise<void>;
}

export async function openRedisCluster(): Promise<TestRedisCluster> {
  // Imported lazily, because most tests use one server.
  const local = await import('@playline/infra/local');
  const { freePorts, REDIS_CLUSTER_NODES, redisClusterAddress, stackPathsOf } = local;
  const folder = testStackFolder('redis-cluster');
  const password = randomBytes(8).toString('hex');
  const drawn = await freePorts(2 * REDIS_CLUSTER_NODES);
  const ports = drawn.slice(REDIS_CLUSTER_NODES);
  const addresses = { ports, busPorts: drawn.slice(0, REDIS_CLUSTER_NODES), password };
  const paths = stackPathsOf(folder);
  const nodes = local
    .redisClusterSpecs(paths, addresses)
    .map((spec, at) => toNode(spec, { port: ports[at]!, password }));
  await Promise.all(nodes.map((node) => node.start()));
  await local.joinRedisCluster(addresses);
  const client = new Cluster(
    ports.map((port) => ({ port, host: '127.0.0.1' })),
    { redisOptions: { password }, slotsRefreshInterval: 250, retryDelayOnFailover: 100 },
  );
  client.on('error', () => {});
  await until('the cluster is ready', async () => client.status === 'ready');
  return {
    url: redisClusterAddress({ ports, password }),
    client,
    nodes,
    ...createTopology(client, nodes),
    async startNode() {
      const [busPort = 0, port = 0] = await freePorts(2);
      addresses.ports.push(port);
      addresses.busPorts.push(busPort);
      const node = toNode(local.redisClusterSpecs(paths, addresses).at(-1)!, { port, password });
      nodes.push(node);
      await node.start();
      return node;
    },
    async close() {
      client.disconnect();
      for (const node of nodes) node.client.disconnect();
      await Promise.all(nodes.map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

type NodeSpec = ReturnType<typeof redisClusterSpecs>[number];

function toNode(spec: NodeSpec, { port, password }: { port: number; password: string }): ClusterNode {
  const client = new Redis({ port, password, lazyConnect: true, retryStrategy: () => 50 });
  client.on('error', () => {});
  let child: ChildProcess | null = null;
  return {
    port,
    client,
    async start() {
      if (child !== null && child.exitCode === null && child.signalCode === null) return;
      mkdirSync(spec.folder, { recursive: true });
      mkdirSync(dirname(spec.logFile), { recursive: true });
      const log = openSync(spec.logFile, 'a');
      const args = typeof spec.args === 'function' ? spec.args() : spec.args;
      child = spawn(spec.program, args, { cwd: spec.folder, env: spec.env, stdio: ['ignore', log, log] });
      closeSync(log);
      await until(`node ${port} is ready`, () => spec.isReady().catch(() => false));
      if (client.status === 'wait') await client.connect();
    },
    async kill() {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    suspend: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
  };
}

/** A slot that two primaries have in part. */
export interface SlotMove {
  move(keys: readonly (string | Buffer)[]): Promise<void>;
  /** Moves the remaining keys. */
  finish(): Promise<void>;
}

type SlotRange = [first: number, last: number, ...nodes: [host: string, port: number, id: string][]];

function createTopology(client: Cluster, nodes: readonly ClusterNode[]) {
  const nodesOf = async (key: string) => {
    const slot = Number(await client.cluster('KEYSLOT', key));
    // A suspended node does not respond.
    const reply = await Promise.any(nodes.map((node) => node.client.call('CLUSTER', 'SLOTS') as Promise<SlotRange[]>));
    const found = reply.find(([first, last]) => first <= slot && slot <= last);
    if (found === undefined) throw new Error(`slot ${slot} has no node`);
    const [, , ...owners] = found;
    return { slot, owners: owners.map(([, port]) => nodes.find((node) => node.port === port)!) };
  };
  const primaryOf = async (key: string) => (await nodesOf(key)).owners[0]!;
  return {
    primaryOf,
    replicaOf: (key: string): Promise<ClusterNode> =>
      until(`the slot of ${key} has a replica in sync`, async () => {
        const [, replica] = (await nodesOf(key)).owners;
        const [, , , link] = (await replica?.client.role()) ?? [];
        return link === 'connected' ? replica : null;
      }),
    async startMove(key: string): Promise<SlotMove> {
      const { slot, owners } = await nodesOf(key);
      const source = owners[0]!;
      const primaries: ClusterNode[] = [];
      for (const node of nodes) if ((await node.client.role())[0] === 'master') primaries.push(node);
      const target = primaries.find((node) => node !== source)!;
      const [sourceId, targetId] = await Promise.all(
        [source, target].map(async (node) => String(await node.client.call('CLUSTER', 'MYID'))),
      );
      await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId!);
      await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId!);
      const move = async (keys: readonly (string | Buffer)[]) => {
        const login = ['AUTH', source.client.options.password!];
        await source.client.call('MIGRATE', '127.0.0.1', target.port, '', 0, 5_000, ...login, 'KEYS', ...keys);
      };
      return {
        move,
        async finish() {
          for (;;) {
            const keys = (await source.client.callBuffer('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as Buffer[];
            if (keys.length === 0) break;
            await move(keys);
          }
          const others = primaries.filter((node) => node !== target && node !== source);
          for (const node of [target, source, ...others])
            await node.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId!);
        },
      };
    },
    async flush() {
      for (const node of nodes) if ((await node.client.role())[0] === 'master') await node.client.flushall();
    },
  };
}
