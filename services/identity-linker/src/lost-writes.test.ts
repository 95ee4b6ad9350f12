import { toOverrideVersion } from '@playline/events';
import { toOverrides, toUnlinkFact } from '@playline/people';
import type { Producer } from '@playline/stream';
import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Bench, createBench, DECISIONS, LINKS } from './test/linker-bench.ts';
import { createParts, stepOf, toFact, toOutgoing, toText } from './test/linking.ts';

/** Short rounds; facts never move to the parked topic. */
const parkedPace = { roundAfterMinMs: 4, roundAfterMaxMs: 8, roundsMax: 1_000_000, waitingBytesMax: 100_000 };
const { rules } = createParts();
const IDS = ['a', 'b', 'c', 'd'];
const keyOf = (id: string) => rules.keyOf('test', 'untyped', id);

const toAlias = (fromId: string, toId: string) =>
  toOutgoing(LINKS, toFact({ link: 'alias', fromKind: 'untyped', fromId, toId }));

/** Derives each identity's person from the override with the highest version, like the ClickHouse views. */
function personsInViews(bench: Bench): string[] {
  const rows = bench.decisions().flatMap((decision) => toOverrides(decision, toOverrideVersion(decision)));
  const latest = new Map<string, (typeof rows)[number]>();
  for (const row of rows) {
    const key = row.key.toString('hex');
    if (row.version >= (latest.get(key)?.version ?? -1n)) latest.set(key, row);
  }
  return IDS.map((id) => (latest.get(keyOf(id).toString('hex'))?.root ?? keyOf(id)).toString('hex'));
}

const graphPersons = (bench: Bench) =>
  Promise.all(IDS.map(async (id) => ((await bench.graph.rootOf('test', keyOf(id))) ?? keyOf(id)).toString('hex')));

async function expectConsistent(bench: Bench): Promise<void> {
  const decisions = bench.decisions();
  expect(new Set(decisions.map(toText)).size).toBe(new Set(decisions.map(stepOf)).size);
  expect(await graphPersons(bench)).toEqual(personsInViews(bench));
}

/** Creates a producer that can drop the first decision in a call, so that the log receives later decisions first. */
function createLossyProducer(bench: Bench) {
  let isNextLost = false;
  const producer: Producer = {
    ...bench.producer,
    bytesHeld: 0,
    send(records, done) {
      const isLost = isNextLost && records.length > 1 && records[0]!.topic === DECISIONS;
      if (isLost) isNextLost = false;
      bench.producer.send(isLost ? records.slice(1) : records, (fault) =>
        done(isLost ? new Error('a record was not acknowledged') : fault),
      );
    },
    sendForOffset: (record) => bench.producer.sendForOffset(record),
    ready: () => bench.producer.ready(),
    close: () => bench.producer.close(),
  };
  return {
    producer,
    loseNext: () => {
      isNextLost = true;
    },
  };
}

const allCommitted = (bench: Bench) =>
  until('all facts are committed', () => bench.committed() === bench.log.records(LINKS).length);

it('the linker reapplies a logged decision that follows a decision about a later fact', async () => {
  const bench = await createBench();
  const restore = bench.people.snapshot();
  const lossy = createLossyProducer(bench);
  const { linker } = await bench.open({ producer: lossy.producer, parkedPace });
  lossy.loseNext();
  await bench.put([toAlias('a', 'b'), toAlias('c', 'd')]);
  await allCommitted(bench);
  expect(bench.decisions().map(({ offset }) => offset)).toEqual([1, 0, 1]);
  restore();
  await bench.people.rebuild.mintEpoch();
  await until('the links are restored', async () => await linker.ready.links!());
  await linker.close();
  await expectConsistent(bench);
  expect(bench.log.records(LINKS)).toHaveLength(2);
});

it('the linker is not ready until it has restored the lost links of an idle partition', async () => {
  const bench = await createBench();
  const restore = bench.people.snapshot();
  const { linker } = await bench.open();
  await bench.put([toAlias('a', 'b'), toAlias('b', 'c')]);
  await allCommitted(bench);
  const isReady = async () => await linker.ready.links!();
  expect(await isReady()).toBe(true);
  restore();
  await bench.people.rebuild.mintEpoch();
  expect(await isReady()).toBe(false);
  await until('the links are restored', isReady);
  await linker.close();
  await expectConsistent(bench);
  expect(new Set(await graphPersons(bench)).size).toBe(2);
});

it('no step has two different decisions after any sequence of links, unlinks, holds and lost writes', async () => {
  const id = fc.constantFrom(...IDS);
  const action = fc.oneof(
    { weight: 5, arbitrary: fc.tuple(fc.constant('link' as const), id, id) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('unlink' as const), id, id) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('hold' as const, 'release' as const), id, id) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom('keep' as const, 'lose' as const, 'settle' as const), id, id) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('lose a record' as const), id, id) },
  );
  const property = fc.asyncProperty(fc.array(action, { minLength: 3, maxLength: 14 }), async (actions) => {
    const bench = await createBench();
    const lossy = createLossyProducer(bench);
    const { linker } = await bench.open({ producer: lossy.producer, parkedPace });
    let restore = bench.people.snapshot();
    let receivedAt = 2_000;
    const createUnlink = (id: string) =>
      toUnlinkFact({
        environmentId: 'test',
        messageId: Buffer.alloc(16, 4),
        traceId: 'f'.repeat(32),
        receivedAt: receivedAt++,
        unlink: [{ key: keyOf(id), kind: 'untyped' }],
      });
    for (const [kind, from, to] of actions) {
      if (kind === 'link') await bench.put([toAlias(from, to)]);
      if (kind === 'unlink') await bench.put([toOutgoing(LINKS, createUnlink(from))]);
      if (kind === 'hold') await bench.hold(keyOf(from));
      if (kind === 'release') await bench.release(keyOf(from));
      if (kind === 'lose a record') lossy.loseNext();
      if (kind === 'keep') restore = bench.people.snapshot();
      if (kind === 'settle') await new Promise((resolve) => setImmediate(resolve));
      if (kind !== 'lose') continue;
      restore();
      await bench.people.rebuild.mintEpoch();
    }
    for (const heldId of IDS) await bench.release(keyOf(heldId));
    // Applying this fact reveals the loss.
    await bench.put([toAlias('a', 'a')]);
    await allCommitted(bench);
    await until('no link is missing', async () => await linker.ready.links!());
    await allCommitted(bench);
    await linker.close();
    await expectConsistent(bench);
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 20, all: 60 }) });
}, 60_000);
