import type { IdentityGraph } from '@playline/people';
import { openMemoryIdentityGraph } from '@playline/people/memory';
import { createMemoryLog } from '@playline/stream/memory';
import { type LinkerParts, openLinker } from '../pipeline.ts';
import { createParts, fromDecision, type toOutgoing } from './linking.ts';

export const LINKS = 'links';
export const DECISIONS = 'decisions';

/** A log with facts to put in, and linkers over it that can be killed. */
export async function createBench(graph: IdentityGraph = openMemoryIdentityGraph(), epoch = true) {
  if (epoch) await graph.mintEpoch();
  const log = createMemoryLog({ partitions: 2 });
  const outside = log.openProducer();
  const producer = log.openProducer();
  const put = (records: ReturnType<typeof toOutgoing>[]) =>
    new Promise<void>((resolve, reject) => outside.send(records, (fault) => (fault ? reject(fault) : resolve())));
  const decisions = () => log.records(DECISIONS).map((record) => fromDecision(record.value));
  const committed = () => [0, 1].reduce((sum, partition) => sum + log.committed(LINKS, partition), 0);

  const open = async (over: Partial<LinkerParts> = {}) => {
    let consumer: ReturnType<typeof log.openRecordConsumer> | null = null;
    const linker = await openLinker({
      ...{ graph, producer, decisionTopic: DECISIONS, ...createParts(), ...over },
      openConsumer: async (handler) => {
        consumer = log.openRecordConsumer({ ...handler, topics: [LINKS], logger: over.logger });
        return consumer;
      },
    });
    return { linker, kill: () => consumer?.kill() };
  };
  return { graph, log, producer, put, decisions, committed, open };
}
