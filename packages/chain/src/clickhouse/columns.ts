import { bytesColumn, createSentTable, digitsOf, microsColumn, millisColumn, type RowColumn } from '@playline/stores';
import { MICROSECONDS_MAX } from '../position.ts';
import type { ActivityRow, TokenRow } from '../rows.ts';
import type { Supersession } from '../store.ts';
import { toMembersText } from '../wire.ts';
import { feedNamesOf } from './feed-names.ts';

const optionalBytes = (name: string) => ({ name, type: 'Nullable(String)', as: `unhex(${name})` });

const LOGGED: readonly RowColumn<Pick<ActivityRow, 'loggedAtMs' | 'partition' | 'offset' | 'traceId'>>[] = [
  { name: 'trace_id', type: 'String', from: ({ traceId }) => traceId },
  { ...millisColumn('logged_at'), from: ({ loggedAtMs }) => loggedAtMs },
  { name: 'kafka_partition', type: 'UInt16', from: ({ partition }) => partition },
  { name: 'kafka_offset', type: 'UInt64', from: ({ offset }) => offset },
];

const VERSION: readonly RowColumn<ActivityRow>[] = [
  { name: 'id', type: 'UUID', from: ({ id }) => id },
  { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytesColumn('contract'), from: ({ contractAddress }) => digitsOf(contractAddress) },
  { name: 'type', type: 'String', from: ({ type }) => type },
  { ...microsColumn('indexed_at'), from: ({ indexedAt }) => indexedAt },
];

const number = (name: string) => ({ name, type: 'Nullable(UInt64)' });

const ACTIVITY: readonly RowColumn<ActivityRow>[] = [
  ...VERSION,
  {
    ...optionalBytes('transaction_hash'),
    from: ({ blockchainMetadata }) => digitsOf(blockchainMetadata?.transactionHash),
  },
  { ...number('block_number'), from: ({ blockchainMetadata }) => blockchainMetadata?.blockNumber ?? null },
  { ...number('transaction_index'), from: ({ blockchainMetadata }) => blockchainMetadata?.transactionIndex ?? null },
  { ...number('log_index'), from: ({ blockchainMetadata }) => blockchainMetadata?.logIndex ?? null },
  { name: 'details', type: 'String', from: ({ details }) => details },
  ...LOGGED,
];

type Entry = ActivityRow | Supersession;
const isSupersession = (entry: Entry): entry is Supersession => 'supersededAt' in entry;

/** An entry is sent once. The insert makes a row of it for each of its feeds. */
const FEED_ENTRY: readonly RowColumn<Entry>[] = [
  { name: 'entry', type: 'String', from: (entry) => (isSupersession(entry) ? 'superseded' : 'version') },
  { name: 'feeds', type: 'Array(String)', as: 'feed', column: 'feed', from: feedNamesOf },
  { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
  { name: 'id', type: 'UUID', from: ({ id }) => id },
  { ...microsColumn('indexed_at'), from: ({ indexedAt }) => indexedAt },
  {
    name: 'kafka_partition',
    type: 'UInt16',
    from: (entry) => (isSupersession(entry) ? 0 : entry.partition),
  },
  {
    ...microsColumn('superseded_at'),
    from: (entry) => (isSupersession(entry) ? entry.supersededAt : MICROSECONDS_MAX),
  },
  {
    name: 'members',
    type: 'String',
    from: (entry) => (isSupersession(entry) ? '' : toMembersText(entry)),
  },
];
const IN_EACH_FEED = 'ARRAY JOIN feeds AS feed';

const text = (name: string) => ({ name, type: 'Nullable(String)' });

const TOKEN: readonly RowColumn<TokenRow>[] = [
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytesColumn('contract'), from: ({ contractAddress }) => digitsOf(contractAddress) },
  { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
  { ...optionalBytes('root_contract'), from: ({ rootContractAddress }) => digitsOf(rootContractAddress) },
  { ...text('symbol'), from: ({ symbol }) => symbol },
  { name: 'decimals', type: 'Nullable(UInt8)', from: ({ decimals }) => decimals },
  { ...text('image_url'), from: ({ imageUrl }) => imageUrl },
  { ...text('name'), from: ({ name }) => name },
  { name: 'verification_status', type: 'String', from: ({ verificationStatus }) => verificationStatus },
  { name: 'is_canonical', type: 'Bool', from: ({ isCanonical }) => isCanonical },
  { ...text('root_chain_id'), from: ({ rootChainId }) => rootChainId },
  { ...text('bridge_used'), from: ({ bridgeUsed }) => bridgeUsed },
  ...LOGGED,
];

export const SENT_TABLES = {
  activities: createSentTable('activities', ACTIVITY),
  activity_ids: createSentTable('activity_ids', VERSION),
  activity_feeds: createSentTable('activity_feeds', FEED_ENTRY, IN_EACH_FEED),
  tokens: createSentTable('tokens', TOKEN),
};
