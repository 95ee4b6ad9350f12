import { decisionTextOf, identityLinkCodec } from '@playline/contracts';
import { createGraphFact, type IdentityGraph, toUnlinkFact } from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBench, DECISIONS, LINKS, openFaulty } from './test/linker-bench.ts';
import {
  type CallOutcome,
  createParts,
  type fromDecision,
  openLines,
  producerWithOutcomes,
  stepOf,
  toFact,
  toOutgoing,
  toText,
} from './test/linking.ts';

it('the linker publishes decisions in order, then commits, then trims the outbox', async () => {
  const bench = await createBench();
  const { linker } = await bench.open();
  await bench.put([toOutgoing(LINKS, toFact({ toKind: 'steam' })), toOutgoing(LINKS, toFact({ toId: 'null' }))]);
  await until('both facts are committed', () => bench.committed() === 2);
  expect(
    bench.decisions().map(({ offset, step, link, outcome, reason }) => [offset, step, link, outcome, reason]),
  ).toEqual([
    [0, 0, 'same_id', 'linked', ''],
    [0, 1, 'identify', 'linked', ''],
    [1, 0, 'identify', 'refused', 'blocked'],
  ]);
  expect(bench.decisions()[0]).toMatchObject({
    environmentId: 'test',
    messageId: Buffer.alloc(16, 3),
    receivedAt: 1_000,
  });
  expect(new Set(bench.log.records(DECISIONS).map(({ key }) => key?.toString()))).toEqual(new Set(['test']));

  await bench.put([toOutgoing(LINKS, toFact({ fromId: 'b' }))]);
  await until('the third fact is committed', () => bench.committed() === 3);
  const source = { generation: 0, partition: bench.log.records(LINKS)[0]!.partition };
  const toGraphFact = createGraphFact(createParts().rules);
  const facts = [0, 1, 2].map((offset) => toGraphFact(toFact({}), offset));
  const reapplied = await bench.graph.apply({ ...source, after: 2, through: 2, facts });
  // The third decision stays in the outbox until the next batch, because its commit is confirmed only then.
  expect(reapplied.map(({ kind }) => kind)).toEqual(['done', 'done', 'decided']);
  await linker.close();
});

it('the linker commits a fact only after its decision is acknowledged', async () => {
  const bench = await createBench();
  const { linker } = await bench.open({
    producer: producerWithOutcomes(bench.producer, ['fault before'], () => {}),
  });
  await bench.put([toOutgoing(LINKS, toFact({}))]);
  await until('the fact is committed', () => bench.committed() === 1);
  expect(bench.decisions()).toHaveLength(1);
  await linker.close();
});

it('an unlink is published as one record with both sides and the time of the unlink', async () => {
  const bench = await createBench();
  const { linker } = await bench.open();
  await bench.put([toOutgoing(LINKS, toFact({}))]);
  await until('the link is decided', () => bench.decisions().length === 1);
  const { aKey, aKind, bKey } = bench.decisions()[0]!;
  const parts = { environmentId: 'test', messageId: Buffer.alloc(16, 4), traceId: 'f'.repeat(32), receivedAt: 9 };
  await bench.put([toOutgoing(LINKS, toUnlinkFact({ ...parts, unlink: [{ key: aKey, kind: aKind }] }))]);
  await until('the unlink is committed', () => bench.committed() === 2);
  const [, decision] = bench.decisions();
  expect(bench.decisions()).toHaveLength(2);
  expect(decisionTextOf(decision!)).toEqual({ link: 'unlink', outcome: 'unlinked' });
  expect(decision).toMatchObject({ offset: 1, step: 0, receivedAt: 9, eventTime: 9 });
  expect([decision!.moved, decision!.unlink!.stayed].map((side) => side.map(({ key }) => key))).toEqual([
    [aKey],
    [bKey],
  ]);
  await linker.close();
});

it('the linker logs the dead letters of a batch in one line, without their content', async () => {
  const bench = await createBench();
  const { logger, lines } = openLines('warn');
  const key = Buffer.from('test');
  const secret = { topic: LINKS, key, value: Buffer.from('secret') };
  await bench.put([toOutgoing(LINKS, toFact({})), secret, toOutgoing(LINKS, toFact({}), 99)]);
  const { linker } = await bench.open({ logger });
  await until('all records are committed', () => bench.committed() === 3);
  await linker.close();
  expect(lines).toHaveLength(1);
  const { partition } = bench.log.records(LINKS)[0]!;
  const expected = { level: 'warn', topic: LINKS, partition, offset: 1, count: 2, reason: 'no schema id' };
  expect(JSON.parse(lines[0]!)).toMatchObject(expected);
  expect(lines[0]).not.toContain('secret');
});

