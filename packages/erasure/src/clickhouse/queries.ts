import type {
  ErasureRows,
  FactLocation,
  FactOrder,
  FoundRows,
  KeptConsent,
  SharedRows,
  StoredLink,
  StoredUnlink,
  SweepResult,
} from '../rows.ts';
import { RULINGS, SWEPT_TABLES } from '../stores/tables.ts';
import type { Connection } from './connection.ts';
import { createPredicates, isTarget, targetsOf, toIdText } from './predicates.ts';
import { assertTargets } from './targets.ts';

const fromHex = (text: string) => Buffer.from(text, 'hex');

export function createErasureQueries(
  connection: Connection,
): Pick<ErasureRows, 'readFound' | 'findConsents' | 'findLinks' | 'findUnlinks' | 'findLaterLinks'> {
  const checked =
    <T>(find: (connection: Connection, batchId: Buffer) => Promise<T>) =>
    async (batchId: Buffer) => {
      const found = await find(connection, batchId);
      await assertTargets(connection, batchId);
      return found;
    };
  return {
    readFound: async (batchId) => [await readFound(connection, batchId)],
    findConsents: checked(findConsents),
    findLinks: (batchId) => findLinks(connection, batchId),
    findUnlinks: checked(findUnlinks),
    findLaterLinks: checked(findLaterLinks),
  };
}

async function readFound(connection: Connection, batchId: Buffer): Promise<SweepResult> {
  const batch = `batch_id = '${toIdText(batchId)}'`;
  const found = await connection.read<FoundRow & { table: string }>(
    `SELECT table_name AS table, column_name AS column, how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
     FROM erasure_found WHERE ${batch} GROUP BY table, column, how, environment_id, key`,
  );
  const shared = await connection.read<Omit<SharedRows, 'keys'> & { keys: string[] }>(
    `SELECT table_name AS table, environmentId, keys, count() AS rows FROM (
       SELECT table_name, any(environment_id) AS environmentId, arraySort(groupArray(lower(hex(identity_key)))) AS keys
       FROM erasure_found WHERE ${batch} AND how = 'own' GROUP BY table_name, part, part_offset HAVING length(keys) > 1
     ) GROUP BY table, environmentId, keys`,
  );
  return {
    found: found.flatMap((row) => toFound(row.table, [row])),
    shared: shared.map((row) => ({ ...row, keys: row.keys.map(fromHex) })),
  };
}

/** This query is fast because the table is sorted by identity. */
async function findConsents(connection: Connection, batchId: Buffer): Promise<KeptConsent[]> {
  const rows = await connection.read<
    Omit<KeptConsent, 'identityKey' | 'position'> & KeptConsent['position'] & { identityKey: string }
  >(
    `SELECT environment_id AS environmentId, lower(hex(identity_key)) AS identityKey, status,
       toUnixTimestamp64Milli(received_at) AS receivedAt, kafka_partition AS partition, kafka_offset AS offset,
       toUnixTimestamp64Milli(logged_at) AS loggedAtMs
     FROM consent_log FINAL WHERE ${isTarget('identity_key', batchId)}`,
  );
  return rows.map(({ identityKey, partition, offset, loggedAtMs, ...consent }) => {
    return { ...consent, identityKey: fromHex(identityKey), position: { partition, offset, loggedAtMs } };
  });
}

async function* findLinks(connection: Connection, batchId: Buffer): AsyncGenerator<StoredLink> {
  const rows = connection.stream<FactOrder & { environment_id: string; a: string; b: string; received_ms: number }>(
    `SELECT environment_id, lower(hex(least(a_key, b_key))) AS a, lower(hex(greatest(a_key, b_key))) AS b,
       min(toUnixTimestamp64Milli(received_at)) AS received_ms,
       max((link_generation, link_offset)) AS last, last.1 AS generation, last.2 AS offset
     FROM identity_links WHERE ${isTargetLink(batchId)} AND received_at <= ${latestCutoff(batchId)}
     GROUP BY environment_id, a, b`,
  );
  const intern = createInterner();
  for await (const { environment_id: environmentId, a, b, received_ms: receivedAtMs, generation, offset } of rows)
    yield { environmentId, a: intern(a), b: intern(b), receivedAtMs, last: { generation, offset } };
  await assertTargets(connection, batchId);
}

/** Creates a function that interns keys: equal hexadecimal strings return the same Buffer. */
export function createInterner(): (hex: string) => Buffer {
  const known = new Map<string, Buffer>();
  return (hex) => {
    let key = known.get(hex);
    if (key === undefined) {
      key = fromHex(hex);
      known.set(hex, key);
    }
    return key;
  };
}

async function findUnlinks(connection: Connection, batchId: Buffer): Promise<StoredUnlink[]> {
  const rows = await connection.read<Omit<StoredUnlink, 'key' | 'at'> & FactOrder & { key: string }>(
    `SELECT DISTINCT environment_id AS environmentId, lower(hex(identity_key)) AS key, side,
       link_generation AS generation, link_offset AS offset, toUnixTimestamp64Milli(unlinked_at) AS unlinkedAtMs
     FROM identity_unlinks
     WHERE ${isTarget('identity_key', batchId)} AND side IN ('split', 'stayed')
       AND unlinked_at <= ${latestCutoff(batchId)}`,
  );
  return rows.map(({ generation, offset, key, ...unlink }) => {
    return { ...unlink, key: fromHex(key), at: { generation, offset } };
  });
}

async function findLaterLinks(connection: Connection, batchId: Buffer): Promise<FactLocation[]> {
  const { clearing } = SWEPT_TABLES.find(({ name }) => name === 'identity_links')!;
  const { isErasedByAny } = createPredicates(clearing, batchId);
  return connection.read<FactLocation>(
    `SELECT DISTINCT environment_id AS environmentId, first.1 AS generation, first.3 AS partition, first.2 AS offset FROM (
       SELECT environment_id, min((link_generation, link_offset, link_partition)) AS first
       FROM identity_links WHERE ${isTargetLink(batchId)} AND NOT (${isErasedByAny(['a_key', 'b_key'])})
       GROUP BY environment_id, message_id, a_key, b_key
     ) ORDER BY generation, partition, offset`,
  );
}

const latestCutoff = (batchId: Buffer) => `(SELECT max(cutoff_at) FROM ${targetsOf(batchId)})`;

/** Selects decisions that linked a target in the batch or found it already linked. */
function isTargetLink(batchId: Buffer): string {
  return `(${isTarget('a_key', batchId)} OR ${isTarget('b_key', batchId)}) AND outcome IN ('linked', 'unchanged')
    AND link != 'unlink' AND reason NOT IN (${RULINGS.map((reason) => `'${reason}'`)})`;
}

/** A result row that contains the number of found rows. */
export interface FoundRow {
  readonly column: string;
  readonly how: FoundRows['as'];
  readonly environment_id: string;
  readonly key: string;
  readonly rows: number;
}

export const toFound = (table: string, rows: readonly FoundRow[]): FoundRows[] =>
  rows.map(({ column, how: as, environment_id: environmentId, key, rows }) => {
    return { table, column, as, environmentId, key: fromHex(key), rows };
  });
