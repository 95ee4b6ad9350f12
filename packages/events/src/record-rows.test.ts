import type {
  ConsentRecord,
  FenceQuery,
  IdentityDecisionRecord,
  IdentityKind,
  RejectionRecord,
} from '@playline/contracts';
import { consentCodec, IDENTITY_KINDS, identityDecisionCodec, rejectionCodec } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EVENT_TABLE_COLUMNS } from './columns.ts';
import type { LoggedPosition, RecordRows } from './record-rows.ts';
import { consentRows, decisionRows, rejectionRows, toOverrideVersion } from './record-rows.ts';
import { RowBuffer } from './row/row-buffer.ts';
import { readRows } from './row/test/read-columns.ts';

const TIME_MS_LAST = 10_413_791_999_999;
const key = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constantFrom(0, 127, 128, 16_384).map((length) => 'x'.repeat(length)),
);
const time = fc.oneof(fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }), fc.constantFrom(0, TIME_MS_LAST));
const kind = fc.constantFrom<IdentityKind>(...IDENTITY_KINDS);
const position: fc.Arbitrary<LoggedPosition> = fc.record({
  partition: fc.integer({ min: 0, max: 65_535 }),
  offset: fc.oneof(fc.nat(), fc.constantFrom(0, 2 ** 32, Number.MAX_SAFE_INTEGER)),
  timestampMs: time,
});

const consent: fc.Arbitrary<ConsentRecord> = fc.record({
  environmentId: text,
  identityKey: key,
  status: fc.constantFrom('none', 'anonymous', 'full'),
  source: text,
  receivedAt: time,
  traceId: text,
});
const rejection: fc.Arbitrary<RejectionRecord> = fc.record({
  environmentId: text,
  code: text,
  field: text,
  surface: text,
  library: text,
  libraryVersion: text,
  receivedAt: time,
  traceId: text,
  messageIndex: fc.nat(99),
});
const identities = fc.array(fc.record({ key, kind, linkedAt: time }), { maxLength: 5 });
const decision: fc.Arbitrary<IdentityDecisionRecord> = fc.record({
  environmentId: text,
  generation: fc.integer({ min: 0, max: 255 }),
  partition: fc.integer({ min: 0, max: 65_535 }),
  offset: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
  step: fc.integer({ min: 0, max: 255 }),
  messageId: key,
  link: fc.constantFrom('identify', 'alias', 'same_id'),
  aKey: key,
  aKind: kind,
  bKey: key,
  bKind: kind,
  outcome: fc.constantFrom('linked', 'unchanged', 'refused', 'ambiguous'),
  reason: text,
  root: key,
  moved: identities,
  eventTime: time,
  receivedAt: time,
  traceId: text,
  unlink: fc.option(fc.record({ stayedRoot: key, stayed: identities })),
});

function toRows<R>({ tables }: RecordRows<R>, record: R, at: LoggedPosition): Record<string, unknown>[][] {
  return tables.map(({ table, addRows }) => {
    const out = new RowBuffer(16);
    addRows(out, record, at);
    return readRows(out.toBytes(), EVENT_TABLE_COLUMNS[table]);
  });
}

