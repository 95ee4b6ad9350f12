import { fromUuidText } from '@playline/contracts';
import type { ClickHouseTarget } from '@playline/stores/clickhouse';
import type {
  Erasure,
  ErasurePage,
  ErasureReceipt,
  ErasureRecords,
  ErasureRequest,
  ErasureState,
  FenceReading,
  FoundLink,
  StoredFence,
} from '../records.ts';
import type { FactOrder } from '../rows.ts';
import { type Connection, openConnection } from './connection.ts';
import { toIdText } from './predicates.ts';
import { createInterner } from './queries.ts';
import {
  FENCE_COLUMNS,
  progressTable,
  REQUEST_COLUMNS,
  receiptTable,
  requestTable,
  toFenceRow,
  toRequestRow,
} from './record-rows.ts';
import { assertTargets, withSearchTargets } from './targets.ts';

export { type ErasureRowsOptions, openErasureRows } from './erasure-rows.ts';

/** Checked within the INSERT. With a separate check, a paused process could write an outdated request. */
const IS_NEW = 'erasure_id NOT IN (SELECT erasure_id FROM erasure_requests)';
const IS_NOT_STARTED = `erasure_id NOT IN (SELECT erasure_id FROM erasure_progress)
  AND erasure_id NOT IN (SELECT erasure_id FROM erasure_receipts)`;

/** Connects on the first call. */
export function openErasureRecords(target: ClickHouseTarget): ErasureRecords {
  const connection = openConnection(target);
  const insertRequests = (requests: readonly ErasureRequest[], where?: string) =>
    connection.insert('erasure_requests', REQUEST_COLUMNS, {
      rows: requests.map(toRequestRow),
      ...(where && { where }),
    });
  return {
    addRequests: (requests) => insertRequests(requests, IS_NEW),
    putRequests: (requests) => insertRequests(requests),
    putFound: (requests) => insertRequests(requests, IS_NOT_STARTED),
    readUnfinished: () => readRequestsWhere(connection, `${STATE_CONDITIONS.waiting} ORDER BY requested_at, erasureId`),
    readOpenSince: (sinceMs, identities, onLink = () => {}) =>
      withSearchTargets(connection, identities, async (searchId) => {
        const requests = await readOpenSince(connection, sinceMs, searchId);
        return withReceipts(connection, await withLinks(connection, requests, onLink));
      }),
    putFences: async (fences) => connection.insert('erasure_fences', FENCE_COLUMNS, { rows: fences.map(toFenceRow) }),
    readFences: (reading = {}) => readFences(connection, reading),
    putReceipts: (receipts) =>
      connection.insert('erasure_receipts', receiptTable.columns, { rows: receipts.map(receiptTable.toRow) }),
    readReceipt: async (erasureId) => {
      const [receipt] = await readReceipts(connection, `erasure_id = '${toIdText(erasureId)}'`);
      return receipt ?? null;
    },
    readOpenReceipts: () => readReceipts(connection, 'physically_erased_at IS NULL OR log_expired_at IS NULL'),
    putProgress: (progress) =>
      connection.insert('erasure_progress', progressTable.columns, { rows: progress.map(progressTable.toRow) }),
    readProgress: async () => {
      const query = `SELECT ${progressTable.fields} FROM erasure_progress FINAL ORDER BY batchId, erasureId`;
      return (await connection.read<object>(query)).map(progressTable.fromRow);
    },
    dropProgress: (batchId) => connection.run(`ALTER TABLE erasure_progress DROP PARTITION '${toIdText(batchId)}'`),
    readFinished: () => readFinished(connection),
    readEnvironments: async () => {
      const rows = await connection.read<{ id: string }>('SELECT DISTINCT environment_id AS id FROM erasure_requests');
      return rows.map(({ id }) => id);
    },
    readRequests: (erasureIds) => readByIds(erasureIds, (ids) => readRequestsWhere(connection, HAS_ID, { ids })),
    readErasures: (page) => readErasures(connection, page),
    ready: () => connection.ready(),
    close: () => connection.close(),
  };
}

