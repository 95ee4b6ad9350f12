/** Reads the table rows from which Redis is rebuilt. */
import { IDENTITY_KINDS } from '@playline/contracts';
import {
  type ChosenStatus,
  type LinkSourcePartition,
  type LoggedConsent,
  type LoggedSuspect,
  SUSPECT_REASONS,
  toSuspects,
  type UnlinkSide,
  type VersionedOverride,
} from '@playline/people';
import type { QueryRows } from '@playline/stores';

/** About 10 MB per response, so that slow processing does not keep queries running. */
const ROWS_PER_PAGE_MAX = 100_000;

type Row = readonly unknown[];

/** A table to read page by page in sorting key order; the key columns are the first columns of each row. */
interface Pages {
  readonly table: string;
  readonly key: string;
  readonly columns: string;
  readonly where?: string;
  /** Returns the sorting key of a row as a SQL tuple. */
  toCursor(row: Row): string;
}

async function* readPages(query: QueryRows, { table, key, columns, where = 'true', toCursor }: Pages) {
  for (let after = ''; ; ) {
    let last: Row = [];
    let count = 0;
    const rest = after === '' ? '' : `AND (${key}) > ${after}`;
    for await (const row of query(
      `SELECT ${columns} FROM ${table} WHERE (${where}) ${rest} ORDER BY ${key} LIMIT ${ROWS_PER_PAGE_MAX}`,
    )) {
      last = row;
      count++;
      yield row;
    }
    if (count < ROWS_PER_PAGE_MAX) return;
    after = toCursor(last);
  }
}

const CHOSEN_STATUSES: readonly ChosenStatus[] = ['none', 'anonymous', 'full'];

/** Environment ids contain no characters that must be escaped in SQL. */
const IDENTITY = 'environment_id, lower(hex(identity_key))';
const toKeyText = ([environmentId, key]: Row) => `'${environmentId}', toFixedString(unhex('${key}'), 16)`;
const toIdentity = ([environmentId, key]: Row) => ({
  environmentId: String(environmentId),
  key: Buffer.from(String(key), 'hex'),
});

export async function* readOverrides(query: QueryRows): AsyncGenerator<VersionedOverride> {
  const rows = readPages(query, {
    table: 'identity_overrides FINAL',
    key: 'environment_id, identity_key',
    columns: `${IDENTITY}, lower(hex(person_key)), kind, toUnixTimestamp64Milli(linked_at), toString(version)`,
    toCursor: (row) => `(${toKeyText(row)})`,
  });
  for await (const row of rows) {
    const [, , root, kind, linkedAt, version] = row;
    yield {
      ...toIdentity(row),
      root: Buffer.from(String(root), 'hex'),
      kind: parseValue(IDENTITY_KINDS, kind),
      linkedAt: Number(linkedAt),
      version: BigInt(String(version)),
    };
  }
}

const SIDES: readonly UnlinkSide['side'][] = ['split', 'stayed', 'none'];

/** Reads both sides of all unlinks. */
export async function* readUnlinkSides(query: QueryRows): AsyncGenerator<UnlinkSide> {
  const rows = readPages(query, {
    table: 'identity_unlinks',
    key: 'environment_id, identity_key, link_generation, link_offset',
    columns: `${IDENTITY}, link_generation, toString(link_offset), side, toUnixTimestamp64Milli(unlinked_at)`,
    toCursor: (row) => `(${toKeyText(row)}, ${row[2]}, ${row[3]})`,
  });
  for await (const row of rows) {
    const [, , generation, offset, side, unlinkedAt] = row;
    yield {
      ...toIdentity(row),
      side: parseValue(SIDES, side),
      generation: Number(generation),
      offset: Number(offset),
      unlinkedAt: Number(unlinkedAt),
    };
  }
}

