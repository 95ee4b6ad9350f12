import type { IdentityLinkRecord } from '@playline/contracts';
import { createGraphFact, namedBy } from '@playline/people';
import type { BatchHandler, BatchPosition } from '@playline/stream';
import { type ByAssignment, createByAssignment } from './by-assignment.ts';
import type { LinkerParts } from './linker-parts.ts';
import { createDecodeBatch, type Found, tellDeadLetters } from './steps/decode-batch.ts';
import { createParkedPlace, type ParkedPlace, type PlacedFact } from './steps/parked-place.ts';
import { createPublish } from './steps/publish.ts';
import { isLeftMark } from './steps/waiting-fact.ts';

const STORY_END_MS = 60_000;

/** The handler of the parked place, and how many facts wait there in the partitions that are ours. */
export interface ParkedFlow {
  readonly handler: BatchHandler;
  count(): number;
}

/**
 * Facts whose erasure takes long: they stand uncommitted on a topic of their own until nobody holds them any more, and go back
 * to the topic of links then.
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
      ...{ guards: people.guards, publish, linkTopic, signal, pace: placePace },
      onLeft: workEnded,
      // Looked again every second: what fails again within a minute is the same story.
      onFault: (error) => {
        const isNew = performance.now() - failedAt > STORY_END_MS;
        failedAt = performance.now();
        if (isNew) parts.logger.warn({ error, topic, partition }, 'facts that wait for erasures are not looked after');
      },
    });
  });
}

function createToPlaced({ rules }: LinkerParts): (found: Found) => PlacedFact {
  const toGraphFact = createGraphFact(rules);
  const toKeys = (fact: IdentityLinkRecord, offset: number) =>
    namedBy(toGraphFact(fact, offset)).map((key) => key.toString('hex'));
  return ({ fact, offset, record }) => ({
    ...{ record, environmentId: fact.environmentId, receivedAt: fact.receivedAt },
    ...{ messageId: fact.messageId.toString('hex'), keys: [...new Set(toKeys(fact, offset))] },
  });
}
