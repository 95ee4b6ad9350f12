import { frameRecord, messageRecordCodec } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createRowPlan } from './plan.ts';
import { RowBuffer } from './row-buffer.ts';
import { clearAnonymousId } from './row-columns.ts';
import { arbitraryRecord } from './test/arbitrary-record.ts';
import { readEventRow } from './test/read-row.ts';
import { RowTranscoder } from './transcoder.ts';

it('clearAnonymousId removes the anonymous id of the last row without changing other values or rows', () => {
  const plan = createRowPlan(messageRecordCodec.schema);
  const transcoder = new RowTranscoder();
  const longId = fc.integer({ min: 100, max: 20_000 }).map((length) => 'x'.repeat(length));
  fc.assert(
    fc.property(arbitraryRecord, arbitraryRecord, fc.option(longId), (before, record, id) => {
      const out = new RowBuffer(64);
      const records = [before, { ...record, anonymousId: id ?? record.anonymousId }];
      for (const [offset, each] of records.entries())
        transcoder.add(out, plan, { value: frameRecord(1, messageRecordCodec.encode(each)), partition: 2, offset });
      // A copy, because `readEventRow` reverses the message id in place.
      const read = (row: number) => readEventRow(Buffer.from(out.rowAt(row)));
      const [first, complete] = [read(0), read(1)];
      clearAnonymousId(out);
      expect(out.rows).toBe(2);
      expect(read(0)).toEqual(first);
      expect(read(1)).toEqual({ ...complete, anonymousId: '', anonymousKey: '0'.repeat(32) });
      expect(out.offsetAt(1)).toBe(1);
    }),
  );
});
