import { openMemoryPeople } from '@playline/people/memory';
import type { BatchHandler } from '@playline/stream';
import { createMemoryLog, type MemoryLog } from '@playline/stream/memory';
import { onTestFinished } from 'vitest';
import { openLinker } from '../pipeline.ts';
import type { LinkerParts } from '../steps/decide-facts.ts';
import {
  type CallOutcome,
  createParts,
  fromDecision,
  producerWithOutcomes,
  type toOutgoing,
  withOutcomes,
} from './linking.ts';

export const LINKS = 'links';
export const PARKED = 'parked';
export const DECISIONS = 'decisions';

const readerOf = (log: MemoryLog): LinkerParts['log'] => ({
  bounds: async (topic) =>
    [0, 1].map((partition) => {
      const records = log.records(topic).filter((record) => record.partition === partition);
      return { partition, start: records[0]?.offset ?? 0, end: (records.at(-1)?.offset ?? -1) + 1 };
    }),
  async *read({ topic, partition, start, end }) {
    for (const record of log.records(topic))
      if (record.partition === partition && record.offset >= start && record.offset < end) yield record;
  },
});

/** Creates a log to which tests append facts, and opens linkers that tests can kill. */
export async function createBench(people = openMemoryPeople(), epoch = true) {
  if (epoch) await people.rebuild.mintEpoch();
  const log = createMemoryLog({ partitions: 2 });
  const factProducer = log.openProducer();
  const producer = log.openProducer();
  const put = (records: ReturnType<typeof toOutgoing>[]) =>
    new Promise<void>((resolve, reject) => factProducer.send(records, (fault) => (fault ? reject(fault) : resolve())));
  const decisions = () => log.records(DECISIONS).map((record) => fromDecision(record.value));
  const committed = () => [0, 1].reduce((sum, partition) => sum + log.committed(LINKS, partition), 0);
  const parkedCommitted = () => [0, 1].reduce((sum, partition) => sum + log.committed(PARKED, partition, PARKED), 0);

  const hold = (key: Buffer) => people.guards.putHold({ ...holdOf(key), keys: [key], cutoffMs: 999, lapsesAtMs: null });
  const release = (key: Buffer) => people.guards.releaseHold(holdOf(key));

  const open = async (overrides: Partial<LinkerParts> = {}) => {
    const consumers: ReturnType<typeof log.openRecordConsumer>[] = [];
    const openOf = (topic: string, groupId?: string) => async (handler: BatchHandler) => {
      const consumer = log.openRecordConsumer({ ...handler, groupId, topics: [topic], logger: overrides.logger });
      consumers.push(consumer);
      return consumer;
    };
    const topics = { linkTopic: LINKS, parkedTopic: PARKED, decisionTopic: DECISIONS };
    const linker = await openLinker({
      people,
      producer,
      log: readerOf(log),
      ...topics,
      ...createParts(),
      ...overrides,
      openConsumer: openOf(LINKS),
      openParkedConsumer: openOf(PARKED, PARKED),
    });
    const kill = () => {
      for (const consumer of consumers) consumer.kill();
      void linker.close();
    };
    // An open linker checks for lost links every second, which would disturb later tests that use fake timers.
    onTestFinished(() => linker.close());
    return { linker, kill };
  };
  const { graph } = people;
  return { people, graph, hold, release, log, producer, put, decisions, committed, parkedCommitted, open };
}

export type Bench = Awaited<ReturnType<typeof createBench>>;

/** Opens a linker whose graph calls, and optionally sends, have the given outcomes. Reopens the linker when killed. */
export async function openFaulty(
  bench: Bench,
  outcomes: CallOutcome[],
  { withProducer = false, ...parts }: Partial<LinkerParts> & { withProducer?: boolean } = {},
) {
  const restarts: Promise<void>[] = [];
  const open = () => {
    const people = withOutcomes(bench.people, outcomes, () => restart());
    const { producer } = bench;
    const faulty = withProducer ? producerWithOutcomes(producer, outcomes, () => restart()) : producer;
    return bench.open({ people, producer: faulty, ...parts });
  };
  let linker = await open();
  const restart = () => {
    linker.kill();
    restarts.push(
      open().then((next) => {
        linker = next;
      }),
    );
  };
  const close = async () => {
    await Promise.all(restarts);
    await linker.linker.close();
  };
  return { restart, close };
}

const holdOf = (key: Buffer) => ({ environmentId: 'test', erasureId: key });
