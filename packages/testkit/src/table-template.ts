import { applySql } from '@playline/infra/clickhouse';
import { type DatabaseTarget, toDatabaseName } from './clickhouse-target.ts';
import type { Stores } from './stores.ts';

/** Creates the database that the others of a test run are copied from. */
export async function openTableTemplate({ clickhouse }: Pick<Stores, 'clickhouse'>): Promise<DatabaseTarget> {
  const target = { ...clickhouse, database: toDatabaseName() };
  await applySql(target);
  return target;
}
