import { addConsentRow, addOverrideRows, RowBuffer, StoreFault } from '@playline/events';
import { createMemoryEventStore } from '@playline/events/memory';
import { createMetrics } from '@playline/runtime';
import { createStoreCalls, createTokenNotes, OversizeFault, RetryableFault } from '@playline/stream';
import { expect, it } from 'vitest';
import { toDecision } from '../test/records.ts';
import { createWriteRows } from './block-step.ts';

const KEY = Buffer.alloc(16, 1);
const { signal } = new AbortController();
const consent = {
  environmentId: 'demo',
  identityKey: KEY,
  status: 'full',
  source: '',
  receivedAt: 1,
  traceId: '',
} as const;

function toConsentRows(offsets: readonly number[]): RowBuffer {
  const rows = new RowBuffer(1024);
  for (const offset of offsets) addConsentRow(rows, consent, { partition: 3, offset, timestampMs: 1 });
  return rows;
}

/** All rows for this consent have the same length, so a block can be split into rows. */
const ROW_BYTES = toConsentRows([0]).length;
const readOffsets = ({ rows }: { rows: Buffer }) =>
  Array.from({ length: rows.length / ROW_BYTES }, (_, row) => Number(rows.readBigUInt64LE((row + 1) * ROW_BYTES - 8)));

const createFault = (kind: StoreFault['kind'], code: string) => new StoreFault(code, { kind, code });
const killed = createFault('transient', 'ECONNRESET');
const tooLarge = createFault('oversize', 'MEMORY_LIMIT_EXCEEDED');

function openBlock(offsets: readonly number[] = [10, 11, 12, 13]) {
  const store = createMemoryEventStore((block) => (block.table === 'consent_log' ? readOffsets(block) : []));
  const metrics = createMetrics('test');
  const writeRows = createWriteRows({ store, calls: createStoreCalls(metrics) });
  const notes = createTokenNotes();
  const rows = toConsentRows(offsets);
  const name = { topic: 'consents', partition: 3, start: 10, end: 14, transformVersion: 1 };
  const write = (triedBefore: boolean) =>
    writeRows({ table: 'consent_log', rows, block: { ...name, triedBefore }, notes, signal });
  const overrides = new RowBuffer(1024);
  const writeOverrides = (triedBefore: boolean) =>
    writeRows({ table: 'identity_overrides', rows: overrides, notes, signal, block: { ...name, triedBefore } });
  const stored = () => store.blocks.filter(({ table }) => table === 'consent_log').flatMap(readOffsets);
  return { store, metrics, write, stored, overrides, writeOverrides };
}

it('a block that was not tried before is written with one insert and no read', async () => {
  const { store, write, stored } = openBlock();
  store.storedOffsets = () => expect.fail('unexpected read');
  await write(false);
  expect(stored()).toEqual([10, 11, 12, 13]);
});

it('rows are stored even if the store has recorded their token without the rows', async () => {
  const { store, write, stored } = openBlock();
  store.failNext(killed, 'token');
  await expect(write(false)).rejects.toThrow(RetryableFault);
  await write(true);
  expect(stored()).toEqual([10, 11, 12, 13]);
  expect(store.blocks.map(({ token }) => token)).toEqual([
    'consents|3|10|11|0|consent_log|1',
    'consents|3|12|13|0|consent_log|1',
  ]);
});

it('missing rows are stored even if the store has recorded their token', async () => {
  const { store, write, stored } = openBlock();
  store.failNext(killed, 'token');
  store.setStoredOffsets([11, 13]);
  await expect(write(false)).rejects.toThrow(RetryableFault);
  await write(true);
  expect(stored()).toEqual([10, 12]);
});

it('rows are stored even if the store has recorded all of their tokens without the rows', async () => {
  const { store, write, stored } = openBlock([12]);
  for (let attempt = 0; attempt < 3; attempt++) {
    store.failNext(killed, 'token');
    await expect(write(attempt > 0)).rejects.toThrow(RetryableFault);
  }
  await write(true);
  expect(stored()).toEqual([12]);
});

it('stored rows are not sent again if only the response was lost', async () => {
  const { store, write, stored } = openBlock();
  store.failNext(killed, 'rows');
  await expect(write(false)).rejects.toThrow(RetryableFault);
  await write(true);
  expect(stored()).toEqual([10, 11, 12, 13]);
  expect(store.blocks).toHaveLength(1);
});

it('rows that are too large for one insert are sent in halves and stored once', async () => {
  const { store, write, stored } = openBlock();
  const insert = store.insert;
  store.insert = async (block) => {
    if (block.rows.length > ROW_BYTES) throw tooLarge;
    await insert(block);
  };
  let refusals = 0;
  for (let isDone = false; !isDone; ) {
    isDone = await write(refusals > 0).then(
      () => true,
      (fault) => {
        expect(fault).toBeInstanceOf(OversizeFault);
        return ++refusals > 50;
      },
    );
  }
  expect(refusals).toBeLessThan(50);
  expect(stored().sort()).toEqual([10, 11, 12, 13]);
});

it('a permanent fault is rethrown, and each fault is counted by code', async () => {
  const { store, metrics, write } = openBlock();
  store.failNext(createFault('permanent', 'UNKNOWN_TABLE'));
  await expect(write(false)).rejects.not.toThrow(RetryableFault);
  store.failNext(killed);
  await expect(write(true)).rejects.toThrow(RetryableFault);
  const text = await metrics.text();
  for (const code of ['UNKNOWN_TABLE', 'ECONNRESET'])
    expect(text).toContain(`playline_store_faults_total{table="consent_log",code="${code}",service="test"} 1`);
});

it('rows without offsets are stored, in halves if they are too large for one insert', async () => {
  const { store, overrides, writeOverrides } = openBlock();
  const moved = [0, 1, 2, 3].map((index) => ({ key: Buffer.alloc(16, index), kind: 'epic' as const, linkedAt: 1 }));
  addOverrideRows(overrides, toDecision({ moved }));
  const rowBytes = overrides.length / 4;
  store.failNext(killed, 'token');
  for (let refusal = 0; refusal < 5; refusal++) store.failNext(tooLarge);
  for (let attempt = 0; attempt < 6; attempt++)
    await expect(writeOverrides(attempt > 0)).rejects.toThrow(RetryableFault);
  await writeOverrides(true);
  expect(store.blocks.map(({ rows }) => rows.length)).toEqual([2 * rowBytes, 2 * rowBytes]);
  expect(Buffer.concat(store.blocks.map(({ rows }) => rows)).equals(overrides.toBytes())).toBe(true);
});