it('records that are not valid link facts become dead letters', async () => {
  const bench = await createBench();
  const { linker } = await bench.open();
  const key = Buffer.from('test');
  const good = toOutgoing(LINKS, toFact({}));
  const truncated = good.value.subarray(0, -4);
  await bench.put([
    { topic: LINKS, key, value: Buffer.from('secret') },
    { topic: LINKS, key, value: truncated },
    toOutgoing(LINKS, toFact({}), 99),
    toOutgoing(LINKS, toFact({ fromKind: 'phone' as never })),
    toOutgoing(LINKS, toFact({ environmentId: 'a:{b}' })),
    toOutgoing(LINKS, toFact({ toId: ' ' })),
    toOutgoing(LINKS, toFact({ link: 'alias', fromKind: 'email', fromId: '' })),
    toOutgoing(LINKS, toFact({ receivedAt: 2 ** 48 })),
    toOutgoing(LINKS, toFact({ eventTime: 2 ** 52 })),
    toOutgoing(LINKS, toFact({ unlink: [{ key: Buffer.alloc(16, 1), kind: 'phone' as never }] })),
    toOutgoing(LINKS, toFact({ unlink: Array(10_001).fill({ key: Buffer.alloc(16, 1), kind: 'steam' }) })),
    good,
  ]);
  await until('all records are committed', () => bench.committed() === 12);
  const reasons = bench.log.records(`${LINKS}.dead`).map(({ headers }) => String(headers.reason));
  expect(reasons.sort()).toEqual([
    ...['blank id', 'blank id', 'no schema id', 'not a record of its schema: 7', 'not an environment id'],
    ...['schema not in the registry: 99', 'time out of range', 'time out of range'],
    ...['too many identities to unlink', 'unknown identity kind', 'unknown identity kind'],
  ]);
  expect(bench.decisions()).toHaveLength(1);
  await linker.close();
});

it('facts wait while the schema registry is unavailable, and do not become dead letters', async () => {
  const bench = await createBench();
  let queries = 0;
  const schemaOf = async () => {
    if (queries++ < 3) throw new Error('refused');
    return identityLinkCodec.schema;
  };
  const { linker } = await bench.open({ schemaOf });
  await bench.put([toOutgoing(LINKS, toFact({}))]);
  await until('the decision is logged', () => bench.decisions().length === 1);
  expect(bench.log.records(`${LINKS}.dead`)).toEqual([]);
  await linker.close();
});

it('the linker is not ready while Redis has no epoch, and resumes when an epoch is set', async () => {
  const bench = await createBench(openMemoryPeople(), false);
  const { linker } = await bench.open();
  await bench.put([toOutgoing(LINKS, toFact({}))]);
  expect(await linker.ready.graph?.()).toBe(false);
  expect(bench.committed()).toBe(0);
  await bench.people.rebuild.mintEpoch();
  await until('the decision is logged', () => bench.decisions().length === 1);
  for (const check of Object.values(linker.ready)) expect(await check()).toBe(true);
  await linker.close();
});

it('the linker rewinds to the first fact that the graph has lost', async () => {
  const [before, after] = [openMemoryPeople(), openMemoryPeople()];
  await after.rebuild.mintEpoch();
  let current = before;
  const names = Object.keys(before.graph) as (keyof IdentityGraph)[];
  const graph = Object.fromEntries(
    names.map((name) => [name, (...args: never[]) => (current.graph[name] as (...all: never[]) => unknown)(...args)]),
  ) as unknown as IdentityGraph;
  const bench = await createBench({ ...before, graph });
  const { linker } = await bench.open();
  await bench.put([toOutgoing(LINKS, toFact({})), toOutgoing(LINKS, toFact({ fromId: 'b' }))]);
  await until('both facts are committed', () => bench.committed() === 2);
  const digest = await before.rebuild.digest('test');
  current = after;
  await bench.put([toOutgoing(LINKS, toFact({ fromId: 'b' }))]);
  await until('the third fact is committed', () => bench.committed() === 3);
  expect(await after.rebuild.digest('test')).toBe(digest);
  const texts = bench.decisions().map(toText);
  // The first two decisions are published twice, identically.
  expect(texts).toHaveLength(5);
  expect(new Set(texts).size).toBe(3);
  await linker.close();
});

it('no decision is lost or contradicted when the linker fails between the script and the publish', async () => {
  const fact = fc
    .record({
      env: fc.constantFrom('e1', 'e2', 'e3'),
      from: fc.constantFrom('a', 'b', 'c'),
      to: fc.constantFrom('x', 'y', 'z'),
    })
    .map(({ env, from, to }) => toFact({ environmentId: env, fromId: from, toKind: 'steam', toId: to }));
  const outcome = fc.constantFrom<CallOutcome>('success', 'kill before', 'kill after', 'fault after', 'fault before');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fact, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 }),
      fc.array(outcome, { maxLength: 4 }),
      async (puts, outcomes) => {
        const [bench, expected] = [await createBench(), await createBench()];
        const faulty = await openFaulty(bench, [...outcomes]);
        const expectedLinker = await expected.open();
        for (const facts of puts) {
          const records = facts.map((each) => toOutgoing(LINKS, each));
          await Promise.all([bench.put(records), expected.put(records)]);
        }
        const total = puts.flat().length;
        await until('all facts are committed', () => bench.committed() === total && expected.committed() === total);
        expect(new Set(bench.decisions().map(toText))).toEqual(new Set(expected.decisions().map(toText)));
        for (const [environment, order] of ordersOf(bench.decisions()))
          expect(order).toEqual(ordersOf(expected.decisions()).get(environment));
        await Promise.all([faulty.close(), expectedLinker.linker.close()]);
      },
    ),
    { numRuns: runsOf({ quick: 10, all: 25 }) },
  );
});

function ordersOf(decisions: ReturnType<typeof fromDecision>[]): Map<string, string[]> {
  const orders = new Map<string, string[]>();
  for (const decision of decisions) {
    const order = orders.get(decision.environmentId) ?? [];
    orders.set(decision.environmentId, order);
    if (!order.includes(stepOf(decision))) order.push(stepOf(decision));
  }
  return orders;
}
