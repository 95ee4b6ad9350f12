import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from '../paths.ts';
import { endStack } from '../supervisor.ts';

export async function down(paths: StackPaths): Promise<number> {
  console.log((await endStack(paths)) ?? 'the stack of this checkout is not running');
  return 0;
}

/** The data, and files that are useless without it. */
const DATA = ['data', 'etc', 'secrets.json', 'keys.json', 'topics.json', 'chain.json'];

export async function reset(paths: StackPaths): Promise<number> {
  await down(paths);
  for (const name of DATA) rmSync(join(paths.state, name), { recursive: true, force: true });
  console.log('data deleted; the next start creates empty stores and new keys');
  return 0;
}
