import { openMemoryPeople } from '@playline/people/memory';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createBench, LINKS } from './test/linker-bench.ts';
import { type fromDecision, openLines, toFact, toOutgoing, withOutcomes } from './test/linking.ts';

it('the linker pauses a partition whose log has lost applied facts', async () => {
  const bench = await createBench();
  const { logger, lines } = openLines('error');
  // Applied but not committed, as when a power failure costs the log more records than Redis.
  let kill = () => {};
  const people = withOutcomes(bench.people, ['kill after'], () => kill());
  const first = await bench.open({ people });
  kill = first.kill;
  await bench.put(['a', 'b', 'c'].map((fromId) => toOutgoing(LINKS, toFact({ fromId }))));
  const { partition } = bench.log.records(LINKS)[0]!;
  const source = { generation: 0, partition };
  await until('all facts are applied', async () => (await bench.graph.lastApplied(source)) === 2);
  bench.log.truncate(LINKS, partition, 1);
  const lost = ['new b', 'new c', 'new d'].map((fromId) => toOutgoing(LINKS, toFact({ fromId })));
  await bench.put(lost);
  const second = await bench.open({ logger });
  await until('the partition is paused', () => lines.length > 0);
  expect(second.linker.ready.consumer!()).toBe(false);
  expect(lines.join('')).toContain('LINK_TOPIC_GENERATION to 1');
  await second.linker.close();
  const third = await bench.open({ generation: 1 });
  const isDecided = ({ generation, aKey }: ReturnType<typeof fromDecision>) => (generation === 1 ? [aKey] : []);
  await until('every fact in the new log is decided', () => bench.decisions().flatMap(isDecided).length === 4);
  await third.linker.close();
});

it('the linker does not skip deleted undecided facts until an operator accepts the loss', async () => {
  const bench = await createBench();
  const put = (fromId: string) => bench.put([toOutgoing(LINKS, toFact({ fromId }))]);
  await put('a');
  const first = await bench.open();
  await until('the first fact is committed', () => bench.committed() === 1);
  await first.linker.close();
  for (const fromId of ['b', 'c', 'd']) await put(fromId);
  const { partition } = bench.log.records(LINKS)[0]!;
  bench.log.expire(LINKS, partition, 3);
  const second = await bench.open();
  await put('e');
  await until('the partition is paused', () => second.linker.ready.consumer!() === false);
  expect(bench.decisions()).toHaveLength(1);
  bench.log.decide({ topic: LINKS, partition, from: 3 });
  await until('the remaining facts are decided', () => bench.decisions().length === 3);
  expect(bench.decisions().map(({ offset }) => offset)).toEqual([0, 3, 4]);
  expect(second.linker.ready.consumer!()).toBe(true);
  await second.linker.close();
});

it('the linker pauses a partition when the graph is older than the start of the log', async () => {
  const bench = await createBench();
  const { logger, lines } = openLines('error');
  for (const fromId of ['a', 'b', 'c', 'd']) await bench.put([toOutgoing(LINKS, toFact({ fromId }))]);
  const first = await bench.open();
  await until('all facts are committed', () => bench.committed() === 4);
  await first.linker.close();
  const { partition } = bench.log.records(LINKS)[0]!;
  const restored = openMemoryPeople();
  await restored.rebuild.loadApplied({ generation: 0, partition }, 0);
  await restored.rebuild.mintEpoch();
  bench.log.expire(LINKS, partition, 3);
  const second = await bench.open({ people: restored, logger });
  await until('the partition is paused', () => lines.length > 0);
  expect(second.linker.ready.consumer!()).toBe(false);
  expect(lines.join('')).toContain('npm run rebuild');
  await second.linker.close();
});
