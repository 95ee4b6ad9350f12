import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBench, LINKS } from './test/linker-bench.ts';
import { type CallOutcome, createParts, stepOf, toFact, toOutgoing, toText, withOutcomes } from './test/linking.ts';

/** Rounds that are quick enough for a log in memory. */
const QUICK = { roundAfterMinMs: 4, roundAfterMaxMs: 16, roundsMax: 1_000, waitingBytesMax: 2_000 };

describe('the linker', () => {
  it('writes a parked fact to the end of its topic again until the hold is released, and loses none', async () => {
    const bench = await createBench();
    const { rules } = createParts();
    const key = rules.keyOf('test', 'untyped', 'u');
    await bench.hold(key);
    const { linker } = await bench.open();
    await bench.put([toOutgoing(LINKS, toFact({})), toOutgoing(LINKS, toFact({ fromId: 'x', toId: 'y' }))]);
    await until('it went round', () => bench.log.records(LINKS).length >= 4);
    expect(bench.decisions().map(({ offset, outcome }) => [offset, outcome])).toEqual([[1, 'linked']]);
    await bench.release(key);
    await until('it was decided', () => bench.decisions().length === 2);
    const last = bench.decisions()[1]!;
    expect(last).toMatchObject({ outcome: 'linked', receivedAt: 1_000 });
    expect(last.offset).toBeGreaterThan(1);
    await linker.close();
  });

  it("keeps the order of one person's parked facts through every round, and decides them once the hold is released", async () => {
    const bench = await createBench();
    const key = createParts().rules.keyOf('test', 'steam', 'u');
    await bench.hold(key);
    const { linker } = await bench.open({ parkedPace: QUICK });
    const sent = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const [at, fromId] of sent.entries()) {
      await bench.put([toOutgoing(LINKS, toFact({ fromId, toKind: 'steam' }))]);
      const rounds = bench.log.records(LINKS).length;
      await until('some went round', () => bench.log.records(LINKS).length > rounds + at);
    }
    await bench.release(key);
    await until('all are decided', () => bench.decisions().filter(({ step }) => step === 1).length >= sent.length);
    await until('all is committed', () => bench.committed() === bench.log.records(LINKS).length);
    const devices = bench.decisions().filter(({ step }) => step === 1);
    const { keyOf } = createParts().rules;
    expect(devices.map(({ aKey }) => aKey)).toEqual(sent.map((id) => keyOf('test', 'anonymous', id)));
    await linker.close();
  });

  it('decides every fact and commits to the end when it dies or fails anywhere while facts go round', async () => {
    const fate = fc.constantFrom<CallOutcome>(
      'well',
      'well',
      'kill before',
      'kill after',
      'fault after',
      'fault before',
    );
    const fact = fc.record({ from: fc.constantFrom('a', 'b', 'c'), to: fc.constantFrom('x', 'y', 'z') });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fact, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 6 }),
        fc.array(fate, { maxLength: 10 }),
        fc.nat({ max: 5 }),
        async (puts, wanted, releasedBehind) => {
          const fates = [...wanted];
          const bench = await createBench();
          const { keyOf } = createParts().rules;
          const held = [keyOf('test', 'untyped', 'x'), keyOf('test', 'anonymous', 'b')];
          for (const key of held) await bench.hold(key);
          const revivals: Promise<void>[] = [];
          const open = () =>
            bench.open({ people: withOutcomes(bench.people, fates, () => revive()), parkedPace: QUICK });
          let linker = await open();
          const revive = () => {
            linker.kill();
            revivals.push(
              open().then((next) => {
                linker = next;
              }),
            );
          };
          const ids: string[] = [];
          for (const [at, facts] of puts.entries()) {
            if (at === releasedBehind) for (const key of held) await bench.release(key);
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
          await until('all is committed', () => bench.committed() === bench.log.records(LINKS).length);
          const texts = new Map(bench.decisions().map((decision) => [stepOf(decision), toText(decision)]));
          for (const decision of bench.decisions()) expect(texts.get(stepOf(decision))).toBe(toText(decision));
          await Promise.all(revivals);
          await linker.linker.close();
        },
      ),
      { numRuns: runsOf({ quick: 12, all: 40 }) },
    );
  });

  it('makes rounds of a parked fact ever less often, while it decides and commits links of others', async () => {
    const bench = await createBench();
    const key = createParts().rules.keyOf('test', 'untyped', 'u');
    await bench.hold(key);
    const { linker } = await bench.open();
    const start = performance.now();
    await bench.put([toOutgoing(LINKS, toFact({}))]);
    for (let other = 0; other < 40; other++) {
      await bench.put([toOutgoing(LINKS, toFact({ fromId: `a${other}`, toId: `u${other}` }))]);
      await until('the other is decided', () => bench.decisions().length === other + 1);
    }
    // A round half a second after the fact was parked, then 1, 2 and 4 seconds after the one before.
    const rounds = () => bench.log.records(LINKS).length - 41;
    const elapsedMs = performance.now() - start;
    expect(rounds()).toBeLessThanOrEqual(Math.floor(Math.log2(1 + elapsedMs / 500)));
    await until('those before its first return are committed', () => bench.committed() >= 1 && rounds() >= 1);
    await bench.release(key);
    await until('it is decided', () => bench.decisions().length === 41);
    await until('all is committed', () => bench.committed() === bench.log.records(LINKS).length);
    await linker.close();
  });
});
