import type { ClickHouseTarget } from '@playline/stores/clickhouse';
import { openOwnDatabase } from '@playline/testkit';
import { openActivityStore, openChainStore } from '../clickhouse/index.ts';
import { type ActivityStore, CHAIN_TABLES, type ChainStore } from '../store.ts';
import { createMemoryChain } from './memory/index.ts';

export interface TestChain {
  readonly activities: ActivityStore;
  readonly reader: ChainStore;
  close(): Promise<void>;
}

export async function openMemoryTestChain(): Promise<TestChain> {
  return { ...createMemoryChain(), close: async () => {} };
}

export interface ClickHouseTestChain extends TestChain {
  readonly target: ClickHouseTarget;
  query(sql: string): Promise<string>;
}

export async function openClickHouseTestChain(): Promise<ClickHouseTestChain> {
  const { target, query, close } = await openOwnDatabase();
  for (const table of CHAIN_TABLES) await query(`SYSTEM STOP MERGES ${table}`);
  const activities = openActivityStore(target);
  const reader = openChainStore(target);
  return {
    activities,
    reader,
    target,
    query,
    async close() {
      await activities.close();
      await reader.close();
      await close();
    },
  };
}
