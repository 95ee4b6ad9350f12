import { type BlockBuilder, type Producer, RetryableFault } from '@playline/stream';
import { expect, it } from 'vitest';
import { createDeferringBlock } from '../pipeline.ts';
import { toRecord } from '../test/records.ts';

const { signal } = new AbortController();
const NAME = { topic: 't', partition: 0, start: 0, end: 9, transformVersion: 1 };
const recordAt = (offset: number) => toRecord('t', Buffer.alloc(10), offset);

/** Creates a block that cannot read odd offsets while `isPending`, and never offset 3. */
function createInner() {
  const state = { isPending: true, added: [] as number[], written: [] as number[][] };
  const inner: BlockBuilder = {
    get rows() {
      return state.added.length;
    },
    bytes: 0,
    add({ offset }) {
      if (state.isPending && offset % 2 === 1) throw new RetryableFault('pending');
      if (offset === 3) throw new RangeError('no such schema');
      state.added.push(offset);
      return { kind: 'ok' };
    },
    write: async () => void state.written.push([...state.added]),
    release() {},
  };
  return { state, inner };
}

/** Creates a producer that adds the offsets of dead letters to `sent`. Its first calls fail with `faults`. */
function createDeadLetters(sent: number[], faults: Error[] = []): Pick<Producer, 'send'> {
  return {
    send(records, done) {
      const fault = faults.shift() ?? null;
      if (fault === null) for (const { headers } of records) sent.push(Number(headers?.['original-offset']));
      done(fault);
    },
  };
}

it('a deferring block defers unreadable records and writes nothing until all records are read', async () => {
  const { state, inner } = createInner();
  const sent: number[] = [];
  const counted: string[] = [];
  const block = createDeferringBlock(inner, {
    deadLetters: createDeadLetters(sent),
    countDeferred: (kind) => counted.push(kind),
  });
  for (let offset = 0; offset < 6; offset++) expect(block.add(recordAt(offset))).toEqual({ kind: 'ok' });
  expect([block.rows, block.bytes]).toEqual([6, 30]);
  await expect(block.write(NAME, signal)).rejects.toThrow(RetryableFault);
  expect(state.written).toEqual([]);

  state.isPending = false;
  await block.write(NAME, signal);
  expect(state.written).toEqual([[0, 2, 4, 1, 5]]);
  expect(sent).toEqual([3]);
  expect(counted).toEqual(['ok', 'deadLetter', 'ok']);
  expect([block.rows, block.bytes]).toEqual([5, 0]);
  await block.write(NAME, signal);
  expect(state.written.at(-1)).toEqual([0, 2, 4, 1, 5]);
  expect(sent).toEqual([3]);
});

it('a deferring block writes nothing before its dead letters are acknowledged', async () => {
  const { state, inner } = createInner();
  const sent: number[] = [];
  const deadLetters = createDeadLetters(sent, [new Error('broker')]);
  const block = createDeferringBlock(inner, { deadLetters, countDeferred() {} });
  block.add(recordAt(3));
  state.isPending = false;
  await expect(block.write(NAME, signal)).rejects.toThrow(RetryableFault);
  expect(state.written).toEqual([]);
  await block.write(NAME, signal);
  expect(sent).toEqual([3]);
});

it('a deferring block rethrows a permanent fault, so that the record becomes a dead letter immediately', () => {
  const { state, inner } = createInner();
  state.isPending = false;
  const block = createDeferringBlock(inner, { deadLetters: createDeadLetters([]), countDeferred() {} });
  expect(() => block.add(recordAt(3))).toThrow(RangeError);
  expect(block.rows).toBe(0);
});
