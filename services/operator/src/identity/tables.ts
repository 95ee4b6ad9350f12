import { ZERO_KEY } from '@playline/contracts';
import { type QueryRows, readRows } from '@playline/stores';
import type { Subject } from './subject.ts';

/** A row of `identity_overrides`. */
export interface StoredPerson {
  /** Hexadecimal. */
  readonly personKey: string;
  /** Epoch milliseconds. */
  readonly linkedAt: number;
}

export interface Side {
  readonly key: string;
  readonly kind: string;
}

/** Position of a link fact in its topic, and the step that was decided. */
export interface FactPosition {
  readonly generation: number;
  readonly partition: number;
  readonly offset: number;
  readonly step: number;
}

/** A row of `identity_links`. Keys are hexadecimal, times epoch milliseconds. */
export interface LinkRow {
  readonly receivedAt: number;
  readonly eventTime: number;
  readonly link: string;
  readonly a: Side;
  readonly b: Side;
  readonly outcome: string;
  readonly reason: string;
  readonly movedCount: number;
  readonly messageId: string;
  readonly traceId: string;
  readonly position: FactPosition;
}

export interface SplitRow extends Pick<FactPosition, 'generation' | 'offset'> {
  readonly key: string;
  readonly side: string;
}

export interface Bounds {
  readonly querySeconds: number;
  /** Maximum number of rows; older rows are omitted. */
  readonly limit: number;
}

/** Selects the links of `keys`; with `others`, only links between the two sets of keys. */
export interface LinkFilter {
  readonly keys: readonly Buffer[];
  readonly others?: readonly Buffer[];
}

export interface IdentityTables {
  isReachable(): Promise<boolean>;
  personOf(subject: Subject): Promise<StoredPerson | null>;
  hasEvents(environmentId: string): Promise<boolean>;
  /** Returns the newest rows in log order. Scans all decisions in the environment. */
  linksOf(environmentId: string, filter: LinkFilter, bounds: Bounds): Promise<LinkRow[]>;
  /** Returns, per pair of linked keys, the row that joined the pair and a row that found the pair already joined. */
  joinsOf(environmentId: string, keys: readonly Buffer[], querySeconds: number): Promise<LinkRow[]>;
  sidesOf(environmentId: string, keys: readonly Buffer[], querySeconds: number): Promise<SplitRow[]>;
  /** Returns raw ids by hexadecimal key. Scans the keys of all events in the environment. */
  rawIdsOf(environmentId: string, keys: readonly Buffer[], querySeconds: number): Promise<ReadonlyMap<string, string>>;
}

/** Environment ids contain no characters that must be escaped in SQL. */
export function createIdentityTables(query: QueryRows): IdentityTables {
  return {
    isReachable: async () => (await readRows(query('SELECT 1'))).length === 1,
    async personOf({ environmentId, key }) {
      const [row] = await readRows(
        query(`SELECT lower(hex(person_key)), toUnixTimestamp64Milli(linked_at) FROM identity_overrides FINAL
          WHERE environment_id = '${environmentId}' AND identity_key = ${toSql(key)}`),
      );
      return row === undefined ? null : { personKey: String(row[0]), linkedAt: Number(row[1]) };
    },
    hasEvents: async (environmentId) =>
      (await readRows(query(`SELECT 1 FROM events WHERE environment_id = '${environmentId}' LIMIT 1`))).length > 0,
    // Copies of a decision have the same keys, so filtering before FINAL is safe.
    async linksOf(environmentId, filter, { limit, querySeconds }) {
      const rows = query(`SELECT ${LINK_COLUMNS} FROM identity_links FINAL
        PREWHERE environment_id = '${environmentId}' AND (${toCondition(filter)})
        ORDER BY link_generation DESC, link_offset DESC, step DESC, link_partition DESC
        LIMIT ${limit} SETTINGS max_execution_time = ${querySeconds}`);
      return (await readWithinLimit(rows, querySeconds)).map(toLinkRow).reverse();
    },
    // After a rebuild, the outcome of a decision that joined two keys may be "unchanged".
    async joinsOf(environmentId, keys, querySeconds) {
      const list = toList(keys);
      const rows = query(`SELECT ${LINK_COLUMNS} FROM identity_links
        PREWHERE environment_id = '${environmentId}' AND a_key IN (${list}) AND b_key IN (${list})
        WHERE outcome IN ('linked', 'unchanged') AND link != 'unlink'
        ORDER BY outcome = 'linked' DESC, link_generation DESC, link_offset DESC, step DESC
        LIMIT 1 BY a_key, b_key, outcome LIMIT ${JOINS_MAX} SETTINGS max_execution_time = ${querySeconds}`);
      return (await readWithinLimit(rows, querySeconds)).map(toLinkRow);
    },
    async sidesOf(environmentId, keys, querySeconds) {
      const rows = query(`SELECT lower(hex(identity_key)), side, link_generation, toString(link_offset)
        FROM identity_unlinks FINAL
        WHERE environment_id = '${environmentId}' AND identity_key IN (${toList(keys)}) AND side != 'none'
        SETTINGS max_execution_time = ${querySeconds}`);
      return (await readWithinLimit(rows, querySeconds)).map(([key, side, generation, offset]) => ({
        key: String(key),
        side: String(side),
        generation: Number(generation),
        offset: Number(offset),
      }));
    },
    async rawIdsOf(environmentId, keys, querySeconds) {
      const rows = await readWithinLimit(query(rawIdsSql(environmentId, keys, querySeconds)), querySeconds);
      return new Map(rows.map(([key, id]) => [String(key), Buffer.from(String(id), 'hex').toString()]));
    },
  };
}

