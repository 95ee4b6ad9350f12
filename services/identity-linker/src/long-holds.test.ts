import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Bench, createBench, LINKS, openFaulty, PARKED } from './test/linker-bench.ts';
import { type CallOutcome, createParts, openLines, stepOf, toFact, toOutgoing, toText } from './test/linking.ts';

/** Moves facts to the parked topic after two rounds. */
const FEW_ROUNDS = { roundAfterMinMs: 4, roundAfterMaxMs: 8, roundsMax: 2, waitingBytesMax: 100_000 };
/** Rewrites waiting facts within milliseconds. */
const QUICK_TOPIC = { checkIntervalMs: 10, renewAfterMs: 60, waitingBytesMax: 100_000, rotationIntervalMs: 30 };
/** Can buffer only a few facts. */
const SMALL_TOPIC = { ...QUICK_TOPIC, waitingBytesMax: 3_000 };
const FAULTY = { withProducer: true, parkedPace: FEW_ROUNDS, parkedTopicPace: QUICK_TOPIC };
const { rules } = createParts();
const keyOf = (kind: 'untyped' | 'anonymous', id: string) => rules.keyOf('test', kind, id);

const toLink = (fromId: string, toId: string, number: number) =>
  toOutgoing(LINKS, toFact({ fromId, toId, messageId: Buffer.alloc(16, number) }));

function createFacts(bench: Bench) {
  let facts = 0;
  const put = (links: readonly { from: string; to: string }[]) =>
    bench.put(links.map(({ from, to }) => toLink(from, to, ++facts)));
  const decided = () => [...new Set(bench.decisions().map(({ messageId }) => messageId[0]!))];
  const allDecided = () => until('every fact is decided', () => decided().length === facts);
  const allCommitted = () =>
    until(
      'all facts are committed',
      () =>
        bench.committed() === bench.log.records(LINKS).length &&
        bench.parkedCommitted() === bench.log.records(PARKED).length,
    );
  return { put, decided, allDecided, allCommitted, count: () => facts };
}

const countParked = (bench: Bench) =>
  new Set(bench.log.records(PARKED).map(({ partition, headers }) => `${partition}/${headers['first-offset']}`)).size;

const SUCCESSES = ['success', 'success', 'success'] as const;
const outcome = fc.constantFrom<CallOutcome>(...SUCCESSES, 'kill before', 'kill after', 'fault after', 'fault before');
const outcomes = fc.array(outcome, { maxLength: 25 });

it('parked facts wait without rewrites while link offsets are committed, and return after their holds', async () => {
  const bench = await createBench();
  const { put, decided, allDecided, allCommitted } = createFacts(bench);
  await bench.hold(keyOf('untyped', 'u'));
  const { metrics } = createParts();
  const pace = { ...QUICK_TOPIC, renewAfterMs: 60_000 };
  const { linker } = await bench.open({ parkedPace: FEW_ROUNDS, parkedTopicPace: pace, metrics });
  await put([
    { from: 'a', to: 'u' },
    { from: 'b', to: 'u' },
  ]);
  await until('the facts are parked', () => bench.log.records(PARKED).length === 2);
  // No further batch arrives, so this commit is not triggered by a batch.
  await until('links are committed', () => bench.committed() === bench.log.records(LINKS).length);
  const written = bench.log.records(LINKS).length;
  expect(written).toBe(6);
  const heldFrom = bench.people.guards.heldFrom;
  let checks = 0;
  bench.people.guards.heldFrom = async (...args) => {
    checks++;
    return heldFrom(...args);
  };
  await until('the holds are checked many times', () => checks > 20);
  expect([bench.log.records(LINKS).length, bench.log.records(PARKED).length]).toEqual([written, 2]);
  expect([decided(), bench.parkedCommitted()]).toEqual([[], 0]);
  expect(await metrics.text()).toMatch(/^playline_identity_waiting_facts\{.*\} 2$/m);
  await bench.release(keyOf('untyped', 'u'));
  await allDecided();
  await allCommitted();
  expect(bench.log.records(LINKS)).toHaveLength(written + 2);
  await linker.close();
});

it('facts that return to the link topic restart their rounds under a second hold', async () => {
  const bench = await createBench();
  const { put, allDecided, allCommitted } = createFacts(bench);
  const [first, second] = [keyOf('untyped', 'u'), keyOf('anonymous', 'a')];
  await bench.hold(first);
  const { linker } = await bench.open({ parkedPace: FEW_ROUNDS, parkedTopicPace: QUICK_TOPIC });
  await put([{ from: 'a', to: 'u' }]);
  await until('the fact is parked', () => bench.log.records(PARKED).length > 0);
  const before = bench.log.records(LINKS).length;
  const { guards } = bench.people;
  // The hold check misses the hold, which the graph then finds.
  const { heldFrom } = guards;
  guards.heldFrom = async (_, keys) => keys.map(() => null);
  await until('the fact is parked again', () => bench.log.records(LINKS).length > before + 2);
  guards.heldFrom = heldFrom;
  await bench.hold(second);
  await bench.release(first);
  const rounds = bench.log
    .records(LINKS)
    .slice(before)
    .map(({ headers }) => String(headers.rounds));
  expect(rounds.slice(0, 3)).toEqual(['undefined', '1', '2']);
  await bench.release(second);
  await allDecided();
  await allCommitted();
  await linker.close();
});

