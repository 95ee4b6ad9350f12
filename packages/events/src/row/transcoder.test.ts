import { frameRecord, type MessageRecord, messageRecordCodec } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseRecordSchema, toEventFields, UnsupportedSchemaError } from '../columns.ts';
import { AvroCursor } from './avro-cursor.ts';
import { createRowPlan } from './plan.ts';
import { RowBuffer } from './row-buffer.ts';
import { arbitraryRecord } from './test/arbitrary-record.ts';
import { readEventRow } from './test/read-row.ts';
import { RowTranscoder } from './transcoder.ts';

const SCHEMA_ID = 7;
const plan = createRowPlan(messageRecordCodec.schema);
const frame = (record: MessageRecord) => frameRecord(SCHEMA_ID, messageRecordCodec.encode(record));
const toInput = (value: Buffer, offset = 0) => ({ value, partition: 3, offset });

const expected = (record: MessageRecord, offset = 0) => ({
  ...Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString('hex') : value]),
  ),
  partition: 3,
  offset,
});

/** Encodes the record with reordered fields, omitted fields, and an additional unknown field of each kind. */
function rewrite(record: MessageRecord, options: { order: number[]; without: string[] }) {
  const fields = parseRecordSchema(messageRecordCodec.schema);
  const cursor = new AvroCursor();
  cursor.source = messageRecordCodec.encode(record);
  const pieces = fields.map((field) => {
    const start = cursor.at;
    cursor.skip(field.type);
    return { field, bytes: cursor.source.subarray(start, cursor.at) };
  });
  const unknown = [
    { field: { name: 'tags', type: { type: 'array', items: 'string' } }, bytes: Buffer.from([2, 2, 65, 0]) },
    { field: { name: 'counts', type: { type: 'map', values: 'long' } }, bytes: Buffer.from([1, 6, 2, 65, 2, 0]) },
    { field: { name: 'mood', type: { type: 'enum', name: 'Mood', symbols: ['a', 'b'] } }, bytes: Buffer.from([2]) },
    { field: { name: 'rank', type: ['null', 'int'] }, bytes: Buffer.from([2, 0x80, 1]) },
  ];
  const ordered = [...options.order.map((index) => pieces[index]!), ...unknown].filter(
    ({ field }) => !options.without.includes(field.name),
  );
  const schema = JSON.stringify({ type: 'record', name: 'Other', fields: ordered.map(({ field }) => field) });
  return { schema, value: frameRecord(SCHEMA_ID, Buffer.concat(ordered.map(({ bytes }) => bytes))) };
}

const DENSITY = plan.fields.findIndex(({ name }) => name === 'screenDensity');
const FIELD_INDEXES = [...plan.fields.keys()];

it('the transcoder appends a row with the values of the record and does not change earlier rows', () => {
  expect(plan.isInColumnOrder).toBe(true);
  const transcoder = new RowTranscoder();
  fc.assert(
    fc.property(fc.array(arbitraryRecord, { minLength: 1, maxLength: 3 }), (records) => {
      const out = new RowBuffer(64);
      for (const [offset, record] of records.entries()) transcoder.add(out, plan, toInput(frame(record), offset));
      const rows = out.rowEnds.map((end, index) => out.bytes.subarray(out.rowEnds[index - 1] ?? 0, end));
      expect(rows.map(readEventRow)).toEqual(records.map(expected));
    }),
  );
});

it('the transcoder matches fields of other schemas by name, skips unknown fields and fills in missing fields', () => {
  const transcoder = new RowTranscoder();
  const orders = fc.shuffledSubarray(FIELD_INDEXES, { minLength: FIELD_INDEXES.length });
  fc.assert(
    fc.property(arbitraryRecord, orders, (record, order) => {
      const { schema, value } = rewrite(record, { order, without: ['pageTitle', 'toKey', 'screenDensity', 'test'] });
      const otherPlan = createRowPlan(schema);
      expect(otherPlan.isInColumnOrder).toBe(false);
      const out = new RowBuffer(64);
      transcoder.add(out, otherPlan, toInput(value));
      const defaults = { pageTitle: '', toKey: '0'.repeat(32), screenDensity: null, test: false };
      expect(readEventRow(out.toBytes())).toEqual({ ...expected(record), ...defaults });
      expect(transcoder.head.environmentId).toBe(record.environmentId);
    }),
  );
});

