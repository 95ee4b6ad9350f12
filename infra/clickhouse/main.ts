import { applySql } from './apply.ts';

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set`);
  return value;
};

try {
  const database = setting('CLICKHOUSE_DATABASE');
  const applied = await applySql({
    url: setting('CLICKHOUSE_URL'),
    user: setting('CLICKHOUSE_USER'),
    password: process.env.CLICKHOUSE_PASSWORD ?? '',
    database,
  });
  console.log(`database ${database}: ${applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
