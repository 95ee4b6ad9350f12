// Creates or updates the database configured by environment variables. With the argument `reshard`, divides its rows
// among the nodes.
import { clickhouseTableSettings, parseConfig, toClickHouse } from '@playline/runtime';
import { explainConnection, onEachNode } from '@playline/stores';
import { z } from 'zod';
import { applySql, type SqlTarget } from './apply.ts';
import { reshard } from './reshard.ts';

async function apply(targets: readonly SqlTarget[], cluster: string | undefined): Promise<void> {
  // The home is last, because its tables over all nodes need the new columns of every node.
  for (const target of targets.toReversed()) {
    const node = cluster === undefined ? {} : { node: { cluster, isHome: target === targets[0] } };
    const applied = await applySql({ ...target, ...node });
    const where = cluster === undefined ? target.database : `${target.database} of ${target.url}`;
    console.log(`database ${where}: ${applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`}`);
  }
}

try {
  const config = parseConfig(z.object(clickhouseTableSettings), process.env);
  const account = toClickHouse(config);
  const isReplicated = config.CLICKHOUSE_REPLICATED === '1';
  const targets = onEachNode(account).map((node) => ({ ...node, isReplicated }));
  if (process.argv[2] !== 'reshard') await apply(targets, account.cluster?.name);
  else if (account.cluster !== undefined) await reshard(targets, account.cluster.name, console.log);
  else throw new Error('CLICKHOUSE_CLUSTER and CLICKHOUSE_SHARD_URLS: missing. Set both');
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  const { message: explanation, isRefusal } = explainConnection('ClickHouse', error);
  if (isRefusal) console.error(explanation);
  process.exitCode = 1;
}
