import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { placesOf, startStack, sweepStacks } from '@playline/infra/local';
import type { Stores } from './stores.ts';

/** Folder of all stacks that tests start, inside the checkout's own state. */
const parent = () => join(placesOf().state, 'test');

/** A fresh folder for one test's stack; `prefix` tells in a listing whose it is. */
export function testStackFolder(prefix: string): string {
  mkdirSync(parent(), { recursive: true });
  return mkdtempSync(join(parent(), `${prefix}-`));
}

/**
 * Starts the four stores as processes on free ports with fresh data; what earlier runs left behind is ended first.
 * @throws Error that says what to install when the machine lacks something
 */
export async function startLocalStores(): Promise<{ stores: Stores; stop(): Promise<void> }> {
  await sweepStacks(placesOf, parent());
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
