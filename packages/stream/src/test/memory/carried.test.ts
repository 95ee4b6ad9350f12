import { setImmediate as turn } from 'node:timers/promises';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BlockBuilder, BlockOrigin, BlockSink } from '../../ports.ts';
import { RetryableFault } from '../../ports.ts';
import { send } from '../producer-contract.ts';
import { createMemoryLog } from './index.ts';

const TOPIC = 'topic';
const RECORDS = 40;
const waits = { attempt: { minMs: 0, maxMs: 0 }, pause: { minMs: 0, maxMs: 0 } };

interface Life {
  rowsMax: number;
  /** Turns of the loop until the consumer is killed. */
  turns: number;
  /** Numbers of the attempts, of settling and writing together, that fail with a retryable fault. */
  faults: number[];
}

const life: fc.Arbitrary<Life> = fc.record({
  rowsMax: fc.integer({ min: 1, max: 9 }),
  turns: fc.integer({ min: 0, max: 40 }),
  faults: fc.array(fc.nat({ max: 12 }), { maxLength: 4 }),
});

/**
 * Numbers records consecutively. The first number of a block depends on what the previous block carried and on a
 * counter outside, which is raised when a block is stored, before its offsets are committed.
 */
class Numbering {
  /** Every number that was ever sent for a record, by offset. */
  readonly sent = new Map<number, Set<number>>();
  readonly stored = new Map<number, number>();
  outside = 0;

  createSink(fails: () => boolean, startOf: (origin: BlockOrigin) => number): BlockSink {
    const trip = async () => {
      await turn();
      if (fails()) throw new RetryableFault('busy');
    };
    return { transformVersion: 1, openBlock: () => this.#open(trip, startOf) };
  }

  #open(trip: () => Promise<void>, startOf: (origin: BlockOrigin) => number): BlockBuilder {
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
        await trip();
        start = startOf(origin);
        return { basis: String(start), carries: String(start + offsets.length) };
      },
      write: async () => {
        await trip();
        for (const [index, offset] of offsets.entries()) {
          const number = start + 1 + index;
          this.sent.set(offset, (this.sent.get(offset) ?? new Set()).add(number));
          if (!this.stored.has(offset)) this.stored.set(offset, number);
        }
        this.outside = Math.max(this.outside, start + offsets.length);
        await trip();
      },
      release: () => {},
    };
  }
}

async function number(lives: readonly Life[], choose: (numbering: Numbering, origin: BlockOrigin) => number) {
  const log = createMemoryLog({ partitions: 1 });
  const producer = log.openProducer();
  for (let i = 0; i < RECORDS; i++) await send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`${i}`) }]);
  const numbering = new Numbering();
  const open = ({ rowsMax, faults }: Life) => {
    let attempts = 0;
    const sink = numbering.createSink(
      () => faults.includes(attempts++),
      (origin) => choose(numbering, origin),
    );
    return log.openBlockConsumer({
      topics: [TOPIC],
      sink,
      limits: { rowsMax, bytesMax: 1_000_000, ageMaxMs: 1 },
      waits,
    });
  };
  for (const each of lives) {
    const consumer = open(each);
    for (let i = 0; i < each.turns; i++) await turn();
    consumer.kill();
  }
  const last = open({ rowsMax: 7, turns: 0, faults: [1, 3] });
  await last.idle();
  await last.close();
  return numbering;
}

/** Numbers of records that were sent with several numbers, or whose number does not follow the previous one. */
function faultsOf({ sent, stored }: Numbering): number[] {
  const numbers = Array.from({ length: RECORDS }, (_, offset) => stored.get(offset) ?? Number.NaN);
  return numbers.filter((each, offset) => sent.get(offset)?.size !== 1 || each !== offset + 1);
}

/** For a block that was never named, the carried number and the counter outside must agree. */
const fromOrigin = ({ outside }: Numbering, { carried, basis }: BlockOrigin) => {
  if (basis !== null) return Number(basis);
  return Number(carried) === outside ? outside : Number.NaN;
};

const lives = fc.array(life, { minLength: 1, maxLength: 5 });

describe('blocks that depend on the block before, of consumers that are killed at any step', () => {
  it('depend on the same again, and go on where the block before ended', async () => {
    const property = fc.asyncProperty(lives, async (given) => {
      expect(faultsOf(await number(given, fromOrigin))).toEqual([]);
    });
    await fc.assert(property, { numRuns: runsOf({ quick: 50, all: 150 }) });
  });

  it('differ when a named block is built from the present state: the test above can fail', async () => {
    const property = fc.asyncProperty(lives, async (given) => {
      const forgetful = ({ outside }: Numbering, { carried }: BlockOrigin) => Math.max(Number(carried), outside);
      return faultsOf(await number(given, forgetful)).length === 0;
    });
    await expect(fc.assert(property, { numRuns: 150, endOnFailure: true })).rejects.toThrow('Property failed');
  });

  it('start from the beginning when nothing is carried: the test above can fail', async () => {
    const property = fc.asyncProperty(lives, async (given) => {
      const alone = (_: Numbering, { basis }: BlockOrigin) => Number(basis);
      return faultsOf(await number(given, alone)).length === 0;
    });
    await expect(fc.assert(property, { numRuns: 150, endOnFailure: true })).rejects.toThrow('Property failed');
  });
});