async function readRequestsWhere(
  connection: Connection,
  where: string,
  params: Record<string, unknown> = {},
): Promise<ErasureRequest[]> {
  const query = `SELECT ${requestTable.fields} FROM erasure_requests FINAL WHERE ${where}`;
  return (await connection.read<object>(query, params)).map(requestTable.fromRow);
}

/** Joins the identities as a table because there may be many, of which few match an erasure. */
async function readOpenSince(connection: Connection, sinceMs: number, searchId: Buffer): Promise<ErasureRequest[]> {
  const requests = await readRequestsWhere(
    connection,
    `erasure_id IN (
       SELECT erasure_id FROM erasure_requests ARRAY JOIN arrayConcat(subject_keys, member_keys, links.a_key, links.b_key) AS key
       WHERE (environment_id, key) IN (
         SELECT environment_id, identity_key FROM erasure_targets WHERE batch_id = '${toIdText(searchId)}')
     ) AND erasure_id NOT IN (
       SELECT erasure_id FROM erasure_receipts WHERE visibly_erased_at < fromUnixTimestamp64Milli({since: Int64}, 'UTC'))`,
    { since: sinceMs },
  );
  await assertTargets(connection, searchId);
  return requests;
}

interface LinkRow extends FactOrder {
  readonly erasure_id: string;
  readonly a: string;
  readonly b: string;
  readonly receivedAtMs: number;
  readonly unlinkedAtMs: number | null;
}

/** Adds links to the requests. Streams the links because one person may have half a million. */
async function withLinks(
  connection: Connection,
  requests: readonly ErasureRequest[],
  onLink: () => void,
): Promise<ErasureRequest[]> {
  const linksOf = new Map<string, FoundLink[]>();
  const intern = createInterner();
  const all = requests.map(({ erasureId }) => erasureId);
  for (let start = 0; start < all.length; start += IDS_PER_QUERY_MAX) {
    const ids = all.slice(start, start + IDS_PER_QUERY_MAX).map(toIdText);
    const rows = connection.stream<LinkRow>(
      `SELECT toString(erasure_id) AS erasure_id, lower(hex(link.1)) AS a, lower(hex(link.2)) AS b,
         toUnixTimestamp64Milli(link.3) AS receivedAtMs, link.4 AS generation, link.5 AS offset,
         toUnixTimestamp64Milli(link.6) AS unlinkedAtMs
       FROM (SELECT erasure_id, links FROM erasure_requests FINAL WHERE ${HAS_ID}) ARRAY JOIN links AS link`,
      { params: { ids } },
    );
    for await (const { erasure_id: id, a, b, receivedAtMs, generation, offset, unlinkedAtMs } of rows) {
      onLink();
      const link = { a: intern(a), b: intern(b), receivedAtMs, last: { generation, offset }, unlinkedAtMs };
      const links = linksOf.get(id);
      if (links === undefined) linksOf.set(id, [link]);
      else links.push(link);
    }
  }
  return requests.map((request) => {
    const links = linksOf.get(toIdText(request.erasureId));
    return links === undefined ? request : { ...request, links };
  });
}

async function* readFences(connection: Connection, { knownParts, signal }: FenceReading): AsyncGenerator<StoredFence> {
  const known = [...(knownParts ?? [])];
  // Without FINAL, a fence may be returned several times until a merge; the reader uses the latest cut-off.
  const rows = connection.stream<Omit<StoredFence, 'key' | 'erasureId'> & { key: string; erasureId: string }>(
    `SELECT environment_id AS environmentId, lower(hex(identity_key)) AS key,
       toUnixTimestamp64Milli(cutoff_at) AS cutoffMs, toString(erasure_id) AS erasureId,
       toUnixTimestamp64Milli(fenced_at) AS fencedAtMs, _part AS part
     FROM erasure_fences ${known.length === 0 ? '' : 'WHERE _part NOT IN {known: Array(String)}'}`,
    { ...(known.length > 0 && { params: { known } }), ...(signal && { signal }) },
  );
  for await (const row of rows)
    yield { ...row, key: Buffer.from(row.key, 'hex'), erasureId: fromUuidText(row.erasureId) };
}

