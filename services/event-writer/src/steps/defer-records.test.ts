import { type BlockBuilder, type Producer, RetryableFault, type StreamRecord } from '@playline/stream';
import { describe, expect, it } from 'vitest';
import { createDeferringBlock } from '../pipeline.ts';

const { signal } = new AbortController();
const NAME = { topic: 't', partition: 0, start: 0, end: 9, transformVersion: 1 };
const recordOf = (offset: number): StreamRecord => ({
  topic: 't',
  partition: 0,
  offset,
  timestampMs: 0,
  key: null,
  value: Buffer.alloc(10),
  headers: {},
});

/** Records at odd offsets cannot be read while `asked`; the one at offset 3 never can. */
function createInner() {
  const state = { asked: true, added: [] as number[], written: [] as number[][] };
  const inner: BlockBuilder = {
    get rows() {
      return state.added.length;
    },
    bytes: 0,
    add({ offset }) {
      if (state.asked && offset % 2 === 1) throw new RetryableFault('asked');
      if (offset === 3) throw new RangeError('no such schema');
      state.added.push(offset);
      return { kind: 'ok' };
    },
    write: async () => void state.written.push([...state.added]),
    release() {},
  };
  return { state, inner };
}

/** A producer that adds the offsets of dead letters to `letters`. Its first calls fail with `faults`. */
function createLetterBox(letters: number[], faults: Error[] = []): Pick<Producer, 'send'> {
  return {
    send(records, done) {
      const fault = faults.shift() ?? null;
      if (fault === null) for (const { headers } of records) letters.push(Number(headers?.['original-offset']));
      done(fault);
    },
  };
}

describe('a deferring block', () => {
  it('defers records that cannot be read yet, and writes nothing before all of them are read', async () => {
    const { state, inner } = createInner();
    const letters: number[] = [];
    const counted: string[] = [];
    const block = createDeferringBlock(inner, {
      deadLetters: createLetterBox(letters),
      countDeferred: (kind) => counted.push(kind),
    });
    for (let offset = 0; offset < 6; offset++) expect(block.add(recordOf(offset))).toEqual({ kind: 'ok' });
    expect([block.rows, block.bytes]).toEqual([6, 30]);
    await expect(block.write(NAME, signal)).rejects.toThrow(RetryableFault);
    expect(state.written).toEqual([]);

    state.asked = false;
    await block.write(NAME, signal);
    expect(state.written).toEqual([[0, 2, 4, 1, 5]]);
    expect(letters).toEqual([3]);
    expect(counted).toEqual(['ok', 'deadLetter', 'ok']);
    expect([block.rows, block.bytes]).toEqual([5, 0]);
    await block.write(NAME, signal);
    expect(state.written.at(-1)).toEqual([0, 2, 4, 1, 5]);
    expect(letters).toEqual([3]);
  });

  it('writes nothing before its dead letters are acknowledged', async () => {
    const { state, inner } = createInner();
    const letters: number[] = [];
    const deadLetters = createLetterBox(letters, [new Error('broker')]);
    const block = createDeferringBlock(inner, { deadLetters, countDeferred() {} });
    block.add(recordOf(3));
    state.asked = false;
    await expect(block.write(NAME, signal)).rejects.toThrow(RetryableFault);
    expect(state.written).toEqual([]);
    await block.write(NAME, signal);
    expect(letters).toEqual([3]);
  });

  it('passes permanent faults on, so that the record becomes a dead letter at once', () => {
    const { state, inner } = createInner();
    state.asked = false;
    const block = createDeferringBlock(inner, { deadLetters: createLetterBox([]), countDeferred() {} });
    expect(() => block.add(recordOf(3))).toThrow(RangeError);
    expect(block.rows).toBe(0);
  });
});