/** Reads all decisions that held an identity, and all operator rulings about identities. */
export async function* readSuspects(query: QueryRows): AsyncGenerator<LoggedSuspect> {
  const rows = readPages(query, {
    table: 'identity_links',
    key: 'environment_id, link_generation, link_partition, link_offset, step',
    columns: `environment_id, link_generation, link_partition, toString(link_offset), step, lower(hex(a_key)), a_kind,
      lower(hex(b_key)), b_kind, reason, toUnixTimestamp64Milli(received_at)`,
    where: `reason IN (${SUSPECT_REASONS.map((reason) => `'${reason}'`).join(', ')})`,
    toCursor: (row) => `('${row[0]}', ${row[1]}, ${row[2]}, ${row[3]}, ${row[4]})`,
  });
  for await (const [environmentId, generation, , offset, , aKey, aKind, bKey, bKind, reason, receivedAt] of rows)
    yield* toSuspects({
      environmentId: String(environmentId),
      generation: Number(generation),
      offset: Number(offset),
      aKey: Buffer.from(String(aKey), 'hex'),
      bKey: Buffer.from(String(bKey), 'hex'),
      aKind: parseValue(IDENTITY_KINDS, aKind),
      bKind: parseValue(IDENTITY_KINDS, bKind),
      reason: String(reason),
      receivedAt: Number(receivedAt),
    });
}

/** A partition of the link topic, and the first offset that the linkers will read again. */
export type RereadPartition = LinkSourcePartition & { readonly from: number };

/**
 * Reads the offsets of decided facts that the linkers will read again. Facts from later generations are included,
 * because linkers that use a later generation would decide them again.
 */
export async function* readDecidedOffsets(query: QueryRows, partitions: readonly RereadPartition[]) {
  const ranges = partitions.map(
    ({ generation, partition, from }) =>
      `(link_generation = ${generation} AND link_partition = ${partition} AND link_offset >= ${from})`,
  );
  const later = partitions.slice(0, 1).map(({ generation }) => `link_generation > ${generation}`);
  const rows = readPages(query, {
    table: 'identity_links',
    key: 'environment_id, link_generation, link_partition, link_offset',
    columns: 'environment_id, link_generation, link_partition, toString(link_offset)',
    where: [...ranges, ...later].join(' OR ') || 'false',
    toCursor: (row) => `('${row[0]}', ${row[1]}, ${row[2]}, ${row[3]})`,
  });
  for await (const [environmentId, generation, partition, offset] of rows)
    yield {
      environmentId: String(environmentId),
      generation: Number(generation),
      partition: Number(partition),
      offset: Number(offset),
    };
}

/** Reads all consent changes, including superseded changes. */
export async function* readConsents(query: QueryRows): AsyncGenerator<LoggedConsent> {
  const rows = readPages(query, {
    table: 'consent_log',
    key: 'environment_id, identity_key, kafka_partition, kafka_offset',
    columns: `${IDENTITY}, kafka_partition, toString(kafka_offset), status, toUnixTimestamp64Milli(received_at),
      toUnixTimestamp64Milli(logged_at)`,
    toCursor: (row) => `(${toKeyText(row)}, ${row[2]}, ${row[3]})`,
  });
  for await (const row of rows) {
    const [, , partition, offset, status, receivedAt, loggedAt] = row;
    const { environmentId, key } = toIdentity(row);
    yield {
      environmentId,
      identityKey: key,
      status: parseValue(CHOSEN_STATUSES, status),
      receivedAt: Number(receivedAt),
      position: { partition: Number(partition), offset: Number(offset), loggedAtMs: Number(loggedAt) },
    };
  }
}

/** @throws Error for an unknown value, which a newer release has written */
function parseValue<T extends string>(values: readonly T[], text: unknown): T {
  const value = values.find((each) => each === text);
  if (value === undefined)
    throw new Error(
      `the tables contain the unknown value ${String(text).slice(0, 40)}: use the release that wrote the value`,
    );
  return value;
}