it('parked facts wait while Redis is being rebuilt', async () => {
  const bench = await createBench();
  const { put, decided, allDecided, allCommitted } = createFacts(bench);
  const key = keyOf('untyped', 'u');
  await bench.hold(key);
  const { logger, lines } = openLines('warn');
  const { linker } = await bench.open({ parkedPace: FEW_ROUNDS, parkedTopicPace: QUICK_TOPIC, logger });
  await put([{ from: 'a', to: 'u' }]);
  await until('the fact is parked', () => bench.log.records(PARKED).length > 0);
  const written = bench.log.records(LINKS).length;
  bench.people.deleteEpoch();
  await bench.release(key);
  await until('a check has failed', () => lines.join('').includes('checking parked facts failed'));
  const renewed = bench.log.records(PARKED).length;
  await until('the fact is rewritten', () => bench.log.records(PARKED).length > renewed);
  await bench.hold(key);
  await bench.people.rebuild.mintEpoch();
  expect([decided(), bench.log.records(LINKS).length]).toEqual([[], written]);
  expect(lines).toHaveLength(1);
  await bench.release(key);
  await allDecided();
  await allCommitted();
  await linker.close();
});

it('the parked facts of one person are decided in order despite crashes and faults', async () => {
  const groups = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4 });
  const property = fc.asyncProperty(groups, outcomes, async (sizes, callOutcomes) => {
    const bench = await createBench();
    const { put, decided, allDecided, allCommitted, count } = createFacts(bench);
    await bench.hold(keyOf('untyped', 'u'));
    const faulty = await openFaulty(bench, [...callOutcomes], FAULTY);
    for (const size of sizes) {
      const written = () => bench.log.records(LINKS).length + bench.log.records(PARKED).length;
      const writtenBefore = written();
      await put(Array.from({ length: size }, (_, at) => ({ from: `${count()}-${at}`, to: 'u' })));
      await until('some facts return', () => written() > writtenBefore + size);
    }
    const areParked = () => bench.committed() === bench.log.records(LINKS).length && countParked(bench) === count();
    await until('all facts are in the parked topic', areParked);
    await bench.release(keyOf('untyped', 'u'));
    await allDecided();
    expect(decided()).toEqual(Array.from({ length: count() }, (_, at) => at + 1));
    await allCommitted();
    await faulty.close();
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 8, all: 25 }) });
});

it('all facts are decided and committed after any holds, releases and crashes with a small buffer', async () => {
  const held = fc.constantFrom('x', 'y');
  const link = fc.record({ from: fc.constantFrom('a', 'b', 'c'), to: fc.constantFrom('x', 'y', 'z') });
  const step = fc.oneof(
    fc.record({ action: fc.constant('put' as const), links: fc.array(link, { minLength: 1, maxLength: 6 }) }),
    fc.record({ action: fc.constantFrom('hold' as const, 'release' as const), held }),
    fc.record({ action: fc.constantFrom('crash' as const, 'rest' as const) }),
  );
  const property = fc.asyncProperty(fc.array(step, { maxLength: 14 }), outcomes, async (steps, callOutcomes) => {
    const bench = await createBench();
    const { put, decided, allDecided, allCommitted, count } = createFacts(bench);
    for (const id of ['x', 'y']) await bench.hold(keyOf('untyped', id));
    const faulty = await openFaulty(bench, [...callOutcomes], { ...FAULTY, parkedTopicPace: SMALL_TOPIC });
    for (const each of steps) {
      if (each.action === 'put') await put(each.links);
      if (each.action === 'hold') await bench.hold(keyOf('untyped', each.held));
      if (each.action === 'release') await bench.release(keyOf('untyped', each.held));
      if (each.action === 'crash') faulty.restart();
      if (each.action === 'rest')
        await until('every fact is decided or parked', () => decided().length + countParked(bench) >= count());
      else await new Promise((resolve) => setImmediate(resolve));
    }
    for (const id of ['x', 'y']) await bench.release(keyOf('untyped', id));
    await allDecided();
    await allCommitted();
    const texts = new Map(bench.decisions().map((decision) => [stepOf(decision), toText(decision)]));
    for (const decision of bench.decisions()) expect(texts.get(stepOf(decision))).toBe(toText(decision));
    await faulty.close();
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 12, all: 40 }) });
});