const toSql = (key: Buffer) => `toFixedString(unhex('${key.toString('hex')}'), 16)`;
const toList = (keys: readonly Buffer[]) => keys.map(toSql).join();

/** ClickHouse error codes for queries that exceed their time limit. */
const TIMEOUT_CODES: readonly unknown[] = ['159', '160'];

async function readWithinLimit(rows: AsyncIterable<readonly unknown[]>, seconds: number) {
  try {
    return await readRows(rows);
  } catch (fault) {
    if (!(fault instanceof Error && 'code' in fault && TIMEOUT_CODES.includes(fault.code))) throw fault;
    throw new Error(`the query took longer than ${seconds} s: increase --query-seconds`, { cause: fault });
  }
}

const LINK_COLUMNS = `toUnixTimestamp64Milli(received_at), toUnixTimestamp64Milli(event_time), link,
  lower(hex(a_key)), a_kind, lower(hex(b_key)), b_kind, outcome, reason, moved_count, toString(message_id), trace_id,
  link_generation, link_partition, link_offset, step`;

/** Ten rows per identity of the largest person. */
const JOINS_MAX = 10_000;

function toCondition(filter: LinkFilter): string {
  const keys = toList(filter.keys);
  if (filter.others === undefined) return `a_key IN (${keys}) OR b_key IN (${keys})`;
  const others = toList(filter.others);
  return `(a_key IN (${keys}) AND b_key IN (${others})) OR (a_key IN (${others}) AND b_key IN (${keys}))`;
}

function toLinkRow(row: readonly unknown[]): LinkRow {
  const [receivedAt, eventTime, link, aKey, aKind, bKey, bKind, outcome, reason, movedCount, messageId, traceId] = row;
  const [generation, partition, offset, step] = row.slice(-4).map(Number);
  return {
    receivedAt: Number(receivedAt),
    eventTime: Number(eventTime),
    link: String(link),
    a: { key: String(aKey), kind: String(aKind) },
    b: { key: String(bKey), kind: String(bKind) },
    outcome: String(outcome),
    reason: String(reason),
    movedCount: Number(movedCount),
    messageId: String(messageId),
    traceId: String(traceId),
    position: { generation: generation!, partition: partition!, offset: offset!, step: step! },
  };
}

/**
 * Finds the events of the person's identities, and aliases that do not belong to an identity. Ids are selected in
 * hexadecimal, so that ClickHouse error messages cannot contain them.
 */
function rawIdsSql(environmentId: string, keys: readonly Buffer[], querySeconds: number): string {
  const list = toList(keys);
  return `SELECT lower(hex(named.1)), hex(min(named.2))
    FROM
    (
        SELECT arrayJoin([(anonymous_key, anonymous_id), (user_key, user_id), (from_key, from_id), (to_key, to_id)]) AS named
        FROM events
        WHERE environment_id = '${environmentId}' AND (identity_key IN (${list})
            OR (identity_key = ${toSql(ZERO_KEY)} AND type = 'alias' AND (from_key IN (${list}) OR to_key IN (${list}))))
    )
    WHERE named.1 IN (${list})
    GROUP BY named.1
    SETTINGS max_execution_time = ${querySeconds}`;
}
