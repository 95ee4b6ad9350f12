import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type ClickHouseNode, clickhouseSpec, clickhouseSpecs, DATABASE } from '../../local/clickhouse.ts';
import { keepRunning } from '../../local/keeper.ts';
import { stackPathsOf } from '../../local/paths.ts';
import { freePorts } from '../../local/ports.ts';
import { loadSecrets, type Secrets } from '../../local/secrets.ts';
import { applySql } from '../apply.ts';

/** The name of the clusters that the test's nodes know. */
export const CLUSTER = 'playline_1';

export interface NodesOptions {
  /** Number of nodes. With one node, there is no cluster. Default: 1. */
  readonly nodes?: number;
  /** Port of the native protocol of a single node. */
  readonly nativePort?: number;
  /** Numbers of nodes of the clusters `playline_<number>` that the nodes know. No tables are created. */
  readonly clusters?: readonly number[];
}

/** ClickHouse nodes with all tables and with the accounts in users.xml. The first node is the home. */
export interface Nodes {
  readonly urls: readonly string[];
  readonly cluster: string | undefined;
  readonly secrets: Secrets;
  readonly secretsFile: string;
  readonly logFile: string;
  /** Sends a signal to a node. A node that was killed is started again. */
  signal(index: number, signal: NodeJS.Signals): void;
  close(): Promise<void>;
}

export async function openNodes({ nodes: count = 1, nativePort, clusters }: NodesOptions = {}): Promise<Nodes> {
  const parent = join(stackPathsOf().state, 'test');
  mkdirSync(parent, { recursive: true });
  const paths = stackPathsOf(mkdtempSync(join(parent, 'clickhouse-')));
  const ports = await freePorts(2 * count);
  const nodes = Array.from({ length: count }, (_, index): ClickHouseNode => {
    return { port: ports[2 * index]!, nativePort: ports[2 * index + 1]! };
  });
  const secrets = loadSecrets(paths);
  const single = { port: ports[0]!, secrets, ...(nativePort !== undefined && { nativePort }) };
  const cluster = count === 1 ? undefined : CLUSTER;
  const known = clusters?.map((size) => ({ name: `playline_${size}`, nodes: nodes.slice(0, size) }));
  const specs =
    cluster === undefined
      ? [clickhouseSpec(paths, single)]
      : clickhouseSpecs(paths, nodes, { clusters: known ?? [{ name: cluster, nodes }], secrets });
  const pids = new Map<string, number | null>();
  const events = {
    onPid: (name: string, pid: number | null) => void pids.set(name, pid),
    onExit: () => {},
    onRecovery: () => {},
  };
  const keepers = specs.map((spec) => keepRunning(spec, events));
  const close = async () => {
    await Promise.all(keepers.map((keeper) => keeper.stop()));
    rmSync(paths.state, { recursive: true, force: true });
  };
  const urls = nodes.map(({ port }) => `http://127.0.0.1:${port}`);
  const operator = { user: 'operator', password: secrets.operatorPassword, database: DATABASE };
  try {
    await Promise.all(keepers.map((keeper) => keeper.whenReady()));
    const create = async (url: string, index: number) =>
      applySql({ url, ...operator, ...(cluster !== undefined && { node: { cluster, isHome: index === 0 } }) });
    if (clusters === undefined) await Promise.all(urls.map(create));
  } catch (error) {
    await close();
    throw error;
  }
  const signal = (index: number, name: NodeJS.Signals) => {
    const pid = pids.get(specs[index]!.name);
    if (pid != null) process.kill(pid, name);
  };
  return {
    urls,
    cluster,
    secrets,
    secretsFile: join(paths.state, 'secrets.json'),
    logFile: specs[0]!.logFile,
    signal,
    close,
  };
}
