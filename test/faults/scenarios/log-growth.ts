import { TOPICS } from '@playline/contracts';
import { endsOf } from '../world/end-check.ts';
import type { World } from '../world/world.ts';

/** Number of message records that the log has ever received. Queries the broker directly, not through the wire. */
export async function countRecords(world: World): Promise<number> {
  const ends = await endsOf(world, TOPICS.messages.name);
  return [...ends.values()].reduce((sum, end) => sum + end, 0);
}
