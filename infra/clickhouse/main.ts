// Creates or updates the database configured by environment variables.
import { clickhouseSettings, parseConfig, toClickHouse } from '@playline/runtime';
import { explainConnection } from '@playline/stores';
import { z } from 'zod';
import { applySql } from './apply.ts';

try {
  const target = toClickHouse(parseConfig(z.object(clickhouseSettings), process.env));
  const { database } = target;
  const applied = await applySql(target);
  console.log(`database ${database}: ${applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  const { message: explanation, isRefusal } = explainConnection('ClickHouse', error);
  if (isRefusal) console.error(explanation);
  process.exitCode = 1;
}
