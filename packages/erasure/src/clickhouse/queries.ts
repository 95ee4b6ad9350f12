import type {
  ErasureRows,
  FactLocation,
  FactOrder,
  FoundRows,
  KeptConsent,
  NotedRows,
  StoredLink,
  StoredUnlink,
} from '../rows.ts';
import { RULINGS, SWEPT_TABLES } from '../stores/tables.ts';
import type { Connection } from './connection.ts';
import { createPredicates, toIdText } from './predicates.ts';
import { assertTargets } from './targets.ts';

const fromHex = (text: string) => Buffer.from(text, 'hex');

/** What an eraser asks besides counts, of rows and of what it has noted. */
export function createErasureQueries(
  connection: Connection,
): Pick<ErasureRows, 'readNoted' | 'findConsents' | 'findLinks' | 'findUnlinks' | 'findLaterLinks'> {
  const checked =
    <T>(find: (connection: Connection, batchId: Buffer) => Promise<T>) =>
    async (batchId: Buffer) => {
      const found = await find(connection, batchId);
      await assertTargets(connection, batchId);
      return found;
    };
  return {
    readNoted: (batchId) => readNoted(connection, batchId),
    findConsents: checked(findConsents),
    findLinks: (batchId) => findLinks(connection, batchId),
    findUnlinks: checked(findUnlinks),
    findLaterLinks: checked(findLaterLinks),
  };
}

/** Where the rows of a batch were, as noted before they were deleted. */
async function readNoted(connection: Connection, batchId: Buffer): Promise<NotedRows> {
  const batch = `batch_id = '${toIdText(batchId)}'`;
  const found = await connection.read<FoundRow & { table: string }>(
    `SELECT table_name AS table, column_name AS column, how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
     FROM erasure_found WHERE ${batch} GROUP BY table, column, how, environment_id, key`,
  );
  const shared = await connection.read<{ table: string; environment_id: string; keys: string[]; rows: number }>(
    `SELECT table_name AS table, environment_id, keys, count() AS rows FROM (
       SELECT table_name, any(environment_id) AS environment_id, arraySort(groupArray(lower(hex(identity_key)))) AS keys
       FROM erasure_found WHERE ${batch} AND how = 'own' GROUP BY table_name, part, part_offset HAVING length(keys) > 1
     ) GROUP BY table, environment_id, keys`,
  );
  return {
    found: found.flatMap((row) => toFound(row.table, [row])),
    shared: shared.map(({ table, environment_id: environmentId, keys, rows }) => {
      return { table, environmentId, keys: keys.map(fromHex), rows };
    }),
  };
}

/** The table's sorting key begins with the identity, so this reads almost nothing. */
async function findConsents(connection: Connection, batchId: Buffer): Promise<KeptConsent[]> {
  const rows = await connection.read<ConsentRow>(
    `SELECT environment_id, lower(hex(identity_key)) AS key, status, toUnixTimestamp64Milli(received_at) AS received_ms,
       kafka_partition AS partition, kafka_offset AS offset, toUnixTimestamp64Milli(logged_at) AS logged_ms
     FROM consent_log FINAL WHERE (environment_id, identity_key) IN (
       SELECT environment_id, identity_key FROM ${targetsOf(batchId)})`,
  );
  return rows.map(({ environment_id: environmentId, key, status, partition, offset, ...times }) => {
    const position = { partition, offset, loggedAtMs: times.logged_ms };
    return { environmentId, identityKey: fromHex(key), status, receivedAt: times.received_ms, position };
  });
}

interface ConsentRow {
  readonly environment_id: string;
  readonly key: string;
  readonly status: string;
  readonly received_ms: number;
  readonly partition: number;
  readonly offset: number;
  readonly logged_ms: number;
}

