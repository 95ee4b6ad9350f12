import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBench, LINKS, openFaulty } from './test/linker-bench.ts';
import { type CallOutcome, createParts, stepOf, toFact, toOutgoing, toText } from './test/linking.ts';

const QUICK = { roundAfterMinMs: 4, roundAfterMaxMs: 16, roundsMax: 1_000, waitingBytesMax: 2_000 };

it("a person's parked facts stay in order through all rounds until the hold is released", async () => {
  const bench = await createBench();
  const key = createParts().rules.keyOf('test', 'steam', 'u');
  await bench.hold(key);
  const { linker } = await bench.open({ parkedPace: QUICK });
  const sent = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const [at, fromId] of sent.entries()) {
    await bench.put([toOutgoing(LINKS, toFact({ fromId, toKind: 'steam' }))]);
    const rounds = bench.log.records(LINKS).length;
    await until('some facts completed a round', () => bench.log.records(LINKS).length > rounds + at);
  }
  await bench.release(key);
  await until('all facts are decided', () => bench.decisions().filter(({ step }) => step === 1).length >= sent.length);
  await until('all facts are committed', () => bench.committed() === bench.log.records(LINKS).length);
  const devices = bench.decisions().filter(({ step }) => step === 1);
  const { keyOf } = createParts().rules;
  expect(devices.map(({ aKey }) => aKey)).toEqual(sent.map((id) => keyOf('test', 'anonymous', id)));
  await linker.close();
});

it('every fact is decided and committed despite crashes and faults during rounds', async () => {
  const callOutcomes: CallOutcome[] = [
    'success',
    'success',
    'kill before',
    'kill after',
    'fault after',
    'fault before',
  ];
  const outcome = fc.constantFrom(...callOutcomes);
  const fact = fc.record({ from: fc.constantFrom('a', 'b', 'c'), to: fc.constantFrom('x', 'y', 'z') });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fact, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 6 }),
      fc.array(outcome, { maxLength: 10 }),
      fc.nat({ max: 5 }),
      async (puts, callFaults, releasedAfter) => {
        const bench = await createBench();
        const { keyOf } = createParts().rules;
        const held = [keyOf('test', 'untyped', 'x'), keyOf('test', 'anonymous', 'b')];
        for (const key of held) await bench.hold(key);
        const faulty = await openFaulty(bench, [...callFaults], { parkedPace: QUICK });
        const ids: string[] = [];
        for (const [at, facts] of puts.entries()) {
          if (at === releasedAfter) for (const key of held) await bench.release(key);
          const records = facts.map(({ from, to }) => {
            const messageId = Buffer.alloc(16, ids.push(`${from} ${to}`));
            return toOutgoing(LINKS, toFact({ fromId: from, toId: to, messageId }));
          });
          await bench.put(records);
          await new Promise((resolve) => setImmediate(resolve));
        }
        for (const key of held) await bench.release(key);
        const decided = () => new Set(bench.decisions().map(({ messageId }) => messageId[0]));
        await until('every fact is decided', () => decided().size === ids.length);
        await until('all facts are committed', () => bench.committed() === bench.log.records(LINKS).length);
        const texts = new Map(bench.decisions().map((decision) => [stepOf(decision), toText(decision)]));
        for (const decision of bench.decisions()) expect(texts.get(stepOf(decision))).toBe(toText(decision));
        await faulty.close();
      },
    ),
    { numRuns: runsOf({ quick: 12, all: 40 }) },
  );
});
