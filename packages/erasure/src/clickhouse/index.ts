import type { SentColumn } from '@playline/stores';
import type { ClickHouseTarget } from '@playline/stores/clickhouse';
import type {
  Erasure,
  ErasureFence,
  ErasurePage,
  ErasureProgress,
  ErasureReceipt,
  ErasureRecords,
  ErasureRequest,
  ErasureState,
  FenceReading,
  FoundLink,
  StoredFence,
} from '../records.ts';
import { type Connection, openConnection } from './connection.ts';
import { toIdText } from './predicates.ts';
import { createShare } from './queries.ts';
import {
  type FenceRow,
  type FoundLinkRow,
  fromFenceRow,
  fromFoundLinkRow,
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
import { assertTargets, withSearchTargets } from './targets.ts';

export { type ErasureRowsOptions, openErasureRows } from './erasure-rows.ts';

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

/**
 * In one statement with the insert, here and below. A process that paused between a separate look and its insert would
 * write back what it had seen.
 */
const NOT_KEPT = 'erasure_id NOT IN (SELECT erasure_id FROM erasure_requests)';
const NOT_BEGUN = `erasure_id NOT IN (SELECT erasure_id FROM erasure_progress)
  AND erasure_id NOT IN (SELECT erasure_id FROM erasure_receipts)`;

/** Opens the records; connects with the first call. */
export function openErasureRecords(target: ClickHouseTarget): ErasureRecords {
  const connection = openConnection(target);
  return {
    addRequests: (requests: readonly ErasureRequest[]) =>
      connection.insert('erasure_requests', REQUEST_COLUMNS, { rows: requests.map(toRequestRow), where: NOT_KEPT }),
    putRequests: (requests: readonly ErasureRequest[]) =>
      connection.insert('erasure_requests', REQUEST_COLUMNS, { rows: requests.map(toRequestRow) }),
    readUnfinished: () => readUnfinished(connection),
    putFound: (requests: readonly ErasureRequest[]) =>
      connection.insert('erasure_requests', REQUEST_COLUMNS, { rows: requests.map(toRequestRow), where: NOT_BEGUN }),
    readOpenSince: (sinceMs, identities, onLink = () => {}) =>
      withSearchTargets(connection, identities, async (look) => {
        const requests = await readOpenSince(connection, sinceMs, look);
        return withReceipts(connection, await withLinks(connection, requests, onLink));
      }),
    putFences: async (fences: readonly ErasureFence[]) =>
      connection.insert('erasure_fences', FENCE_COLUMNS, { rows: fences.map(toFenceRow) }),
    readFences: (reading = {}) => readFences(connection, reading),
    putReceipts: (receipts: readonly ErasureReceipt[]) =>
      connection.insert('erasure_receipts', RECEIPT_COLUMNS, { rows: receipts.map(toReceiptRow) }),
    readReceipt: async (erasureId) => {
      const id = `erasure_id = '${toIdText(erasureId)}'`;
      const [receipt] = await readReceipts(connection, id);
      return receipt ?? null;
    },
    readOpenReceipts: () => readReceipts(connection, 'physically_erased_at IS NULL OR log_expired_at IS NULL'),
    putProgress: (progress: readonly ErasureProgress[]) =>
      connection.insert('erasure_progress', PROGRESS_COLUMNS, { rows: progress.map(toProgressRow) }),
    readProgress: () => readProgress(connection),
    dropProgress: (batchId) => connection.run(`ALTER TABLE erasure_progress DROP PARTITION '${toIdText(batchId)}'`),
    readFinished: () => readFinished(connection),
    readEnvironments: async () => {
      const rows = await connection.read<{ id: string }>('SELECT DISTINCT environment_id AS id FROM erasure_requests');
      return rows.map(({ id }) => id);
    },
    readRequests: (erasureIds) => readRequests(connection, erasureIds),
    readErasures: (page) => readErasures(connection, page),
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

/** Joined with the identities in a table, however many there are: of all erasures since then only a few are wanted. */
async function readOpenSince(connection: Connection, sinceMs: number, look: Buffer): Promise<ErasureRequest[]> {
  const rows = await connection.read<RequestRow>(
    `SELECT ${REQUEST_FIELDS} FROM (SELECT * FROM erasure_requests FINAL WHERE erasure_id IN (
       SELECT erasure_id FROM erasure_requests ARRAY JOIN arrayConcat(subject_keys, member_keys, links.a_key, links.b_key) AS key
       WHERE (environment_id, key) IN (
         SELECT environment_id, identity_key FROM erasure_targets WHERE batch_id = '${toIdText(look)}')
     ) AND erasure_id NOT IN (
       SELECT erasure_id FROM erasure_receipts WHERE visibly_erased_at < fromUnixTimestamp64Milli({since: Int64}, 'UTC')))`,
    { since: sinceMs },
  );
  await assertTargets(connection, look);
  return rows.map(fromRequestRow);
}

/** Adds the links of requests. Streamed, because one person may have half a million. */
async function withLinks(
  connection: Connection,
  requests: readonly ErasureRequest[],
  onLink: () => void,
): Promise<ErasureRequest[]> {
  const linksOf = new Map<string, FoundLink[]>();
  const share = createShare();
  const all = requests.map(({ erasureId }) => erasureId);
  for (let start = 0; start < all.length; start += IDS_A_QUERY_MAX) {
    const ids = all.slice(start, start + IDS_A_QUERY_MAX).map(toIdText);
    const rows = connection.stream<FoundLinkRow>(
      `SELECT toString(erasure_id) AS erasure_id, lower(hex(link.1)) AS a, lower(hex(link.2)) AS b,
         toUnixTimestamp64Milli(link.3) AS received_ms, link.4 AS generation, link.5 AS offset,
         toUnixTimestamp64Milli(link.6) AS unlinked_ms
       FROM (SELECT erasure_id, links FROM erasure_requests FINAL WHERE ${OF_IDS}) ARRAY JOIN links AS link`,
      { params: { ids } },
    );
    for await (const row of rows) {
      onLink();
      const links = linksOf.get(row.erasure_id);
      if (links === undefined) linksOf.set(row.erasure_id, [fromFoundLinkRow(row, share)]);
      else links.push(fromFoundLinkRow(row, share));
    }
  }
  return requests.map((request) => {
    const links = linksOf.get(toIdText(request.erasureId));
    return links === undefined ? request : { ...request, links };
  });
}

async function* readFences(connection: Connection, { knownParts, signal }: FenceReading): AsyncGenerator<StoredFence> {
  const known = [...(knownParts ?? [])];
  // Without FINAL. Rows that no merge has folded yet come twice, and the reader takes the later cut-off. Parts that are
  // known already are not opened, so a query that finds nothing new costs almost nothing.
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

async function readFinished(connection: Connection): Promise<ReadonlySet<string>> {
  const finished = new Set<string>();
  const rows = connection.stream<{ id: string }>('SELECT DISTINCT lower(hex(erasure_id)) AS id FROM erasure_receipts');
  for await (const { id } of rows) finished.add(id);
  return finished;
}

/** Ids are sent in the address of the query, which has room for about twenty thousand. */
const IDS_A_QUERY_MAX = 1_000;
const OF_IDS = 'erasure_id IN {ids: Array(UUID)}';

async function readOfIds<T>(erasureIds: readonly Buffer[], read: (ids: string[]) => Promise<T[]>): Promise<T[]> {
  const found: T[] = [];
  for (let start = 0; start < erasureIds.length; start += IDS_A_QUERY_MAX)
    for (const row of await read(erasureIds.slice(start, start + IDS_A_QUERY_MAX).map(toIdText))) found.push(row);
  return found;
}

function readRequests(connection: Connection, erasureIds: readonly Buffer[]): Promise<ErasureRequest[]> {
  return readOfIds(erasureIds, async (ids) => {
    // Columns are selected outside of this: a text with the name of a column would otherwise be used in the condition.
    const rows = `(SELECT * FROM erasure_requests FINAL WHERE ${OF_IDS})`;
    return (await connection.read<RequestRow>(`SELECT ${REQUEST_FIELDS} FROM ${rows}`, { ids })).map(fromRequestRow);
  });
}

const WITH_RECEIPT = (where: string) => `erasure_id IN (SELECT erasure_id FROM erasure_receipts FINAL WHERE ${where})`;
const OF_STATE: Readonly<Record<ErasureState, string>> = {
  waiting: 'erasure_id NOT IN (SELECT erasure_id FROM erasure_receipts)',
  erased: WITH_RECEIPT('physically_erased_at IS NULL'),
  'physically erased': WITH_RECEIPT('physically_erased_at IS NOT NULL AND log_expired_at IS NULL'),
  'log expired': WITH_RECEIPT('physically_erased_at IS NOT NULL AND log_expired_at IS NOT NULL'),
};

async function readErasures(connection: Connection, page: ErasurePage): Promise<Erasure[]> {
  const { environmentId, state, after, erasuresMax } = page;
  const place = '(toUnixTimestamp64Milli(requested_at), hex(erasure_id))';
  const where = [
    ...(environmentId === undefined ? [] : ['environment_id = {environment: String}']),
    ...(state === undefined ? [] : [OF_STATE[state]]),
    ...(after === undefined ? [] : [`${place} < ({at: Int64}, {id: String})`]),
  ];
  const rows = await connection.read<RequestRow>(
    `SELECT ${REQUEST_FIELDS} FROM (SELECT * FROM erasure_requests FINAL
       ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`} ORDER BY ${place} DESC LIMIT {max: UInt32})
     ORDER BY requested_ms DESC, replaceAll(erasure_id, '-', '') DESC`,
    {
      max: erasuresMax,
      ...(environmentId !== undefined && { environment: environmentId }),
      ...(after && { at: after.requestedAt, id: after.erasureId.toString('hex').toUpperCase() }),
    },
  );
  return withReceipts(connection, rows.map(fromRequestRow));
}

async function withReceipts(connection: Connection, requests: readonly ErasureRequest[]): Promise<Erasure[]> {
  const ids = requests.map(({ erasureId }) => erasureId);
  const receipts = await readOfIds(ids, async (texts) => {
    const found = `(SELECT * FROM erasure_receipts FINAL WHERE ${OF_IDS})`;
    return (await connection.read<ReceiptRow>(`SELECT ${RECEIPT_FIELDS} FROM ${found}`, { ids: texts })).map(
      fromReceiptRow,
    );
  });
  const receiptOf = new Map(receipts.map((receipt) => [receipt.erasureId.toString('hex'), receipt]));
  return requests.map((request) => ({ request, receipt: receiptOf.get(request.erasureId.toString('hex')) ?? null }));
}
