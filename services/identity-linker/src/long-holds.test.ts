import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Bench, createBench, LINKS, openFaulty, PARKED } from './test/linker-bench.ts';
import { type CallOutcome, createParts, openLines, stepOf, toFact, toOutgoing, toText } from './test/linking.ts';

/** Facts go to the parked topic after two rounds. */
const FEW_ROUNDS = { roundAfterMinMs: 4, roundAfterMaxMs: 8, roundsMax: 2, waitingBytesMax: 100_000 };
/** An equally quick parked topic, in which waiting facts are rewritten repeatedly. */
const QUICK_TOPIC = { checkEveryMs: 10, renewAfterMs: 60, waitingBytesMax: 100_000, turnEveryMs: 30 };
/** Memory for a few facts. */
const SMALL_TOPIC = { ...QUICK_TOPIC, waitingBytesMax: 3_000 };
const FAULTY = { ofProducer: true, parkedPace: FEW_ROUNDS, parkedTopicPace: QUICK_TOPIC };
const { rules } = createParts();
const keyOf = (kind: 'untyped' | 'anonymous', id: string) => rules.keyOf('test', kind, id);

const toLink = (fromId: string, toId: string, number: number) =>
  toOutgoing(LINKS, toFact({ fromId, toId, messageId: Buffer.alloc(16, number) }));

/** Creates facts, each with a number in its message id. */
function createFacts(bench: Bench) {
  let facts = 0;
  const put = (links: readonly { from: string; to: string }[]) =>
    bench.put(links.map(({ from, to }) => toLink(from, to, ++facts)));
  /** Numbers of the decided facts, in the order of their decisions. */
  const decided = () => [...new Set(bench.decisions().map(({ messageId }) => messageId[0]!))];
  const allDecided = () => until('every fact is decided', () => decided().length === facts);
  const allCommitted = () =>
    until(
      'all is committed',
      () =>
        bench.committed() === bench.log.records(LINKS).length &&
        bench.parkedCommitted() === bench.log.records(PARKED).length,
    );
  return { put, decided, allDecided, allCommitted, count: () => facts };
}

const distinct = (bench: Bench) =>
  new Set(bench.log.records(PARKED).map(({ partition, headers }) => `${partition}/${headers['first-offset']}`)).size;

const WELL = ['well', 'well', 'well'] as const;
const outcome = fc.constantFrom<CallOutcome>(...WELL, 'kill before', 'kill after', 'fault after', 'fault before');
const outcomes = fc.array(outcome, { maxLength: 25 });

