import {
  bytesColumn,
  createSentTable,
  digitsOf,
  microsColumn,
  millisColumn,
  type RowColumn,
  type SentTable,
} from '@playline/stores';
import { BLOCK_WRITER_LIMITS, type ClickHouseTarget, openClickHouse } from '@playline/stores/clickhouse';
import type { MetadataRow, MintRow, MintWriter } from '../store.ts';

/** Opens the writer; connects with the first call. */
export function openMintWriter(target: ClickHouseTarget): MintWriter & { close(): Promise<void> } {
  const connection = openClickHouse(target, BLOCK_WRITER_LIMITS);
  return {
    insert: ({ table, rows, token, signal }) => {
      const { statement, toLine } = SENT[table] as SentTable<MintRow | MetadataRow>;
      return connection.insertBlock({ statement, body: rows.map(toLine).join('\n'), token, signal });
    },
    ready: connection.ready,
    close: connection.close,
  };
}

const OF_BOTH: readonly RowColumn<MintRow | MetadataRow>[] = [
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
  ...OF_BOTH,
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
  ...OF_BOTH,
  { ...bytesColumn('attempt_id'), from: ({ attemptId }) => attemptId },
  { ...text('metadata'), from: ({ metadata }) => metadata },
];

/** @param subject the column with the id of the subject; null when the subject is the contract itself */
function metadataColumns(subject: string | null): readonly RowColumn<MetadataRow>[] {
  const ofSubject =
    subject === null ? [] : [{ name: subject, type: 'String', from: (row: MetadataRow) => row.subject }];
  return [
    ...OF_BOTH,
    ...ofSubject,
    { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
    { name: 'metadata', type: 'String', from: ({ metadata }) => metadata },
  ];
}

const SENT = {
  mint_requests: createSentTable('mint_requests', MINT),
  mint_metadata: createSentTable('mint_metadata', MINT_METADATA),
  collections: createSentTable('collections', metadataColumns(null)),
  nft_metadata: createSentTable('nft_metadata', metadataColumns('token_id')),
  metadata_stacks: createSentTable('metadata_stacks', metadataColumns('metadata_id')),
};
