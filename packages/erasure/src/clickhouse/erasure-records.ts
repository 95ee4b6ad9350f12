import type {
  ErasureFence,
  ErasureProgress,
  ErasureReceipt,
  ErasureRecords,
  ErasureRequest,
  FenceReading,
  StoredFence,
} from '../records.ts';
import { type ClickHouseTarget, type Connection, openConnection, type SentColumn } from './connection.ts';
import { toUuidText } from './predicates.ts';
import {
  type FenceRow,
  fromFenceRow,
  fromProgressRow,
  fromReceiptRow,
  fromRequestRow,
  PROGRESS_COLUMNS,
  type ProgressRow,
  RECEIPT_COLUMNS,
  REQUEST_COLUMNS,
  type ReceiptRow,
  type RequestRow,
  toFenceRow,
  toProgressRow,
  toReceiptRow,
  toRequestRow,
} from './record-rows.ts';

const FENCE_COLUMNS: readonly SentColumn[] = [
  { name: 'environment_id', type: 'String', as: 'environment_id' },
  { name: 'identity_key', type: 'String', as: 'toFixedString(unhex(identity_key), 16)' },
  { name: 'cutoff_at', type: 'Int64', as: "fromUnixTimestamp64Milli(cutoff_at, 'UTC')" },
  { name: 'erasure_id', type: 'UUID', as: 'erasure_id' },
];

const RECEIPT_FIELDS = `toString(erasure_id) AS erasure_id, environment_id, lower(hex(closure_hash)) AS closure_hash,
  closure_count, deleted, verified, log_ends, trace_id,
  ${['cutoff', 'accepted', 'fenced', 'visibly_erased', 'physically_erased', 'log_expires', 'log_expired']
    .map((name) => `toUnixTimestamp64Milli(${name}_at) AS ${name}_ms`)
    .join(', ')}`;

const REQUEST_FIELDS = `toString(erasure_id) AS erasure_id, environment_id,
  arrayMap(key -> lower(hex(key)), subject_keys) AS subjects, arrayMap(key -> lower(hex(key)), member_keys) AS members,
  toUnixTimestamp64Milli(cutoff_at) AS cutoff_ms, toUnixTimestamp64Milli(requested_at) AS requested_ms, trace_id`;

/** Opens the records; connects with the first call. */
export function openErasureRecords(target: ClickHouseTarget): ErasureRecords {
  const connection = openConnection(target);
  return {
    putRequests: (requests: readonly ErasureRequest[]) =>
      connection.insert('erasure_requests', REQUEST_COLUMNS, requests.map(toRequestRow)),
    readUnfinished: () => readUnfinished(connection),
    putFences: async (fences: readonly ErasureFence[]) =>
      connection.insert('erasure_fences', FENCE_COLUMNS, fences.map(toFenceRow)),
    readFences: (reading = {}) => readFences(connection, reading),
    putReceipts: (receipts: readonly ErasureReceipt[]) =>
      connection.insert('erasure_receipts', RECEIPT_COLUMNS, receipts.map(toReceiptRow)),
    readReceipt: async (erasureId) => {
      const id = `erasure_id = '${toUuidText(erasureId)}'`;
      const [receipt] = await readReceipts(connection, id);
      return receipt ?? null;
    },
    readOpenReceipts: () => readReceipts(connection, 'physically_erased_at IS NULL OR log_expired_at IS NULL'),
    putProgress: (progress: readonly ErasureProgress[]) =>
      connection.insert('erasure_progress', PROGRESS_COLUMNS, progress.map(toProgressRow)),
    readProgress: () => readProgress(connection),
    dropProgress: (batchId) => connection.run(`ALTER TABLE erasure_progress DROP PARTITION '${toUuidText(batchId)}'`),
    ready: () => connection.ready(),
    close: () => connection.close(),
  };
}

async function readProgress(connection: Connection): Promise<ErasureProgress[]> {
  const rows = await connection.read<ProgressRow>(
    `SELECT toString(batch_id) AS batch_id, toString(erasure_id) AS erasure_id, environment_id, deleted,
       toUnixTimestamp64Milli(cutoff_at) AS cutoff_ms, arrayMap(key -> lower(hex(key)), closure_keys) AS closure
     FROM erasure_progress FINAL ORDER BY batch_id, erasure_id`,
  );
  return rows.map(fromProgressRow);
}

async function readUnfinished(connection: Connection): Promise<ErasureRequest[]> {
  const rows = await connection.read<RequestRow>(`SELECT ${REQUEST_FIELDS} FROM erasure_requests FINAL
    WHERE erasure_id NOT IN (SELECT erasure_id FROM erasure_receipts) ORDER BY requested_ms, erasure_id`);
  return rows.map(fromRequestRow);
}

async function* readFences(connection: Connection, { knownParts, signal }: FenceReading): AsyncGenerator<StoredFence> {
  const known = [...(knownParts ?? [])];
  // Without FINAL: rows that a merge has not folded yet come twice, and the reader takes the later cut-off of each. Parts
  // that are known are not opened, so a question that finds nothing new costs next to nothing.
  const rows = connection.stream<FenceRow>(
    `SELECT environment_id, lower(hex(identity_key)) AS key, toUnixTimestamp64Milli(cutoff_at) AS cutoff_ms,
       toString(erasure_id) AS erasure_id, toUnixTimestamp64Milli(fenced_at) AS fenced_ms, _part AS part
     FROM erasure_fences ${known.length === 0 ? '' : 'WHERE _part NOT IN {known: Array(String)}'}`,
    { ...(known.length === 0 ? {} : { params: { known } }), ...(signal === undefined ? {} : { signal }) },
  );
  for await (const row of rows) yield fromFenceRow(row);
}

async function readReceipts(connection: Connection, where: string): Promise<ErasureReceipt[]> {
  const rows = await connection.read<ReceiptRow>(
    `SELECT ${RECEIPT_FIELDS} FROM erasure_receipts FINAL WHERE ${where} ORDER BY accepted_ms, erasure_id`,
  );
  return rows.map(fromReceiptRow);
}
