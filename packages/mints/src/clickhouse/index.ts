import {
  bytesColumn,
  createSentTable,
  digitsOf,
  microsColumn,
  millisColumn,
  type RowColumn,
  type SentTable,
} from '@playline/stores';
import {
  BLOCK_WRITER_LIMITS,
  type ClickHouse,
  type ClickHouseTarget,
  openClickHouse,
} from '@playline/stores/clickhouse';
import type { MintAsset, MintCollection, MintScope } from '../asset.ts';
import { findCurrentAttempt, type MintState } from '../states.ts';
import {
  comparePositions,
  type MetadataRow,
  type MintPageQuery,
  type MintReader,
  type MintRow,
  type MintWriter,
  toMintPage,
} from '../store.ts';

const LIMITS = { executionMaxS: 10, connectionsMax: 16 };
/** Limits the queries per page, because every row of a query may be superseded. */
const ROUNDS_MAX = 20;

interface MintTables extends MintReader {
  /** Reads the last revision of every attempt, in batches. */
  readAll(batchSize: number): AsyncGenerator<readonly MintState[]>;
  close(): Promise<void>;
}

/** Connects on the first call. */
export function openMintReader(target: ClickHouseTarget): MintTables {
  const connection = openClickHouse(target, LIMITS);
  return {
    readPage: createReadPage(connection),
    readOne: async (scope, referenceId) => {
      const attempts = await readAttempts(connection, scope, [referenceId]);
      return attempts.get(toReferenceName({ ...scope, referenceId })) ?? null;
    },
    readMetadata: async ({ chain, contractAddress, requestedAt, attemptId }) => {
      const [row] = await connection.read<Pick<MintAsset, 'metadata'>>(
        `SELECT metadata FROM mint_metadata WHERE ${OF_COLLECTION} ` +
          "AND requested_at = fromUnixTimestamp64Milli({at: Int64}, 'UTC') " +
          'AND attempt_id = toFixedString(unhex({attempt: String}), 16) LIMIT 1',
        { ...paramsOf({ chain, contractAddress }), at: requestedAt, attempt: attemptId },
      );
      return row ?? null;
    },
    readAll: (batchSize) => readAll(connection, batchSize),
    ready: connection.ready,
    close: connection.close,
  };
}

const toAddress = (column: string) => `concat('0x', lower(hex(${column})))`;
const COLUMNS = [
  `chain, ${toAddress('contract')} AS contractAddress, reference_id AS referenceId`,
  `lower(hex(attempt_id)) AS attemptId, ${toAddress('signer')} AS signerAddress, project_id AS projectId`,
  `environment_id AS environmentId, ${toAddress('owner')} AS ownerAddress, token_id AS tokenId, amount`,
  'toUnixTimestamp64Milli(requested_at) AS requestedAt, trace_id AS traceId, revision, status, stage, reason, nonce',
  `if(transaction_hash IS NULL, NULL, ${toAddress('transaction_hash')}) AS transactionHash`,
  'toString(activity_id) AS activityId, error, toUnixTimestamp64Milli(changed_at) AS changedAt',
].join(', ');

/** The column alias is not `signer`, because ClickHouse would substitute the alias in conditions. */
type StoredState = Omit<MintState, 'signer'> & { readonly signerAddress: string };

const toState = ({ signerAddress: signer, ...state }: StoredState): MintState => ({ ...state, signer });

const OF_COLLECTION = 'chain = {chain: String} AND contract = toFixedString(unhex({contract: String}), 20)';
const paramsOf = ({ chain, contractAddress }: MintCollection) => ({ chain, contract: contractAddress.slice(2) });

function createReadPage(connection: ClickHouse): MintReader['readPage'] {
  return async (query) => {
    const { collection, direction, limit, gap } = query;
    let found: MintState[] = [];
    let from = gap;
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const rows = await readRows(connection, { ...query, gap: from, limit: limit - found.length });
      const current = await dropSuperseded(connection, collection, rows);
      found = direction === 'next' ? [...found, ...current] : [...current, ...found];
      const edge = direction === 'next' ? rows.at(-1) : rows[0];
      if (edge === undefined || found.length >= limit) break;
      from = {
        requestedAt: edge.requestedAt,
        attemptId: edge.attemptId,
        side: direction === 'next' ? 'after' : 'before',
      };
    }
    return toMintPage(found, found.length === 0 ? from : gap);
  };
}

