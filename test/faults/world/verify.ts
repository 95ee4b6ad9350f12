import { operate } from './operate.ts';
import type { World } from './world.ts';

/** Runs the operator's `verify`. @throws Error with its table unless it ends with 0 and nothing was stored twice */
export async function verify(world: World): Promise<void> {
  const { code, stdout, stderr } = await operate(world, ['verify', '--group', world.groupOf('event-writer')], {
    settings: { REDIS_URL: world.stack.file.redis },
  });
  if (code !== 0 || stdout.includes('more than one raw row'))
    throw new Error(`verify ended with ${code}:\n${stdout}${stderr}`);
}
