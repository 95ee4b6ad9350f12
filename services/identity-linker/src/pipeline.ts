import type { ReadinessChecks } from '@playline/http';
import { createGraphFact } from '@playline/people';
import { type Closable, watchWrites } from '@playline/runtime';
import type { BatchHandler } from '@playline/stream';
import { createLinkerMetrics, watchWaiting } from './linker-metrics.ts';
import type { LinkerParts } from './linker-parts.ts';
import { createParkedFlow } from './parked-flow.ts';
import { openRewindingConsumer } from './rewinding-consumer.ts';
import { type ApplyFacts, createApplyFacts } from './steps/apply-facts.ts';
import { createDecideFacts } from './steps/decide-facts.ts';
import { createDecodeBatch, tellDeadLetters } from './steps/decode-batch.ts';
import { findStart } from './steps/find-start.ts';
import { createLoggedDecisions } from './steps/logged-decisions.ts';
import { createParkFacts } from './steps/park-facts.ts';

export interface Linker extends Closable {
  readonly ready: ReadinessChecks;
  /** Why partitions are stopped or wait, by `topic/partition`. */
  hindrances(): Readonly<Record<string, string>>;
}

/** A batch is trimmed and committed once. A larger one would take long to repeat after a fault. */
const BATCH_RECORDS_MAX = 4_000;

/**
 * links  -> find start -> decode -> decide and publish -> park what waits for an erasure
 * parked -> decode -> wait until nobody is held -> back to links (`parked-flow.ts`)
 *
 * The offset of a batch is committed after its last step, so a crash repeats a batch and never skips one.
 */
function createBatchHandler(parts: LinkerParts, facts: ApplyFacts): BatchHandler {
  const { generation, logger } = parts;
  const decode = createDecodeBatch(parts.schemaOf, 'link');
  const decide = createDecideFacts(parts, facts);
  const { park, firstWaiting } = createParkFacts(parts, createGraphFact(parts.rules));
  const metrics = createLinkerMetrics(parts.metrics);
  return {
    batchRecordsMax: BATCH_RECORDS_MAX,
    onAssign: (assigned) => findStart(facts, { generation, partition: assigned.partition }, assigned),
    async onBatch(records, position) {
      const batch = await decode(records);
      const applied = await decide(batch, position);
      metrics.batch(applied, batch.deadLetters.length);
      tellDeadLetters(logger, position, batch);
      await park(batch, applied, position);
    },
    unfinishedFrom: firstWaiting,
  };
}

/** Opens the linker: one consumer of links, one of the parked place. */
export async function openLinker(parts: LinkerParts): Promise<Linker> {
  const { people, producer, metrics, logger } = parts;
  watchWrites(metrics, () => people.takesWrites());
  const rewinds = metrics.counter('identity_rewinds_total', 'Times that the graph had lost facts it had applied');
  const facts = createApplyFacts(people.graph, createLoggedDecisions(parts), createGraphFact(parts.rules));
  const consumer = await openRewindingConsumer(createBatchHandler(parts, facts), {
    open: parts.openConsumer,
    hasLost: facts.hasLost,
    onRewind() {
      rewinds.inc();
      logger.error('the identity graph has lost facts that it had applied: going back to them');
    },
  });
  const parked = createParkedFlow(parts);
  watchWaiting(metrics, parked.count);
  const parkedConsumer = await parts.openParkedConsumer(parked.handler);
  return {
    ready: {
      consumer: () => consumer.ready(),
      parked: () => parkedConsumer.ready(),
      graph: () => people.ready(),
      // Queried here too: after Redis came back, the next check of the consumer may be up to a second away.
      links: async () => facts.missing().size === 0 && !(await facts.hasLost().catch(() => true)),
      broker: () => producer.ready(),
    },
    hindrances: () => {
      const missing = [...facts.missing()].map(([partition, reason]) => [`${parts.linkTopic}/${partition}`, reason]);
      return Object.fromEntries([...missing, ...consumer.hindrances(), ...parkedConsumer.hindrances()]);
    },
    close: async () => void (await Promise.all([consumer.close(), parkedConsumer.close()])),
  };
}
