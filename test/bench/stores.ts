import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type StackFile, securitySettings, startStack } from '@playline/infra/local';

export interface BenchStores {
  kafka: string[];
  redis: string;
  clickhouse: { url: string; user: string; password: string };
  registry: string;
  /** Settings for measured services that use TLS and logins. The bench itself uses neither. */
  secured?: Readonly<Record<string, string>>;
}

/**
 * Opens the stores in `PLAYLINE_TEST_STORES`, or starts a new local stack.
 * @param withTls measured services use TLS and logins
 */
export async function openStores(withTls = false): Promise<BenchStores & { close(): Promise<void> }> {
  const text = process.env.PLAYLINE_TEST_STORES;
  if (withTls && text) throw new Error('--tls starts a separate stack. Unset PLAYLINE_TEST_STORES.');
  if (text !== undefined && text !== '') return { ...(JSON.parse(text) as BenchStores), close: async () => {} };
  const directory = mkdtempSync(join(tmpdir(), 'playline-bench-'));
  const stack = await startStack({ directory, services: [], security: withTls, report: (line) => console.error(line) });
  const close = async () => {
    await stack.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  const { kafka, redis, clickhouse, registry } = stack.plaintext;
  return { kafka, redis, clickhouse, registry, ...toSecured(stack.file), close };
}

function toSecured({ security, ...file }: StackFile): Pick<BenchStores, 'secured'> {
  if (security === undefined) return {};
  const addresses = {
    KAFKA_BROKERS: file.kafka.join(','),
    REDIS_URL: file.redis,
    CLICKHOUSE_URL: file.clickhouse.url,
    SCHEMA_REGISTRY_URL: file.registry,
  };
  return { secured: { ...addresses, ...securitySettings(security) } };
}
