import { askClickHouse, type ClickHouseAccount } from '@playline/stores';
import { type Identity, ownerOf } from './persons.ts';
import { messageIdPrefix, type Run } from './run.ts';

/** One owner of events in the store. `persons` are the distinct person keys (hex) of its events. */
export interface StoredOwner {
  readonly kind: string;
  readonly id: string;
  readonly persons: readonly string[];
}

/** Queries of the reconciliation, all limited to messages of the run. */
export interface EventReader {
  /** Rows in the raw table, and distinct message ids among them. */
  counts(): Promise<{ raw: number; distinct: number }>;
  /** Calls `each` with the sequence number of every row of the exact view. */
  eachSequence(each: (sequence: number) => void): Promise<void>;
  /** All owners of events; `kind` is '' for events without an owner. */
  owners(): Promise<StoredOwner[]>;
}

const RUN_ROWS = `environment_id = {environment:String} AND startsWith(toString(message_id), {prefix:String})`;
const OWNERS = `
  SELECT if(identity_type = '', 'untyped', toString(identity_type)) AS kind, user_id, anonymous_id,
    groupUniqArray(3)(lower(hex(person_key))) AS persons
  FROM events_identified WHERE ${RUN_ROWS} GROUP BY kind, user_id, anonymous_id FORMAT JSONCompactEachRow`;
/** Longer than a scan of some ten million rows takes on a laptop, short enough to notice a store that hangs. */
const QUERY_MAX_MS = 120_000;
/** Bytes of a UUID in RowBinary: two little-endian halves. */
const UUID_BYTES = 16;

export function createEventReader(address: ClickHouseAccount, environmentId: string, run: Run): EventReader {
  const settings = { param_environment: environmentId, param_prefix: messageIdPrefix(run) };
  const query = (sql: string): Promise<Response> =>
    askClickHouse(address, { body: sql, settings, deadlineMs: QUERY_MAX_MS });
  return {
    counts: async () => {
      const sql = `SELECT count(), uniqExact(message_id) FROM events WHERE ${RUN_ROWS} FORMAT TabSeparated`;
      const [raw = 0, distinct = 0] = (await (await query(sql)).text()).trim().split('\t').map(Number);
      return { raw, distinct };
    },
    eachSequence: async (each) => {
      const response = await query(`SELECT message_id FROM events_exact WHERE ${RUN_ROWS} FORMAT RowBinary`);
      for await (const id of readRows(response)) each(id.readUInt32LE(UUID_BYTES / 2));
    },
    owners: async () => {
      const text = await (await query(OWNERS)).text();
      const owners = new Map<string, StoredOwner>();
      for (const line of text.split('\n').filter(Boolean)) {
        const [kind, userId, anonymousId, persons] = JSON.parse(line) as [Identity['kind'], string, string, string[]];
        const { kind: ownerKind, id } = ownerOf({ kind, id: userId }, anonymousId) ?? { kind: '', id: '' };
        const name = `${ownerKind} ${id}`;
        const known = owners.get(name)?.persons ?? [];
        owners.set(name, { kind: ownerKind, id, persons: [...new Set([...known, ...persons])] });
      }
      return [...owners.values()];
    },
  };
}

/** Cuts a byte stream into rows of 16 bytes, wherever its chunks end. */
async function* readRows(response: Response): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of response.body ?? []) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    let start = 0;
    for (; start + UUID_BYTES <= bytes.length; start += UUID_BYTES) yield bytes.subarray(start, start + UUID_BYTES);
    rest = bytes.subarray(start);
  }
  if (rest.length > 0) throw new Error('ClickHouse ended its answer within a row');
}
