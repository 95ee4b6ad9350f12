import { type ClickHouseAccount, createQueryRows, onEachNode, readRows, selectCluster } from './clickhouse-query.ts';
import { StoreFault, toStoreFault } from './store-fault.ts';

const WRONG_CLUSTER = { kind: 'transient', code: 'WRONG_CLUSTER' } as const;

/** The tables belong to another cluster, or to other nodes, than the settings: rows would be missed, or stored again. */
export class WrongCluster extends StoreFault {
  constructor(message: string) {
    super(message, WRONG_CLUSTER);
  }
}

/** A suspended node must not delay the others. */
const CHECK_MAX_MS = 5_000;

/** Returns the name of the cluster of the tables, its number of shards, and the shard that the server is, or 0. */
const selectState = (database: string) => `WITH (SELECT any(cluster) FROM (${selectCluster(database)})) AS name
  SELECT name, uniqExact(shard_num), maxIf(shard_num, is_local) FROM system.clusters WHERE cluster = name`;

/**
 * Compares the settings of an account with the cluster of the tables.
 * @param shard index of the node to query; the home is 0
 * @throws WrongCluster if they differ; StoreFault with the same code if no tables over all nodes exist, which is also the case
 * while a cluster is created or changed; StoreFault
 */
export async function assertCluster(account: ClickHouseAccount, shard = 0): Promise<void> {
  const query = createQueryRows(onEachNode(account)[shard]!, { deadlineMs: CHECK_MAX_MS });
  const [row = []] = await readRows(query(selectState(account.database))).catch((fault: unknown) => {
    throw toStoreFault(fault);
  });
  const state = { name: String(row[0]), shards: Number(row[1]), position: Number(row[2]) };
  const mismatch = findMismatch(account, state, shard);
  if (mismatch === null) return;
  const fault = state.name === '' ? new StoreFault(mismatch, WRONG_CLUSTER) : new WrongCluster(mismatch);
  account.onFault?.(fault);
  throw fault;
}

interface ClusterState {
  readonly name: string;
  readonly shards: number;
  readonly position: number;
}

function findMismatch({ cluster }: ClickHouseAccount, { name, shards, position }: ClusterState, shard: number) {
  if (name !== (cluster?.name ?? '')) {
    const found = name === '' ? 'no cluster' : `cluster ${name}`;
    const set = cluster === undefined ? 'not set' : cluster.name;
    return `CLICKHOUSE_CLUSTER is ${set}, but the tables belong to ${found}: correct CLICKHOUSE_CLUSTER and CLICKHOUSE_SHARD_URLS`;
  }
  if (cluster === undefined) return null;
  const { length } = cluster.urls;
  if (shards !== length)
    return `CLICKHOUSE_SHARD_URLS has ${length} addresses, but cluster ${name} has ${shards} shards: set one address for each shard`;
  if (position === shard + 1) return null;
  const found = position === 0 ? 'a server that finds itself in no shard (is_local)' : `shard ${position}`;
  return `CLICKHOUSE_SHARD_URLS: address ${shard + 1} is ${found} of cluster ${name}: set the addresses in the order of the shards`;
}

export interface ClusterCheck {
  /** Compares the settings with a node. @throws as `assertCluster` */
  assert(shard: number): Promise<void>;
  /** Compares the settings with the home until they match, and again with a node that did not. @throws as `assert` */
  assertOnce(): Promise<void>;
  /** Returns whether `assertOnce` succeeds. */
  isMatching(): Promise<boolean>;
}

export function createClusterCheck(account: ClickHouseAccount): ClusterCheck {
  let unproven: number | null = 0;
  let running: Promise<void> | null = null;
  const assert = async (shard: number) => {
    try {
      await assertCluster(account, shard);
      if (unproven === shard) unproven = null;
    } catch (fault) {
      if ((fault as StoreFault).code === WRONG_CLUSTER.code) unproven = shard;
      throw fault;
    }
  };
  const assertOnce = async () => {
    if (unproven === null) return;
    running ??= assert(unproven).finally(() => {
      running = null;
    });
    await running;
  };
  const isMatching = () =>
    assertOnce().then(
      () => true,
      () => false,
    );
  return { assert, assertOnce, isMatching };
}