async function readReceipts(
  connection: Connection,
  where: string,
  params: Record<string, unknown> = {},
): Promise<ErasureReceipt[]> {
  const query = `SELECT ${receiptTable.fields} FROM erasure_receipts FINAL WHERE ${where} ORDER BY acceptedAt, erasureId`;
  return (await connection.read<object>(query, params)).map(receiptTable.fromRow);
}

async function readFinished(connection: Connection): Promise<ReadonlySet<string>> {
  const finished = new Set<string>();
  const rows = connection.stream<{ id: string }>('SELECT DISTINCT lower(hex(erasure_id)) AS id FROM erasure_receipts');
  for await (const { id } of rows) finished.add(id);
  return finished;
}

/** Ids are sent in the query URL, which is limited to about twenty thousand ids. */
const IDS_PER_QUERY_MAX = 1_000;
const HAS_ID = 'erasure_id IN {ids: Array(UUID)}';

async function readByIds<T>(erasureIds: readonly Buffer[], read: (ids: string[]) => Promise<T[]>): Promise<T[]> {
  const found: T[] = [];
  for (let start = 0; start < erasureIds.length; start += IDS_PER_QUERY_MAX)
    for (const row of await read(erasureIds.slice(start, start + IDS_PER_QUERY_MAX).map(toIdText))) found.push(row);
  return found;
}

const hasReceipt = (where: string) => `erasure_id IN (SELECT erasure_id FROM erasure_receipts FINAL WHERE ${where})`;
const STATE_CONDITIONS: Readonly<Record<ErasureState, string>> = {
  waiting: 'erasure_id NOT IN (SELECT erasure_id FROM erasure_receipts)',
  erased: hasReceipt('physically_erased_at IS NULL'),
  'physically erased': hasReceipt('physically_erased_at IS NOT NULL AND log_expired_at IS NULL'),
  'log expired': hasReceipt('physically_erased_at IS NOT NULL AND log_expired_at IS NOT NULL'),
};

async function readErasures(connection: Connection, page: ErasurePage): Promise<Erasure[]> {
  const { environmentId, state, after, erasuresMax } = page;
  const position = '(toUnixTimestamp64Milli(requested_at), hex(erasure_id))';
  const where = [
    ...(environmentId === undefined ? [] : ['environment_id = {environment: String}']),
    ...(state === undefined ? [] : [STATE_CONDITIONS[state]]),
    ...(after === undefined ? [] : [`${position} < ({at: Int64}, {id: String})`]),
  ];
  const requests = await readRequestsWhere(
    connection,
    `${where.join(' AND ') || 'true'} ORDER BY ${position} DESC LIMIT {max: UInt32}`,
    {
      max: erasuresMax,
      ...(environmentId !== undefined && { environment: environmentId }),
      ...(after && { at: after.requestedAt, id: after.erasureId.toString('hex').toUpperCase() }),
    },
  );
  return withReceipts(connection, requests);
}

async function withReceipts(connection: Connection, requests: readonly ErasureRequest[]): Promise<Erasure[]> {
  const receipts = await readByIds(
    requests.map(({ erasureId }) => erasureId),
    (ids) => readReceipts(connection, HAS_ID, { ids }),
  );
  const receiptOf = new Map(receipts.map((receipt) => [receipt.erasureId.toString('hex'), receipt]));
  return requests.map((request) => ({ request, receipt: receiptOf.get(request.erasureId.toString('hex')) ?? null }));
}
