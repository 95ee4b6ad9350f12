import type { IdentityLinkRecord } from '@playline/contracts';
import { createGraphFact, namedBy } from '@playline/people';
import type { BatchHandler, BatchPosition } from '@playline/stream';
import { type ByAssignment, createByAssignment } from './by-assignment.ts';
import type { LinkerParts } from './linker-parts.ts';
import { createDecodeBatch, type Found, tellDeadLetters } from './steps/decode-batch.ts';
import { createParkedPlace, type ParkedPlace, type PlacedFact } from './steps/parked-place.ts';
import { createPublish } from './steps/publish.ts';
import { isLeftMark } from './steps/waiting-fact.ts';

/** Faults less than this apart are one outage, which is logged once. */
const OUTAGE_GAP_MS = 60_000;

/** The handler of the parked place, and the number of facts that wait there in the partitions of this process. */
export interface ParkedFlow {
  readonly handler: BatchHandler;
  count(): number;
}

/**
 * Builds the flow of facts whose erasure takes long. They wait on a topic of their own, uncommitted, until no hold
 * delays them any more. Then they go back to the link topic.
 */
export function createParkedFlow(parts: LinkerParts): ParkedFlow {
  const decode = createDecodeBatch(parts.schemaOf, 'parked');
  const publish = createPublish(parts.producer);
  const toPlaced = createToPlaced(parts);
  const places = openPlaces(parts);
  return {
    handler: {
      async onBatch(records, position) {
        const batch = await decode(records.filter((record) => !isLeftMark(record)));
        await publish(batch.deadLetters);
        tellDeadLetters(parts.logger, position, batch);
        await places.of(position).add(batch.found.map(toPlaced));
      },
      unfinishedFrom: (position) => places.of(position).firstWaiting(),
    },
    count: () => places.all().reduce((sum, place) => sum + place.count(), 0),
  };
}

function openPlaces(parts: LinkerParts): ByAssignment<ParkedPlace> {
  const { people, producer, linkTopic, placePace } = parts;
  const publish = createPublish(producer);
  return createByAssignment(({ signal, workEnded, topic, partition }: BatchPosition) => {
    let failedAt = Number.NEGATIVE_INFINITY;
    return createParkedPlace({
      guards: people.guards,
      publish,
      linkTopic,
      signal,
      pace: placePace,
      onLeft: workEnded,
      onFault: (error) => {
        const isNew = performance.now() - failedAt > OUTAGE_GAP_MS;
        failedAt = performance.now();
        if (isNew)
          parts.logger.warn(
            { error, topic, partition },
            'facts that wait for erasures cannot be checked; they are checked again every second',
          );
      },
    });
  });
}

function createToPlaced({ rules }: LinkerParts): (found: Found) => PlacedFact {
  const toGraphFact = createGraphFact(rules);
  const toKeys = (fact: IdentityLinkRecord, offset: number) =>
    namedBy(toGraphFact(fact, offset)).map((key) => key.toString('hex'));
  return ({ fact, offset, record }) => ({
    record,
    environmentId: fact.environmentId,
    receivedAt: fact.receivedAt,
    messageId: fact.messageId.toString('hex'),
    keys: [...new Set(toKeys(fact, offset))],
  });
}