it('facts wait in the parked topic without writes, with all links committed, and return after the release', async () => {
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
  await until('they are there', () => bench.log.records(PARKED).length === 2);
  // No further batch comes, so the commit does not depend on one.
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

it('facts that return start their rounds again under another hold', async () => {
  const bench = await createBench();
  const { put, allDecided, allCommitted } = createFacts(bench);
  const [first, second] = [keyOf('untyped', 'u'), keyOf('anonymous', 'a')];
  await bench.hold(first);
  const { linker } = await bench.open({ parkedPace: FEW_ROUNDS, parkedTopicPace: QUICK_TOPIC });
  await put([{ from: 'a', to: 'u' }]);
  await until('it is there', () => bench.log.records(PARKED).length > 0);
  const before = bench.log.records(LINKS).length;
  const { guards } = bench.people;
  // The graph finds a hold that did not exist at the check.
  const { heldFrom } = guards;
  guards.heldFrom = async (_, keys) => keys.map(() => null);
  await until('it is parked again', () => bench.log.records(LINKS).length > before + 2);
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

it('parked facts wait while Redis is rebuilt', async () => {
  const bench = await createBench();
  const { put, decided, allDecided, allCommitted } = createFacts(bench);
  const key = keyOf('untyped', 'u');
  await bench.hold(key);
  const { logger, lines } = openLines('warn');
  const { linker } = await bench.open({ parkedPace: FEW_ROUNDS, parkedTopicPace: QUICK_TOPIC, logger });
  await put([{ from: 'a', to: 'u' }]);
  await until('it is there', () => bench.log.records(PARKED).length > 0);
  const written = bench.log.records(LINKS).length;
  bench.people.loseEpoch();
  await bench.release(key);
  await until('the check has failed', () => lines.join('').includes('not checked'));
  const renewed = bench.log.records(PARKED).length;
  await until('it was written again', () => bench.log.records(PARKED).length > renewed);
  await bench.hold(key);
  await bench.people.rebuild.mintEpoch();
  expect([decided(), bench.log.records(LINKS).length]).toEqual([[], written]);
  // Once, not at every check.
  expect(lines).toHaveLength(1);
  await bench.release(key);
  await allDecided();
  await allCommitted();
  await linker.close();
});

it('parked facts of a person are decided in order, whatever fails', async () => {
  const groups = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4 });
  const property = fc.asyncProperty(groups, outcomes, async (sizes, wanted) => {
    const bench = await createBench();
    const { put, decided, allDecided, allCommitted, count } = createFacts(bench);
    await bench.hold(keyOf('untyped', 'u'));
    const faulty = await openFaulty(bench, [...wanted], FAULTY);
    for (const size of sizes) {
      const written = () => bench.log.records(LINKS).length + bench.log.records(PARKED).length;
      const known = written();
      await put(Array.from({ length: size }, (_, at) => ({ from: `${count()}-${at}`, to: 'u' })));
      await until('some return', () => written() > known + size);
    }
    const isThere = () => bench.committed() === bench.log.records(LINKS).length && distinct(bench) === count();
    await until('all are in the parked topic', isThere);
    await bench.release(keyOf('untyped', 'u'));
    await allDecided();
    expect(decided()).toEqual(Array.from({ length: count() }, (_, at) => at + 1));
    await allCommitted();
    await faulty.close();
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 8, all: 25 }) });
});

it('all facts are decided and committed after any holds, releases and crashes, with memory for few', async () => {
  const who = fc.constantFrom('x', 'y');
  const link = fc.record({ from: fc.constantFrom('a', 'b', 'c'), to: fc.constantFrom('x', 'y', 'z') });
  const step = fc.oneof(
    fc.record({ act: fc.constant('put' as const), links: fc.array(link, { minLength: 1, maxLength: 6 }) }),
    fc.record({ act: fc.constantFrom('hold' as const, 'release' as const), who }),
    fc.record({ act: fc.constantFrom('crash' as const, 'rest' as const) }),
  );
  const property = fc.asyncProperty(fc.array(step, { maxLength: 14 }), outcomes, async (steps, wanted) => {
    const bench = await createBench();
    const { put, decided, allDecided, allCommitted, count } = createFacts(bench);
    for (const one of ['x', 'y']) await bench.hold(keyOf('untyped', one));
    const faulty = await openFaulty(bench, [...wanted], { ...FAULTY, parkedTopicPace: SMALL_TOPIC });
    for (const each of steps) {
      if (each.act === 'put') await put(each.links);
      if (each.act === 'hold') await bench.hold(keyOf('untyped', each.who));
      if (each.act === 'release') await bench.release(keyOf('untyped', each.who));
      if (each.act === 'crash') faulty.revive();
      // Every fact is decided or in the parked topic, or both.
      if (each.act === 'rest') await until('rest', () => decided().length + distinct(bench) >= count());
      else await new Promise((resolve) => setImmediate(resolve));
    }
    for (const one of ['x', 'y']) await bench.release(keyOf('untyped', one));
    await allDecided();
    await allCommitted();
    const texts = new Map(bench.decisions().map((decision) => [stepOf(decision), toText(decision)]));
    for (const decision of bench.decisions()) expect(texts.get(stepOf(decision))).toBe(toText(decision));
    await faulty.close();
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 12, all: 40 }) });
});
