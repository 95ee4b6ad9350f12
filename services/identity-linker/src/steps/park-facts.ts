import { type Applied, type createGraphFact, namedBy } from '@playline/people';
import type { BatchPosition } from '@playline/stream';
import { createByAssignment } from '../by-assignment.ts';
import type { LinkerParts } from '../linker-parts.ts';
import type { DecodedBatch } from './decode-batch.ts';
import { createParkedFacts, type ParkedFact } from './parked-facts.ts';
import { createPublish } from './publish.ts';

/** Takes the facts that wait for an erasure. */
export interface ParkFacts {
  /**
   * Resolves when every round under way has ended. The batch may hold copies of facts that went round, and its commit passes
   * the facts that they are copies of.
   */
  park(batch: DecodedBatch, applied: readonly Applied[], position: BatchPosition): Promise<void>;
  /** Lowest offset of a fact that waits; null when none does. It must not be committed. */
  firstWaiting(position: BatchPosition): number | null;
}

type ToGraphFact = ReturnType<typeof createGraphFact>;

/** Creates the step that parks facts, apart for each assignment of a partition. */
export function createParkFacts(parts: LinkerParts, toGraphFact: ToGraphFact): ParkFacts {
  const { parkedTopic, parkedPace: pace } = parts;
  const publish = createPublish(parts.producer);
  const parked = createByAssignment(({ signal, workEnded: onLeft }: BatchPosition) =>
    createParkedFacts({ publish, parkedTopic, signal, onLeft, pace }),
  );
  return {
    async park({ found }, applied, position) {
      const own = parked.of(position);
      own.add(toParked(found, applied, toGraphFact));
      await own.settled();
    },
    firstWaiting: (position) => parked.of(position).firstWaiting(),
  };
}

function toParked(found: DecodedBatch['found'], applied: readonly Applied[], toGraphFact: ToGraphFact): ParkedFact[] {
  return applied.flatMap((one, at) => {
    if (one.kind !== 'parked') return [];
    const { fact, record, offset } = found[at]!;
    const person = `${fact.environmentId} ${one.person.toString('hex')}`;
    return [{ person, record, keys: namedBy(toGraphFact(fact, offset)) }];
  });
}
