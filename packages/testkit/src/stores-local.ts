import { rmSync } from 'node:fs';
import { loadSecrets, placesOf, startStack, sweepStacks } from '@playline/infra/local';
import type { DatabaseTarget } from './clickhouse-target.ts';
import { parentOfStacks, testStackFolder } from './stack-folder.ts';
import type { Stores, TestStores } from './stores.ts';
import { openTableTemplate } from './table-template.ts';

/**
 * Starts the four stores as processes on free ports with fresh data, and makes the template of tables while Kafka and the
 * registry still start; what earlier runs left behind is ended first.
 * @throws Error that says what to install when the machine lacks something
 */
export async function startLocalStores(): Promise<{
  stores: TestStores;
  template: DatabaseTarget;
  stop(): Promise<void>;
}> {
  await sweepStacks(placesOf, parentOfStacks());
  const directory = testStackFolder('run');
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const say = (line: string) => console.error(`stores: ${line}`);
  // A start that has ended well has filled it.
  let template!: DatabaseTarget;
  const fillClickHouse = async (clickhouse: Stores['clickhouse']) => {
    template = await openTableTemplate({ clickhouse });
  };
  const options = { directory, services: [], say, fillClickHouse, isThrownAway: true };
  const stack = await startStack(options).catch((error) => {
    remove();
    throw error;
  });
  const { kafka, redis, clickhouse, registry } = stack.file;
  const { url, user, password } = clickhouse;
  const { portalPassword, viewsPassword } = loadSecrets(placesOf(directory));
  return {
    stores: { kafka, redis, clickhouse: { url, user, password }, portalPassword, viewsPassword, registry },
    template,
    async stop() {
      await stack.stop();
      remove();
    },
  };
}
