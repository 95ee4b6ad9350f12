// Creates or updates the database configured by environment variables.
import { clickhouseClusterSettings, clickhouseSettings, parseConfig, toClickHouse } from '@playline/runtime';
import { explainConnection, onEachNode } from '@playline/stores';
import { z } from 'zod';
import { applySql } from './apply.ts';
import { reshard } from './reshard.ts';

const [command] = process.argv.slice(2);
const schema = z.object({
  ...clickhouseSettings,
  ...clickhouseClusterSettings,
  /** 1 for tables that several replicas have (infra/decisions/0024-clickhouse-shards.md). */
  CLICKHOUSE_REPLICATED: z.enum(['0', '1']).default('0'),
});
try {
  const config = parseConfig(schema, process.env);
  const target = { ...toClickHouse(config), isReplicated: config.CLICKHOUSE_REPLICATED === '1' };
  const { database, cluster } = target;
  const nodes = onEachNode(target);
  if (command === 'reshard') {
    if (cluster === undefined) throw new Error('CLICKHOUSE_CLUSTER and CLICKHOUSE_SHARD_URLS: missing. Set both');
    await reshard(nodes, cluster.name, console.log);
  } else
  for (const [index, node] of nodes.entries()) {
    const applied = await applySql({ ...node, ...(cluster && { node: { cluster: cluster.name, isHome: index === 0 } }) });
    const done = applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`;
    console.log(`database ${database}${cluster === undefined ? '' : ` of ${node.url}`}: ${done}`);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  const { message: explanation, isRefusal } = explainConnection('ClickHouse', error);
  if (isRefusal) console.error(explanation);
  process.exitCode = 1;
}
