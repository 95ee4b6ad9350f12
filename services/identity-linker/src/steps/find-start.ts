import type { LinkSourcePartition } from '@playline/people';
import type { AssignedPartition } from '@playline/stream';
import type { ApplyFacts } from './apply-facts.ts';

/** Graph and log contradict each other. Going on would skip facts, or give new facts the decisions of old ones. */
export class LogAndGraphDiffer extends Error {
  override readonly name = 'LogAndGraphDiffer';
}

/**
 * Finds the offset to read the facts of a partition from.
 * - Redis may have lost its last second, and so have applied less than is committed. The facts that it lacks are read
 *   again.
 * - Redis may have applied more than is committed. Those facts are read again too, and the recorded decisions are
 *   published.
 * - It throws when the log has lost facts that the graph has applied, or no longer has facts that the graph lacks.
 * @throws LogAndGraphDiffer, RetryableFault
 */
export async function findStart(
  facts: Pick<ApplyFacts, 'resume'>,
  source: LinkSourcePartition,
  assigned: AssignedPartition,
): Promise<number> {
  const { topic, partition, committed, logStart, isDecision, hasBatch } = assigned;
  const { applied, mark } = await facts.resume(source, assigned);
  if (mark !== null && (await hasBatch(mark)) === false)
    throw new LogAndGraphDiffer(
      `${topic}/${partition}: the log has lost facts that the identity graph has applied (up to ${applied}), so others may ` +
        `stand at their offsets. Set LINK_TOPIC_GENERATION to ${source.generation + 1} in every linker and start them again`,
    );
  // Earlier facts were skipped by an operator's decision, or decided under another generation.
  if (isDecision) return committed;
  const next = applied + 1;
  // A new generation has applied nothing, so everything that the log still has is decided again.
  const lacks = applied >= 0 && next < Math.min(logStart, committed);
  if (lacks)
    throw new LogAndGraphDiffer(
      `${topic}/${partition}: the identity graph has applied facts up to ${applied}, and the log begins at ${logStart}: what ` +
        'lies between is in neither. The graph is older than the log keeps facts: empty that Redis, then npm run rebuild',
    );
  return Math.min(committed, Math.max(next, logStart));
}