it('the transcoder refuses a truncated record or an additional byte without changing its output', () => {
  const transcoder = new RowTranscoder();
  const plans = [plan, { ...plan, isInColumnOrder: false }];
  fc.assert(
    fc.property(arbitraryRecord, (record) => {
      const small = Object.fromEntries(
        Object.entries(record).map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, 90) : value]),
      ) as unknown as MessageRecord;
      const value = frame(small);
      for (const each of plans) {
        const out = new RowBuffer(4096);
        transcoder.add(out, each, toInput(value));
        const before = Buffer.from(out.toBytes());
        for (let length = 5; length < value.length; length++)
          expect(() => transcoder.add(out, each, toInput(value.subarray(0, length)))).toThrow(RangeError);
        expect(() => transcoder.add(out, each, toInput(Buffer.concat([value, Buffer.of(0)])))).toThrow(RangeError);
        expect(out.rows).toBe(1);
        expect(out.toBytes().equals(before)).toBe(true);
      }
    }),
    { numRuns: 20 },
  );
});

it('the transcoder converts arbitrary bytes to a row or a RangeError without changing earlier rows', () => {
  const transcoder = new RowTranscoder();
  const corruptions = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(arbitraryRecord, corruptions, (record, changes) => {
      const valid = frame(record);
      const value = Buffer.from(valid);
      for (const [position, byte] of changes) value[5 + (position % (value.length - 5))] = byte;
      const out = new RowBuffer(64);
      transcoder.add(out, plan, toInput(valid));
      const before = Buffer.from(out.toBytes());
      try {
        transcoder.add(out, plan, toInput(value));
        readEventRow(out.bytes.subarray(out.rowEnds[0]!, out.length));
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        expect(out.rows).toBe(1);
      }
      expect(out.bytes.subarray(0, before.length).equals(before)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

it('the row head contains the keys and times of the row', () => {
  const transcoder = new RowTranscoder();
  fc.assert(
    fc.property(arbitraryRecord, (record) => {
      const keyed = { ...record, fromKey: Buffer.alloc(16) };
      transcoder.add(new RowBuffer(64), plan, toInput(frame(keyed)));
      const { head } = transcoder;
      const { identityKey, anonymousKey, userKey, toKey } = record;
      const [own, all]: [Buffer[], Buffer[]] = [[], []];
      expect(head.someOwnKey((key) => own.push(key) < 0)).toBe(false);
      expect(own).toEqual([identityKey, userKey, keyed.fromKey, toKey]);
      expect(head.someKey((source, start) => all.push(source.subarray(start, start + 16)) < 0)).toBe(false);
      expect(all).toEqual([identityKey, anonymousKey, userKey, keyed.fromKey, toKey]);
      expect(head.anonymousKey).toEqual(anonymousKey);
      expect(head.environmentId).toBe(record.environmentId);
      expect([head.eventTimeMs, head.receivedAtMs]).toEqual([record.eventTime, record.receivedAt]);
    }),
  );
});

it('the transcoder reads a length that is encoded with more bytes than necessary', () => {
  const record = { ...fc.sample(arbitraryRecord, { numRuns: 1, seed: 1 })[0]!, environmentId: 'x'.repeat(200) };
  const value = frame(record);
  // The zigzag length 400 in two bytes, then the same number in three bytes.
  expect([...value.subarray(5, 7)]).toEqual([0x90, 0x03]);
  const longer = Buffer.concat([value.subarray(0, 5), Buffer.of(0x90, 0x83, 0), value.subarray(7)]);
  const out = new RowBuffer(64);
  new RowTranscoder().add(out, plan, toInput(longer));
  expect(readEventRow(out.toBytes())).toEqual(expected(record));
});

it('the transcoder reads a field whose type Avro can convert', () => {
  const { fields, ...rest } = JSON.parse(messageRecordCodec.schema) as { fields: { name: string; type: unknown }[] };
  const changedTypes: Record<string, unknown> = {
    eventName: 'bytes',
    receivedAt: 'int',
    screenDensity: ['double', 'null'],
  };
  const changed = fields.map((field) => ({
    ...field,
    type: changedTypes[field.name] ?? field.type,
    default: undefined,
  }));
  const schema = JSON.stringify({ ...rest, fields: changed });
  const otherPlan = createRowPlan(schema);
  const transcoder = new RowTranscoder();
  fc.assert(
    fc.property(arbitraryRecord, (arbitrary) => {
      const record = { ...arbitrary, receivedAt: 1_000_000_000 };
      // The bytes differ only in the branch index of the optional double.
      const bytes = messageRecordCodec.encode(record);
      const cursor = new AvroCursor();
      cursor.source = bytes;
      for (const field of plan.fields.slice(0, DENSITY)) cursor.skip(field.type);
      bytes[cursor.at]! ^= 2;
      const out = new RowBuffer(64);
      transcoder.add(out, otherPlan, toInput(frameRecord(SCHEMA_ID, bytes)));
      expect(readEventRow(out.toBytes())).toEqual(expected(record));
      expect(transcoder.head.environmentId).toBe(record.environmentId);
      const truncated = frameRecord(SCHEMA_ID, bytes.subarray(0, -1));
      expect(() => transcoder.add(out, otherPlan, toInput(truncated))).toThrow(RangeError);
      expect(out.rows).toBe(1);
    }),
  );
});

it('the schema default of a message field must equal the default value of its column', () => {
  const withDefault = (name: string, value: unknown) => {
    const { fields, ...rest } = JSON.parse(messageRecordCodec.schema) as { fields: { name: string }[] };
    const changed = fields.map((field) => (field.name === name ? { ...field, default: value } : field));
    return () => toEventFields(JSON.stringify({ ...rest, fields: changed }));
  };
  expect(withDefault('surface', '')).not.toThrow();
  expect(withDefault('test', false)).not.toThrow();
  expect(withDefault('surface', 'web')).toThrow('surface: its default must be ""');
});

it('createRowPlan refuses a schema whose records cannot be converted to rows', () => {
  const fields = JSON.parse(messageRecordCodec.schema).fields as { name: string }[];
  const toSchema = (list: unknown[]) => JSON.stringify({ ...JSON.parse(messageRecordCodec.schema), fields: list });
  expect(() => createRowPlan(toSchema(fields.filter(({ name }) => name !== 'messageId')))).toThrow(
    UnsupportedSchemaError,
  );
  const changed = fields.map((field) => (field.name === 'eventTime' ? { name: 'eventTime', type: 'string' } : field));
  expect(() => createRowPlan(toSchema(changed))).toThrow(UnsupportedSchemaError);
  expect(() => createRowPlan('{"type":"string"}')).toThrow(UnsupportedSchemaError);
});

it('RowBuffer.pick returns exactly the picked rows', () => {
  const transcoder = new RowTranscoder();
  const all = fc.uniqueArray(fc.nat(1_000_000), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(arbitraryRecord, all, fc.func(fc.boolean()), (record, offsets, isStored) => {
      const value = frame({ ...record, properties: '', traits: '' });
      const build = (selected: number[]) => {
        const out = new RowBuffer(64);
        for (const offset of selected) transcoder.add(out, plan, toInput(value, offset));
        return out;
      };
      const out = build(offsets);
      const picked = offsets.flatMap((offset, row) => (isStored(offset) ? [] : [row]));
      const rest = picked.map((row) => offsets[row]!);
      expect(picked.map((row) => out.offsetAt(row))).toEqual(rest);
      expect(out.pick(picked).equals(build(rest).toBytes())).toBe(true);
    }),
    { numRuns: 50 },
  );
});