/** Returns rows in ascending order. */
async function readRows(connection: ClickHouse, query: MintPageQuery): Promise<MintState[]> {
  const { collection, owner, horizon, status, gap, direction, limit } = query;
  const isNext = direction === 'next';
  const isInclusive = (gap.side === 'before') === isNext;
  const sign = `${isNext ? '>' : '<'}${isInclusive ? '=' : ''}`;
  const order = isNext ? '' : ' DESC';
  const ofOwner =
    owner === null ? '' : ' AND project_id = {project: String} AND environment_id = {environment: String}';
  const ofTime = horizon === null ? '' : " AND requested_at <= fromUnixTimestamp64Milli({horizon: Int64}, 'UTC')";
  const ofStatus = status === null ? '' : ' AND status = {status: String}';
  const rows = await connection.read<StoredState>(
    `SELECT ${COLUMNS} FROM mint_requests FINAL WHERE ${OF_COLLECTION} AND (requested_at, attempt_id) ${sign} ` +
      "(fromUnixTimestamp64Milli({at: Int64}, 'UTC'), toFixedString(unhex({attempt: String}), 16))" +
      `${ofOwner}${ofTime}${ofStatus} ORDER BY requested_at${order}, attempt_id${order} LIMIT {limit: UInt32}`,
    {
      ...paramsOf(collection),
      project: owner?.projectId ?? '',
      environment: owner?.environmentId ?? '',
      horizon: horizon ?? 0,
      status: status ?? '',
      at: gap.requestedAt,
      attempt: gap.attemptId,
      limit,
    },
  );
  const states = rows.map(toState);
  return isNext ? states : states.toReversed();
}

/** Drops superseded attempts: failed attempts with a later attempt, and attempts that the minter ignored. */
async function dropSuperseded(
  connection: ClickHouse,
  collection: MintCollection,
  rows: readonly MintState[],
): Promise<MintState[]> {
  const candidates = rows.filter(({ status, revision }) => status === 'failed' || revision === 0);
  if (candidates.length === 0) return [...rows];
  const ids = [...new Set(candidates.map(({ referenceId }) => referenceId))];
  const latest = await readAttempts(connection, collection, ids);
  return rows.filter((row) => (latest.get(toReferenceName(row))?.attemptId ?? row.attemptId) === row.attemptId);
}

/** Each project has its own reference ids. */
const toReferenceName = ({ projectId, referenceId }: Pick<MintState, 'projectId' | 'referenceId'>) =>
  `${projectId} ${referenceId}`;

/** Reads the current attempts by `toReferenceName`. @param scope covers all projects if it has no project */
async function readAttempts(
  connection: ClickHouse,
  scope: MintCollection & Partial<MintScope>,
  referenceIds: readonly string[],
): Promise<ReadonlyMap<string, MintState>> {
  const ofProject = scope.projectId === undefined ? '' : ' AND project_id = {project: String}';
  const rows = await connection.read<StoredState>(
    `SELECT ${COLUMNS} FROM mint_requests WHERE ${OF_COLLECTION}${ofProject} AND reference_id IN {ids: Array(String)}`,
    { ...paramsOf(scope), project: scope.projectId ?? '', ids: referenceIds },
  );
  const attempts = Map.groupBy(rows.map(toState), toReferenceName);
  return new Map(
    [...attempts].flatMap(([id, states]) => {
      const latest = findCurrentAttempt(states);
      return latest === null ? [] : [[id, latest] as const];
    }),
  );
}

async function* readAll(connection: ClickHouse, batchSize: number): AsyncGenerator<readonly MintState[]> {
  let after: readonly [string, string, number, string] = ['', '', 0, ''];
  for (;;) {
    const [chain, contract, at, attempt] = after;
    const rows = await connection.read<StoredState>(
      `SELECT ${COLUMNS} FROM mint_requests FINAL WHERE (chain, contract, requested_at, attempt_id) > ({chain: String}, ` +
        "toFixedString(unhex({contract: String}), 20), fromUnixTimestamp64Milli({at: Int64}, 'UTC'), " +
        'toFixedString(unhex({attempt: String}), 16)) ' +
        'ORDER BY chain, contract, requested_at, attempt_id LIMIT {batchSize: UInt32}',
      { chain, contract, at, attempt, batchSize },
    );
    const states = rows.map(toState);
    if (states.length > 0) yield states.toSorted(comparePositions);
    const last = states.at(-1);
    if (last === undefined || states.length < batchSize) return;
    after = [last.chain, last.contractAddress.slice(2), last.requestedAt, last.attemptId];
  }
}

