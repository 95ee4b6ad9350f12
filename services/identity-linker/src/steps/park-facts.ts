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
   * Parks the facts of a batch that wait. Resolves when every running round has ended: the batch may contain copies
   * from such a round, and its commit passes the originals.
   */
  park(batch: DecodedBatch, applied: readonly Applied[], position: BatchPosition): Promise<void>;
  /** Lowest offset of a waiting fact, which must not be committed; null when none waits. */
  firstWaiting(position: BatchPosition): number | null;
}

type ToGraphFact = ReturnType<typeof createGraphFact>;

/** Creates the step that parks facts, separately for each assignment of a partition. */
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
