import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from '../paths.ts';
import { endStack } from '../supervisor.ts';

/** `npm run down`: drains and stops everything; the data stays. */
export async function down(places: StackPaths): Promise<number> {
  console.log((await endStack(places)) ?? 'nothing of this checkout is running');
  return 0;
}

/** The data, and what is useless without it: secrets and keys. Downloads, logs and ports stay. */
const DATA = ['data', 'etc', 'secrets.json', 'keys.json', 'topics.json', 'chain.json'];

/** `npm run reset`: stops everything and removes the data. */
export async function reset(places: StackPaths): Promise<number> {
  await down(places);
  for (const name of DATA) rmSync(join(places.state, name), { recursive: true, force: true });
  console.log('the data is removed; the next start begins with empty stores and new keys');
  return 0;
}
