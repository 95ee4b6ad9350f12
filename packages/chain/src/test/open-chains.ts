import { randomBytes } from 'node:crypto';
import type { ClickHouseTarget } from '@playline/errors';
import { applySql } from '@playline/infra/clickhouse';
import { testStores } from '@playline/testkit';
import { openActivityStore, openChainStore } from '../clickhouse/index.ts';
import { createMemoryChain } from '../memory/index.ts';
import { type ActivityStore, CHAIN_TABLES, type ChainStore } from '../store.ts';

/** Both sides of a store under test. */
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
  /** Asks the database. @throws Error with the words of ClickHouse */
  query(sql: string): Promise<string>;
}

/** A database of its own with every table, in which nothing is merged: what was written twice stands twice. */
export async function openClickHouseTestChain(): Promise<ClickHouseTestChain> {
  const { url, user, password } = testStores().clickhouse;
  const database = `playline_test_${randomBytes(6).toString('hex')}`;
  const target = { url, user, password, database };
  await applySql(target);
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
  const query = async (body: string) => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    const words = await answer.text();
    if (!answer.ok) throw new Error(words);
    return words.trim();
  };
  for (const table of CHAIN_TABLES) await query(`SYSTEM STOP MERGES ${table}`);
  const activities = openActivityStore(target);
  const reader = openChainStore(target);
  return {
    ...{ activities, reader, target, query },
    async close() {
      await activities.close();
      await reader.close();
      await query(`DROP DATABASE ${database} SYNC`);
    },
  };
}
