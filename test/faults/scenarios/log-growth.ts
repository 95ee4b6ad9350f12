import { TOPICS } from '@playline/contracts';
import { endsOf } from '../world/end-check.ts';
import type { World } from '../world/world.ts';

/** How many message records the log has ever been given; asks the broker itself, whatever the wire does. */
export async function countRecords(world: World): Promise<number> {
  const ends = await endsOf(world, TOPICS.messages.name);
  return [...ends.values()].reduce((sum, end) => sum + end, 0);
}
