import { fileURLToPath } from 'node:url';
import { type HttpProcess, openHttpProcess, testStores } from '@playline/testkit';
import { CHAIN, OTHER_CHAIN } from './open-chain-api.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

export interface ChainApiProcess extends HttpProcess {
  /** `path` is relative to `/v1/chains`. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  notReady(): Promise<readonly string[]>;
}

/** @param environment store connections and other settings, which override the test defaults */
export async function openProcess(environment: Readonly<Record<string, string>>): Promise<ChainApiProcess> {
  const opened = await openHttpProcess(MAIN, {
    CHAINS: JSON.stringify([CHAIN, OTHER_CHAIN]),
    CURSOR_KEYS: `1=${'ab'.repeat(32)}`,
    KAFKA_BROKERS: testStores().kafka.join(','),
    SCHEMA_REGISTRY_URL: testStores().registry,
    ...environment,
  });
  return {
    ...opened,
    get: (path, headers = {}) => fetch(`${opened.url}/v1/chains${path}`, { headers }),
    notReady: async () => {
      const response = await fetch(`${opened.adminUrl}/readyz`);
      const { notReady = [] } = (await response.json()) as { notReady?: string[] };
      return notReady;
    },
  };
}
