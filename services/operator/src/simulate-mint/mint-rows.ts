import { type ClickHouseAccount, createQueryRows, readRows } from '@playline/stores';

/** One attempt, in its last revision. */
export interface MintAttemptRow {
  readonly referenceId: string;
  /** `0x` and 40 lower-case digits, like the owner. */
  readonly contract: string;
  readonly status: string;
  readonly tokenId: string | null;
  readonly amount: string | null;
  readonly owner: string;
  readonly transactionHash: string | null;
  readonly activityId: string | null;
  readonly error: string | null;
}

/** Stored metadata. */
export interface StoredMetadata {
  readonly kind: 'collection' | 'token' | 'stack';
  readonly contract: string;
  /** Id of a token, UUID of a stack, or '' for a collection. */
  readonly subject: string;
  /** JSON text. */
  readonly metadata: string;
}

/** The tables, read by queries that do not share code with the interface. */
export interface MintRows {
  /** Attempts of the run; those of a reference id in the order of their requests. */
  attempts(): Promise<readonly MintAttemptRow[]>;
  /** How many assets of the run wait for MINTER_ROLE. */
  waitingForRole(): Promise<number>;
  metadata(contracts: readonly string[]): Promise<readonly StoredMetadata[]>;
}

const QUERY_MAX_MS = 60_000;
const toHex = (column: string) => `concat('0x', lower(hex(${column})))`;
/** Values of the largest revision; a tuple, so that a NULL in it is kept. */
const LAST = `argMax(tuple(status, token_id, amount, ${toHex('owner')}, if(isNull(transaction_hash), NULL, ${toHex('transaction_hash')}), toString(activity_id), error), revision)`;

/** @param prefix of the reference ids of the run: letters, digits and hyphens */
export function createMintRows(account: ClickHouseAccount, prefix: string): MintRows {
  const query = createQueryRows(account, { deadlineMs: QUERY_MAX_MS });
  const ofRun = `startsWith(reference_id, '${prefix}')`;
  return {
    attempts: async () => {
      const rows = await readRows(
        query(
          `SELECT reference_id, ${toHex('contract')}, ${LAST} FROM mint_requests WHERE ${ofRun} ` +
            'GROUP BY chain, contract, reference_id, attempt_id, requested_at ORDER BY requested_at',
        ),
      );
      return rows.map(([referenceId, contract, last]) => {
        const [status, tokenId, amount, owner, transactionHash, activityId, error] = last as [string, ...never[]];
        return { referenceId, contract, status, tokenId, amount, owner, transactionHash, activityId, error };
      }) as unknown as MintAttemptRow[];
    },
    waitingForRole: async () => {
      const [row] = await readRows(
        query(
          `SELECT count() FROM mint_requests FINAL WHERE ${ofRun} AND status = 'pending' AND reason LIKE '%MINTER_ROLE%'`,
        ),
      );
      return Number(row?.[0] ?? 0);
    },
    metadata: async (contracts) => {
      const of = (kind: string, table: string, subject: string) =>
        `SELECT '${kind}' AS kind, ${toHex('contract')} AS address, ${subject} AS subject, metadata FROM ${table} FINAL ` +
        `WHERE address IN (${contracts.map((contract) => `'${contract}'`).join(', ')})`;
      const rows = await readRows(
        query(
          [
            of('collection', 'collections', "''"),
            of('token', 'nft_metadata', 'token_id'),
            of('stack', 'metadata_stacks', 'metadata_id'),
          ].join(' UNION ALL '),
        ),
      );
      return rows.map(([kind, contract, subject, metadata]) => ({
        kind,
        contract,
        subject,
        metadata,
      })) as StoredMetadata[];
    },
  };
}