/** Connects on the first call. */
export function openMintWriter(target: ClickHouseTarget): MintWriter & { close(): Promise<void> } {
  const connection = openClickHouse(target, BLOCK_WRITER_LIMITS);
  return {
    insert: ({ table, rows, token, signal }) => {
      const { statement, toLine } = SENT_TABLES[table] as SentTable<MintRow | MetadataRow>;
      return connection.insertBlock({ statement, body: rows.map(toLine).join('\n'), token, signal });
    },
    ready: connection.ready,
    close: connection.close,
  };
}

const SHARED_COLUMNS: readonly RowColumn<MintRow | MetadataRow>[] = [
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytesColumn('contract'), from: ({ contractAddress }) => digitsOf(contractAddress) },
  { name: 'project_id', type: 'String', from: ({ projectId }) => projectId },
  { name: 'environment_id', type: 'String', from: ({ environmentId }) => environmentId },
  { ...millisColumn('requested_at'), from: ({ requestedAt }) => requestedAt },
  { name: 'trace_id', type: 'String', from: ({ traceId }) => traceId },
  { ...millisColumn('logged_at'), from: ({ loggedAtMs }) => loggedAtMs },
  { name: 'kafka_partition', type: 'UInt16', from: ({ partition }) => partition },
  { name: 'kafka_offset', type: 'UInt64', from: ({ offset }) => offset },
];

const text = (name: string) => ({ name, type: 'Nullable(String)' });

const MINT: readonly RowColumn<MintRow>[] = [
  ...SHARED_COLUMNS,
  { ...bytesColumn('attempt_id'), from: ({ attemptId }) => attemptId },
  { name: 'reference_id', type: 'String', from: ({ referenceId }) => referenceId },
  { name: 'revision', type: 'UInt64', from: ({ revision }) => revision },
  { ...bytesColumn('signer'), from: ({ signer }) => digitsOf(signer) },
  { ...bytesColumn('owner'), from: ({ ownerAddress }) => digitsOf(ownerAddress) },
  { ...text('token_id'), from: ({ tokenId }) => tokenId },
  { ...text('amount'), from: ({ amount }) => amount },
  { name: 'status', type: 'String', from: ({ status }) => status },
  { name: 'stage', type: 'String', from: ({ stage }) => stage },
  { ...text('reason'), from: ({ reason }) => reason },
  { name: 'nonce', type: 'Nullable(UInt64)', from: ({ nonce }) => nonce },
  {
    name: 'transaction_hash',
    type: 'Nullable(String)',
    as: 'unhex(transaction_hash)',
    from: ({ transactionHash }) => digitsOf(transactionHash),
  },
  { name: 'activity_id', type: 'Nullable(UUID)', from: ({ activityId }) => activityId },
  { ...text('error'), from: ({ error }) => error },
  { ...millisColumn('changed_at'), from: ({ changedAt }) => changedAt },
];

const MINT_METADATA: readonly RowColumn<MintRow>[] = [
  ...SHARED_COLUMNS,
  { ...bytesColumn('attempt_id'), from: ({ attemptId }) => attemptId },
  { ...text('metadata'), from: ({ metadata }) => metadata },
];

/** @param subject the column that identifies the subject, or null if the contract does */
function metadataColumns(subject: string | null): readonly RowColumn<MetadataRow>[] {
  const subjectColumns =
    subject === null ? [] : [{ name: subject, type: 'String', from: (row: MetadataRow) => row.subject }];
  return [
    ...SHARED_COLUMNS,
    ...subjectColumns,
    { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
    { name: 'metadata', type: 'String', from: ({ metadata }) => metadata },
  ];
}

const SENT_TABLES = {
  mint_requests: createSentTable('mint_requests', MINT),
  mint_metadata: createSentTable('mint_metadata', MINT_METADATA),
  collections: createSentTable('collections', metadataColumns(null)),
  nft_metadata: createSentTable('nft_metadata', metadataColumns('token_id')),
  metadata_stacks: createSentTable('metadata_stacks', metadataColumns('metadata_id')),
};