const toColumns = (record: object) =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`),
      Buffer.isBuffer(value) ? value.toString('hex') : value,
    ]),
  );

it('the rows for a consent and a rejection have all stored fields and their log position', () => {
  fc.assert(
    fc.property(consent, rejection, position, (consentRecord, rejectionRecord, at) => {
      const logPosition = { kafka_partition: at.partition, kafka_offset: at.offset };
      const decoded = consentCodec.decode(consentCodec.encode(consentRecord));
      const row = { ...toColumns(consentRecord), logged_at: at.timestampMs, ...logPosition };
      expect(toRows(consentRows, decoded, at)).toEqual([[row]]);
      const rejected = rejectionCodec.decode(rejectionCodec.encode(rejectionRecord));
      // Only Live reads the index, from the log.
      const { messageIndex: _, ...stored } = rejectionRecord;
      expect(toRows(rejectionRows, rejected, at)).toEqual([[{ ...toColumns(stored), ...logPosition }]]);
    }),
  );
});

it('the rows for a decision have all fields, and one override per moved identity', () => {
  fc.assert(
    fc.property(decision, position, (record, at) => {
      const decoded = identityDecisionCodec.decode(identityDecisionCodec.encode(record));
      const [links, overrides, unlinks] = toRows(decisionRows, decoded, at);
      expect(links).toMatchObject([
        {
          environment_id: record.environmentId,
          link_generation: record.generation,
          link_partition: record.partition,
          link_offset: record.offset,
          step: record.step,
          message_id: record.messageId.toString('hex'),
          person_key: record.root.toString('hex'),
          moved_count: record.moved.length,
          trace_id: record.traceId,
          kafka_offset: at.offset,
        },
      ]);
      const toOverrides = (identities: IdentityDecisionRecord['moved'], person: Buffer) =>
        identities.map((one) => [one.key.toString('hex'), person.toString('hex'), one.kind, one.linkedAt]);
      const { moved, root, unlink, outcome, aKey } = record;
      const stayed = unlink === null ? [] : toOverrides(unlink.stayed, unlink.stayedRoot);
      expect(overrides?.map((row) => [row.identity_key, row.person_key, row.kind, row.linked_at])).toEqual([
        ...toOverrides(moved, root),
        ...stayed,
      ]);
      expect([links![0]!.link === 'unlink', links![0]!.outcome === 'unlinked']).toEqual([
        unlink !== null,
        unlink !== null && outcome === 'linked',
      ]);
      const sides = [
        ...(outcome === 'linked' ? [] : [[aKey.toString('hex'), 'none']]),
        ...toOverrides(moved, root).map(([key]) => [key, 'split']),
        ...stayed.map(([key]) => [key, 'stayed']),
      ];
      expect(unlinks?.map((row) => [row.identity_key, row.side])).toEqual(unlink === null ? [] : sides);
      const link = { link_generation: record.generation, link_offset: record.offset, unlinked_at: record.receivedAt };
      for (const row of unlinks!) expect(row).toMatchObject(link);
    }),
  );
});

it('a record with a time outside the column range is refused without changing the buffer', () => {
  const late = { ...fc.sample(consent, 1)[0]!, receivedAt: TIME_MS_LAST + 1 };
  const at = { partition: 0, offset: 0, timestampMs: 0 };
  const out = new RowBuffer(16);
  const { addRows } = consentRows.tables[0]!;
  expect(() => addRows(out, late, at)).toThrow(RangeError);
  expect(() => addRows(out, { ...late, receivedAt: 0 }, { ...at, timestampMs: -1 })).toThrow(RangeError);
  expect([out.rows, out.length]).toEqual([0, 0]);
});

const countIdentities = ({ moved, unlink }: IdentityDecisionRecord) => moved.length + (unlink?.stayed.length ?? 0);

const never = () => {
  throw new Error('unexpected');
};

it("a fenced identity's consent is not stored if it was accepted before the cut-off", () => {
  const record = { ...fc.sample(consent, 1)[0]!, receivedAt: 5 };
  const { environmentId, identityKey: key } = record;
  const queries: FenceQuery[] = [];
  const createQuery = (isFenced: boolean) => (query: FenceQuery) => queries.push(query) > 0 && isFenced;
  const [log] = consentRows.tables;
  expect(log!.withoutFenced(record, createQuery(true))).toBeNull();
  expect(log!.withoutFenced(record, createQuery(false))).toBe(record);
  const query = { environmentId, key, eventTimeMs: 5, receivedAtMs: 5 };
  expect(queries).toEqual([query, query]);
});

it('a decision is stored without links and moves of fenced identities', () => {
  const [links, overrides, unlinks] = decisionRows.tables;
  fc.assert(
    fc.property(decision, fc.nat(), (record, at) => {
      const fenceOf = (key: Buffer) => (query: FenceQuery) => query.key.equals(key);
      expect(links!.withoutFenced(record, () => false)).toBe(record);
      expect(links!.withoutFenced(record, fenceOf(record.aKey))).toBeNull();
      expect(links!.withoutFenced(record, fenceOf(record.bKey))).toBeNull();
      const stored = links!.withoutFenced(record, fenceOf(record.root));
      if (![record.aKey, record.bKey].some((key) => key.equals(record.root)))
        expect(stored).toEqual({ ...record, root: Buffer.alloc(16) });
      const stayed = record.unlink?.stayed ?? [];
      const all = [...record.moved, ...stayed];
      expect(overrides!.withoutFenced(record, () => false)).toBe(all.length === 0 ? null : record);
      expect(overrides!.withoutFenced(record, () => true)).toBeNull();
      const erased = all[at % Math.max(1, all.length)];
      if (erased === undefined) return;
      const withoutErased = (list: typeof all) => list.filter(({ key }) => !key.equals(erased.key));
      const unlink = record.unlink && { ...record.unlink, stayed: withoutErased(stayed) };
      const remaining =
        withoutErased(all).length === 0 ? null : { ...record, moved: withoutErased(record.moved), unlink };
      expect(overrides!.withoutFenced(record, fenceOf(erased.key))).toEqual(remaining);
      if (record.unlink !== null && record.outcome === 'linked')
        expect(unlinks!.withoutFenced(record, fenceOf(erased.key))).toEqual(remaining);
    }),
  );
});

it('an unlink is stored without identities that were fenced after the unlink', () => {
  const [, , unlinks] = decisionRows.tables;
  fc.assert(
    fc.property(decision, (record) => {
      const isOnTime = ({ eventTimeMs, receivedAtMs }: FenceQuery) =>
        eventTimeMs === record.receivedAt && receivedAtMs === record.receivedAt;
      expect(unlinks!.withoutFenced(record, isOnTime)).toBeNull();
      const isEmpty = record.unlink === null || (record.outcome === 'linked' && countIdentities(record) === 0);
      expect(unlinks!.withoutFenced(record, () => false)).toBe(isEmpty ? null : record);
      const hasNoSplit = record.unlink !== null && record.outcome !== 'linked';
      if (hasNoSplit) expect(unlinks!.withoutFenced(record, ({ key }) => key.equals(record.aKey))).toBeNull();
      // Links are frequent and must not query fences.
      if (record.unlink === null) expect(unlinks!.withoutFenced(record, never)).toBeNull();
    }),
  );
});

it('a rejection is stored regardless of fences', () => {
  const record = fc.sample(rejection, 1)[0]!;
  expect(rejectionRows.tables[0]!.withoutFenced(record, never)).toBe(record);
});

const toVersion = ([generation = 0, offset = 0, step = 0]: number[]) => toOverrideVersion({ generation, offset, step });

it("an override's version increases with generation, offset and step, and fits into 64 bits", () => {
  const last = 2 ** 48 - 1;
  const versions = [
    [0, 0, 0],
    [0, 0, 255],
    [0, 1, 0],
    [0, last, 255],
    [1, 0, 0],
    [255, last, 255],
  ].map(toVersion);
  expect(versions).toEqual([...versions].sort((a, b) => (a < b ? -1 : 1)));
  expect(new Set(versions).size).toBe(versions.length);
  expect(versions.at(-1)).toBe(2n ** 64n - 1n);
});

it('toOverrideVersion rejects a generation, offset or step that is out of range', () => {
  for (const parts of [
    [256, 0, 0],
    [0, 2 ** 48, 0],
    [0, 0, 256],
    [0, -1, 0],
  ])
    expect(() => toVersion(parts)).toThrow(RangeError);
});