async function* findLinks(connection: Connection, batchId: Buffer): AsyncGenerator<StoredLink> {
  const targets = targetsOf(batchId);
  const rows = connection.stream<LinkRow>(
    `SELECT environment_id, lower(hex(least(a_key, b_key))) AS a, lower(hex(greatest(a_key, b_key))) AS b,
       min(toUnixTimestamp64Milli(received_at)) AS received_ms,
       max((link_generation, link_offset)) AS last, last.1 AS generation, last.2 AS offset
     FROM identity_links WHERE ${touches(batchId)} AND received_at <= (SELECT max(cutoff_at) FROM ${targets})
     GROUP BY environment_id, a, b`,
  );
  const share = createShare();
  for await (const { environment_id: environmentId, a, b, received_ms: receivedAtMs, generation, offset } of rows)
    yield { environmentId, a: share(a), b: share(b), receivedAtMs, last: { generation, offset } };
  await assertTargets(connection, batchId);
}

/** @returns a function that returns the same Buffer for the same hexadecimal text */
export function createShare(): (hex: string) => Buffer {
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

interface LinkRow extends FactOrder {
  readonly environment_id: string;
  readonly a: string;
  readonly b: string;
  readonly received_ms: number;
}

async function findUnlinks(connection: Connection, batchId: Buffer): Promise<StoredUnlink[]> {
  const targets = targetsOf(batchId);
  const rows = await connection.read<UnlinkRow>(
    `SELECT DISTINCT environment_id, lower(hex(identity_key)) AS key, side, link_generation AS generation,
       link_offset AS offset, toUnixTimestamp64Milli(unlinked_at) AS unlinked_ms
     FROM identity_unlinks
     WHERE (environment_id, identity_key) IN (SELECT environment_id, identity_key FROM ${targets})
       AND side IN ('split', 'stayed') AND unlinked_at <= (SELECT max(cutoff_at) FROM ${targets})`,
  );
  return rows.map(({ environment_id: environmentId, key, side, generation, offset, unlinked_ms: unlinkedAtMs }) => {
    return { environmentId, key: fromHex(key), side, at: { generation, offset }, unlinkedAtMs };
  });
}

interface UnlinkRow extends FactOrder {
  readonly environment_id: string;
  readonly key: string;
  readonly side: StoredUnlink['side'];
  readonly unlinked_ms: number;
}

async function findLaterLinks(connection: Connection, batchId: Buffer): Promise<FactLocation[]> {
  const { clearing } = SWEPT_TABLES.find(({ name }) => name === 'identity_links')!;
  const { anyOf } = createPredicates(clearing, batchId);
  const rows = await connection.read<{ environment_id: string } & Omit<FactLocation, 'environmentId'>>(
    `SELECT DISTINCT environment_id, first.1 AS generation, first.3 AS partition, first.2 AS offset FROM (
       SELECT environment_id, min((link_generation, link_offset, link_partition)) AS first
       FROM identity_links WHERE ${touches(batchId)} AND NOT (${anyOf(['a_key', 'b_key'])})
       GROUP BY environment_id, message_id, a_key, b_key
     ) ORDER BY generation, partition, offset`,
  );
  return rows.map(({ environment_id: environmentId, generation, partition, offset }) => {
    return { environmentId, generation, partition, offset };
  });
}

const targetsOf = (batchId: Buffer) => `erasure_targets WHERE batch_id = '${toIdText(batchId)}'`;

/** True for decisions that linked an identity of the batch with another one, or found it linked. */
function touches(batchId: Buffer): string {
  const isTarget = (column: string) =>
    `(environment_id, ${column}) IN (SELECT environment_id, identity_key FROM ${targetsOf(batchId)})`;
  return `(${isTarget('a_key')} OR ${isTarget('b_key')}) AND outcome IN ('linked', 'unchanged') AND link != 'unlink'
    AND reason NOT IN (${RULINGS.map((reason) => `'${reason}'`)})`;
}

/** A line of an answer about rows that were found. */
export interface FoundRow {
  readonly column: string;
  readonly how: FoundRows['as'];
  readonly environment_id: string;
  readonly key: string;
  readonly rows: number;
}

export const toFound = (table: string, rows: readonly FoundRow[]): FoundRows[] =>
  rows.map(({ column, how: as, environment_id: environmentId, key, rows }) => {
    return { table, column, as, environmentId, key: Buffer.from(key, 'hex'), rows };
  });
