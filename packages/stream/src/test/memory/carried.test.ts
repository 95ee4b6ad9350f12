import { setImmediate as nextTurn } from 'node:timers/promises';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { BlockBuilder, BlockOrigin, BlockSink } from '../../ports.ts';
import { RetryableFault } from '../../ports.ts';
import { NO_WAITS as waits } from '../fake-log.ts';
import { send } from '../producer-contract.ts';
import { createMemoryLog } from './index.ts';

const TOPIC = 'topic';
const RECORDS = 40;

interface ConsumerRun {
  rowsMax: number;
  turns: number;
  /** Indexes of the attempts that fail with a retryable fault. Settles and writes are counted together. */
  faults: number[];
}

const consumerRun: fc.Arbitrary<ConsumerRun> = fc.record({
  rowsMax: fc.integer({ min: 1, max: 9 }),
  turns: fc.integer({ min: 0, max: 40 }),
  faults: fc.array(fc.nat({ max: 12 }), { maxLength: 4 }),
});

// Numbers records consecutively. A block's first number depends on what the previous block carried and on a counter
// that increases when a block is stored, before its offsets are committed.
class Numbering {
  readonly sent = new Map<number, Set<number>>();
  readonly stored = new Map<number, number>();
  counter = 0;

  createSink(fails: () => boolean, startOf: (origin: BlockOrigin) => number): BlockSink {
    const failIfPlanned = async () => {
      await nextTurn();
      if (fails()) throw new RetryableFault('busy');
    };
    return { transformVersion: 1, openBlock: () => this.#open(failIfPlanned, startOf) };
  }

  #open(failIfPlanned: () => Promise<void>, startOf: (origin: BlockOrigin) => number): BlockBuilder {
    const offsets: number[] = [];
    let start = Number.NaN;
    return {
      get rows() {
        return offsets.length;
      },
      bytes: 0,
      add: ({ offset }) => {
        offsets.push(offset);
        return { kind: 'ok' };
      },
      settle: async (origin) => {
        await failIfPlanned();
        start = startOf(origin);
        return { basis: String(start), carries: String(start + offsets.length) };
      },
      write: async () => {
        await failIfPlanned();
        for (const [index, offset] of offsets.entries()) {
          const number = start + 1 + index;
          this.sent.set(offset, (this.sent.get(offset) ?? new Set()).add(number));
          if (!this.stored.has(offset)) this.stored.set(offset, number);
        }
        this.counter = Math.max(this.counter, start + offsets.length);
        await failIfPlanned();
      },
      release: () => {},
    };
  }
}

async function numberRecords(
  runs: readonly ConsumerRun[],
  choose: (numbering: Numbering, origin: BlockOrigin) => number,
) {
  const log = createMemoryLog({ partitions: 1 });
  const producer = log.openProducer();
  for (let i = 0; i < RECORDS; i++) await send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`${i}`) }]);
  const numbering = new Numbering();
  const open = ({ rowsMax, faults }: ConsumerRun) => {
    let attempts = 0;
    const sink = numbering.createSink(
      () => faults.includes(attempts++),
      (origin) => choose(numbering, origin),
    );
    const limits = { rowsMax, bytesMax: 1_000_000, ageMaxMs: 1 };
    return log.openBlockConsumer({ topics: [TOPIC], sink, limits, waits });
  };
  for (const each of runs) {
    const consumer = open(each);
    for (let i = 0; i < each.turns; i++) await nextTurn();
    consumer.kill();
  }
  const last = open({ rowsMax: 7, turns: 0, faults: [1, 3] });
  await last.idle();
  await last.close();
  return numbering;
}

/** Returns the records that were sent with several numbers, or whose number does not follow the previous one. */
function faultsOf({ sent, stored }: Numbering): number[] {
  const numbers = Array.from({ length: RECORDS }, (_, offset) => stored.get(offset) ?? Number.NaN);
  return numbers.filter((each, offset) => sent.get(offset)?.size !== 1 || each !== offset + 1);
}

/** Returns NaN for a block without an intent unless the carried number and the counter are equal. */
const fromOrigin = ({ counter }: Numbering, { carried, basis }: BlockOrigin) => {
  if (basis !== null) return Number(basis);
  return Number(carried) === counter ? counter : Number.NaN;
};

const runs = fc.array(consumerRun, { minLength: 1, maxLength: 5 });

it('blocks that depend on the previous block are rebuilt with the same rows after a kill at any step', async () => {
  const property = fc.asyncProperty(runs, async (consumerRuns) => {
    expect(faultsOf(await numberRecords(consumerRuns, fromOrigin))).toEqual([]);
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 50, all: 150 }) });
});

it.each<[string, typeof fromOrigin]>([
  ['a block with an intent is built from new state', ({ counter }, { carried }) => Math.max(Number(carried), counter)],
  ['nothing is carried', (_, { basis }) => Number(basis)],
])('the test of dependent blocks fails when %s', async (_, choose) => {
  const property = fc.asyncProperty(
    runs,
    async (consumerRuns) => faultsOf(await numberRecords(consumerRuns, choose)).length === 0,
  );
  await expect(fc.assert(property, { numRuns: 150, endOnFailure: true })).rejects.toThrow('Property failed');
});
