import type { ClickHouseTarget } from '@playline/errors';
import type { MetadataRow, MintRow, MintTable, MintWriter } from '../store.ts';
import { openMintConnection } from './connection.ts';

/** Longer than any healthy insert of a block takes, and one connection per partition that writes at the same time. */
const LIMITS = { executionMaxS: 60, connectionsMax: 16 };

/** Opens the writer; connects with the first call. */
export function openMintWriter(target: ClickHouseTarget): MintWriter & { close(): Promise<void> } {
  const connection = openMintConnection(target, LIMITS);
  return {
    insert: ({ table, rows, token, signal }) => {
      const { statement, toLine } = SENT[table] as SentTable<MintRow | MetadataRow>;
      return connection.insert(statement, rows.map(toLine), { token, signal });
    },
    ready: connection.ready,
    close: connection.close,
  };
}

/** A column of the JSON lines, and the expression that converts it to the column of the table. */
interface SentColumn<Row> {
  readonly name: string;
  readonly type: string;
  readonly as?: string;
  readonly from: (row: Row) => unknown;
}

interface SentTable<Row> {
  readonly statement: string;
  readonly toLine: (row: Row) => string;
}

const bytes = (name: string) => ({ name, type: 'String', as: `unhex(${name})` });
const millis = (name: string) => ({ name, type: 'Int64', as: `fromUnixTimestamp64Milli(${name}, 'UTC')` });
const micros = (name: string) => ({ name, type: 'Int64', as: `fromUnixTimestamp64Micro(${name}, 'UTC')` });
const hexOf = (text: string | null) => text?.slice(2) ?? null;

const OF_BOTH: readonly SentColumn<MintRow | MetadataRow>[] = [
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytes('contract'), from: ({ contractAddress }) => hexOf(contractAddress) },
  { name: 'project_id', type: 'String', from: ({ projectId }) => projectId },
  { name: 'environment_id', type: 'String', from: ({ environmentId }) => environmentId },
  { ...millis('requested_at'), from: ({ requestedAt }) => requestedAt },
  { name: 'trace_id', type: 'String', from: ({ traceId }) => traceId },
  { ...millis('logged_at'), from: ({ loggedAtMs }) => loggedAtMs },
  { name: 'kafka_partition', type: 'UInt16', from: ({ partition }) => partition },
  { name: 'kafka_offset', type: 'UInt64', from: ({ offset }) => offset },
];

const text = (name: string) => ({ name, type: 'Nullable(String)' });

const MINT: readonly SentColumn<MintRow>[] = [
  ...OF_BOTH,
  { ...bytes('attempt_id'), from: ({ attemptId }) => attemptId },
  { name: 'reference_id', type: 'String', from: ({ referenceId }) => referenceId },
  { name: 'revision', type: 'UInt64', from: ({ revision }) => revision },
  { ...bytes('signer'), from: ({ signer }) => hexOf(signer) },
  { ...bytes('owner'), from: ({ ownerAddress }) => hexOf(ownerAddress) },
  { ...text('token_id'), from: ({ tokenId }) => tokenId },
  { ...text('amount'), from: ({ amount }) => amount },
  { ...text('metadata'), from: ({ metadata }) => metadata },
  { name: 'status', type: 'String', from: ({ status }) => status },
  { name: 'stage', type: 'String', from: ({ stage }) => stage },
  { ...text('reason'), from: ({ reason }) => reason },
  { name: 'nonce', type: 'Nullable(UInt64)', from: ({ nonce }) => nonce },
  {
    ...{ name: 'transaction_hash', type: 'Nullable(String)', as: 'unhex(transaction_hash)' },
    from: ({ transactionHash }) => hexOf(transactionHash),
  },
  { name: 'activity_id', type: 'Nullable(UUID)', from: ({ activityId }) => activityId },
  { ...text('error'), from: ({ error }) => error },
  { ...millis('changed_at'), from: ({ changedAt }) => changedAt },
];

/** @param subject the column with the id of the subject; null when the subject is the contract itself */
function metadataColumns(subject: string | null): readonly SentColumn<MetadataRow>[] {
  const ofSubject =
    subject === null ? [] : [{ name: subject, type: 'String', from: (row: MetadataRow) => row.subject }];
  return [
    ...OF_BOTH,
    ...ofSubject,
    { ...micros('updated_at'), from: ({ updatedAt }) => updatedAt },
    { name: 'metadata', type: 'String', from: ({ metadata }) => metadata },
  ];
}

function createSent<Row>(table: MintTable, columns: readonly SentColumn<Row>[]): SentTable<Row> {
  const names = columns.map(({ name }) => name).join(', ');
  const values = columns.map(({ name, as = name }) => `${as} AS ${name}`).join(', ');
  const structure = columns.map(({ name, type }) => `${name} ${type}`).join(', ');
  return {
    statement: `INSERT INTO ${table} (${names}) SELECT ${values} FROM input('${structure}') FORMAT JSONEachRow`,
    toLine: (row) => JSON.stringify(Object.fromEntries(columns.map(({ name, from }) => [name, from(row)]))),
  };
}

const SENT = {
  mint_requests: createSent('mint_requests', MINT),
  collections: createSent('collections', metadataColumns(null)),
  nft_metadata: createSent('nft_metadata', metadataColumns('token_id')),
  metadata_stacks: createSent('metadata_stacks', metadataColumns('metadata_id')),
};
