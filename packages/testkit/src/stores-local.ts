import { rmSync } from 'node:fs';
import { placesOf, startStack, sweepStacks } from '@playline/infra/local';
import { parentOfStacks, testStackFolder } from './stack-folder.ts';
import type { Stores } from './stores.ts';

/**
 * Starts the four stores as processes on free ports with fresh data; what earlier runs left behind is ended first.
 * @throws Error that says what to install when the machine lacks something
 */
export async function startLocalStores(): Promise<{ stores: Stores; stop(): Promise<void> }> {
  await sweepStacks(placesOf, parentOfStacks());
  const directory = testStackFolder('run');
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const say = (line: string) => console.error(`stores: ${line}`);
  const stack = await startStack({ directory, services: [], say }).catch((error) => {
    remove();
    throw error;
  });
  const { kafka, redis, clickhouse, registry } = stack.file;
  const { url, user, password } = clickhouse;
  return {
    stores: { kafka, redis, clickhouse: { url, user, password }, registry },
    async stop() {
      await stack.stop();
      remove();
    },
  };
}
