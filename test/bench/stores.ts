import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startStack } from '@playline/infra/local';

/** Addresses of the stores that figures are taken on; the same shape as `PLAYLINE_TEST_STORES`. */
export interface BenchStores {
  kafka: string[];
  redis: string;
  clickhouse: { url: string; user: string; password: string };
  registry: string;
}

/** The stores of a run: those that `PLAYLINE_TEST_STORES` names, else a local stack of this run's own. */
export async function openStores(): Promise<BenchStores & { close(): Promise<void> }> {
  const given = process.env.PLAYLINE_TEST_STORES;
  if (given !== undefined && given !== '') return { ...(JSON.parse(given) as BenchStores), close: async () => {} };
  const directory = mkdtempSync(join(tmpdir(), 'playline-bench-'));
  const stack = await startStack({ directory, services: [], say: (line) => console.error(line) });
  const close = async () => {
    await stack.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  const { kafka, redis, clickhouse, registry } = stack.file;
  return { kafka, redis, clickhouse, registry, close };
}
