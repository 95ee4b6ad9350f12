import { DERIVED_TABLES } from './derived.ts';
import type { DerivedTable, SweptTable, TableStore } from './store.ts';
import { ADDRESS, COUNT, TIME, WITH_ROW } from './store.ts';

/** Tables about people who run the service: no erasure of a player finds anything there. */
const STAFF_TABLES: readonly TableStore[] = [
  {
    name: 'audit_log',
    clearing: {
      by: 'kept',
      reason:
        'what people did who run the service, for two years: it names no player. Of staff it names accounts; the addresses ' +
        'of their requests are gone after 90 days, by a limit of the column',
    },
    columns: {
      project_id: 'names a project',
      environment_id: 'names an environment',
      happened_at: TIME,
      entry_id: 'names a change',
      kind: 'a word of ours',
      object: 'id of what was changed: a project, key, collection or account of staff; never an id of a player',
      revision: COUNT,
      action: 'a word of ours',
      actor: 'account of somebody of the staff, or of an operator',
      request_id: 'random; names a request',
      address: 'of staff; 90 days',
      detail: 'what was changed, by lists of members that may be shown; names and logins of staff',
    },
  },
];

const OF_A_TEAM = 'what a team calls or says of its assets in public';

const OF_ALL = {
  chain: 'name of a chain',
  contract: ADDRESS,
  project_id: 'names a project',
  environment_id: 'names an environment',
  requested_at: TIME,
  trace_id: 'random; names a request of a team',
  logged_at: TIME,
  kafka_partition: 'a place in the log',
  kafka_offset: 'a place in the log',
};

const metadata = (name: string, subject: Record<string, string>): TableStore => ({
  name,
  clearing: { by: 'no personal data', reason: 'what a team tells the public of its collections' },
  columns: { ...OF_ALL, ...subject, updated_at: TIME, metadata: OF_A_TEAM },
});

/** What teams ask to be minted, and what they say of it. */
const MINTING_TABLES: readonly TableStore[] = [
  {
    name: 'mint_requests',
    clearing: {
      by: 'no personal data',
      reason: 'what a team mints for which public address; nothing that says whose an address is',
    },
    columns: {
      ...OF_ALL,
      attempt_id: 'random; names an acceptance of an asset',
      reference_id: OF_A_TEAM,
      revision: COUNT,
      signer: ADDRESS,
      owner: ADDRESS,
      token_id: 'public on the chain',
      amount: 'public on the chain',
      status: 'a word of the contract',
      stage: 'a word of ours',
      reason: 'a sentence of ours',
      nonce: COUNT,
      transaction_hash: 'public on the chain',
      activity_id: 'names an activity of a chain',
      error: 'words of a contract of a chain',
      changed_at: TIME,
    },
  },
  {
    name: 'mint_metadata',
    clearing: { by: 'no personal data', reason: 'what a team tells the public of its assets' },
    columns: { ...OF_ALL, attempt_id: 'random; names an acceptance of an asset', metadata: OF_A_TEAM },
  },
  metadata('collections', {}),
  metadata('nft_metadata', { token_id: 'public on the chain' }),
  metadata('metadata_stacks', { metadata_id: 'random; names a stack of a team' }),
];

const ENVIRONMENT = 'names an environment';
const MESSAGE = 'random; names a message, whose row goes';
const TRACE = 'random; names a request';
const HASH = 'keyed hash; kept, as the table is';
const OF_THE_LOG = 'a place in the log';
const OF_A_CHAIN = 'public; says something of a chain or a token';

/** Reasons of decisions that record what an operator has ruled about an id, as `identity_links` has them. */
export const RULINGS: readonly string[] = ['operator_allowed', 'operator_blocked'];

/** Tables whose rows are deleted and blanked by key. Every one has `environment_id`. */
export const SWEPT_TABLES: readonly SweptTable[] = [
  {
    name: 'events',
    clearing: {
      by: 'sweep',
      // An alias is about both its sides, whoever owns it.
      own: ['identity_key', 'from_key', 'to_key'],
      // A device that several people use: the event is the user's, the device was the erased visitor's too.
      carried: [{ key: 'anonymous_key', texts: ['anonymous_id'] }],
      times: ['event_time', 'received_at'],
    },
    columns: {
      environment_id: ENVIRONMENT,
      message_id: MESSAGE,
      trace_id: TRACE,
      user_key: 'where there is a user it is the owner, so it is identity_key',
      user_id: WITH_ROW,
      from_id: WITH_ROW,
      to_id: WITH_ROW,
      device_id: 'links nobody; goes with the row of its owner',
      session_id: 'links nobody; goes with the row of its owner',
    },
    // npm run columns: the engine works them out of `properties`, so there is nothing in them that is not in the row.
    prefixes: { property_: WITH_ROW },
  },
  {
    name: 'identity_links',
    clearing: {
      by: 'sweep',
      own: ['a_key', 'b_key'],
      // Two who were of one person with the erased one, and had been parted from it before the erasure.
      carried: [{ key: 'person_key', texts: [] }],
      times: ['event_time', 'received_at'],
      // Without its block, an erased placeholder would join strangers again.
      kept: { column: 'reason', values: RULINGS },
    },
    columns: { environment_id: ENVIRONMENT, message_id: MESSAGE, trace_id: TRACE },
  },
  {
    name: 'identity_overrides',
    clearing: { by: 'sweep', own: ['identity_key'], carried: [], times: ['linked_at'] },
    columns: {
      environment_id: ENVIRONMENT,
      person_key: 'key of a member of the same person, so the row is erased with it; it tells no time of its own',
    },
  },
  {
    name: 'identity_unlinks',
    // Facts that such a row would refuse are fenced themselves.
    clearing: { by: 'sweep', own: ['identity_key'], carried: [], times: ['unlinked_at'] },
    columns: { environment_id: ENVIRONMENT },
  },
  {
    name: 'consent_log',
    clearing: { by: 'sweep', own: ['identity_key'], carried: [], times: ['received_at'] },
    columns: { environment_id: ENVIRONMENT, trace_id: TRACE },
  },
];

/** Tables in which an erasure deletes rows, in the order in which it does. */
export const ERASED_TABLES: readonly (SweptTable | DerivedTable)[] = [...SWEPT_TABLES, ...DERIVED_TABLES];

/** Tables that no erasure writes to, with every column that was looked at. */
export const OTHER_TABLES: readonly TableStore[] = [
  {
    name: 'message_rejections',
    clearing: {
      by: 'no personal data',
      reason: 'rows have no owner, so none could be found: libraries are told by names of a setting. Gone in 97 days',
    },
    columns: {
      environment_id: ENVIRONMENT,
      code: 'a word of ours',
      field: 'name of a field of the contract',
      surface: 'a word of the contract',
      library: 'a name of our settings',
      library_version: 'digits and dots',
      received_at: TIME,
      trace_id: TRACE,
      kafka_partition: OF_THE_LOG,
      kafka_offset: OF_THE_LOG,
    },
  },
  {
    name: 'erasure_requests',
    clearing: { by: 'kept', reason: 'what was asked for, to be done and to be shown; keyed hashes only' },
    columns: {
      erasure_id: 'random; names a request',
      environment_id: ENVIRONMENT,
      subject_keys: HASH,
      member_keys: HASH,
      links: 'keyed hashes, and times of links; for thirty days',
      cutoff_at: TIME,
      requested_at: TIME,
      trace_id: TRACE,
    },
  },
  {
    name: 'erasure_fences',
    clearing: { by: 'kept', reason: 'without it what was erased would come back; keyed hashes only' },
    columns: {
      environment_id: ENVIRONMENT,
      identity_key: HASH,
      cutoff_at: TIME,
      erasure_id: 'random; names a request',
      fenced_at: TIME,
    },
  },
  {
    name: 'erasure_receipts',
    clearing: { by: 'kept', reason: 'the proof; a hash of all keys of the person, and no key' },
    columns: {
      erasure_id: 'random; names a request',
      environment_id: ENVIRONMENT,
      closure_hash: HASH,
      closure_count: COUNT,
      cutoff_at: TIME,
      accepted_at: TIME,
      fenced_at: TIME,
      visibly_erased_at: TIME,
      physically_erased_at: TIME,
      log_expires_at: TIME,
      log_expired_at: TIME,
      deleted: COUNT,
      verified: COUNT,
      log_ends: OF_THE_LOG,
      trace_id: TRACE,
      version: COUNT,
    },
  },
  {
    name: 'erasure_progress',
    clearing: { by: 'script', script: 'the eraser drops the batch when it is done; keyed hashes only' },
    columns: {
      batch_id: 'random; names a batch',
      erasure_id: 'random; names a request',
      environment_id: ENVIRONMENT,
      cutoff_at: TIME,
      closure_keys: HASH,
      deleted: COUNT,
      noted_at: TIME,
    },
  },
  {
    name: 'erasure_targets',
    clearing: { by: 'script', script: 'the eraser drops the batch when it is done; keyed hashes only' },
    columns: { batch_id: 'random; names a batch', environment_id: ENVIRONMENT, identity_key: HASH, cutoff_at: TIME },
  },
  {
    name: 'erasure_found',
    clearing: { by: 'script', script: 'the eraser drops the batch when it is done; keyed hashes only' },
    columns: {
      batch_id: 'random; names a batch',
      table_name: 'name of a table of ours',
      column_name: 'name of a column of ours',
      how: 'a word of ours',
      environment_id: ENVIRONMENT,
      identity_key: HASH,
      part: 'name of a part',
      part_offset: COUNT,
    },
  },
  {
    name: 'activities',
    clearing: {
      by: 'no personal data',
      reason:
        'what everybody can read on the chain itself, by public addresses. An address that is also the id of a person is ' +
        'erased where it stands as an id; here it says nothing of the person, and stays on the chain whatever is deleted',
    },
    columns: {
      chain: OF_A_CHAIN,
      updated_at: TIME,
      id: 'random; names an activity',
      indexed_at: TIME,
      contract: ADDRESS,
      type: 'a word of the contract',
      transaction_hash: ADDRESS,
      block_number: COUNT,
      transaction_index: COUNT,
      log_index: COUNT,
      details: 'addresses, tokens and amounts by the tables of the contract, nothing else: other members are not taken',
      trace_id: 'random; names what brought it',
      logged_at: TIME,
      kafka_partition: OF_THE_LOG,
      kafka_offset: OF_THE_LOG,
    },
  },
  {
    name: 'activity_feeds',
    clearing: { by: 'no personal data', reason: 'activities as readers get them, which anybody may ask for' },
    columns: {
      entry: 'a word of ours',
      feed: 'names of a chain and a type, and the address of a contract',
      updated_at: TIME,
      id: 'random; names an activity',
      indexed_at: TIME,
      kafka_partition: OF_THE_LOG,
      superseded_at: TIME,
      members: 'what `activities` has of it, as JSON',
    },
  },
  {
    name: 'activity_ids',
    clearing: { by: 'no personal data', reason: 'times of activities, whose members are public on the chain' },
    columns: {
      id: 'random; names an activity',
      updated_at: TIME,
      chain: OF_A_CHAIN,
      contract: ADDRESS,
      type: 'a word of the contract',
      indexed_at: TIME,
    },
  },
  {
    name: 'tokens',
    clearing: { by: 'no personal data', reason: 'what everybody can read about a token; no person is in it' },
    columns: {
      chain: OF_A_CHAIN,
      contract: ADDRESS,
      updated_at: TIME,
      root_contract: ADDRESS,
      symbol: OF_A_CHAIN,
      decimals: COUNT,
      image_url: OF_A_CHAIN,
      name: OF_A_CHAIN,
      verification_status: 'a word of the contract',
      is_canonical: 'yes or no',
      root_chain_id: OF_A_CHAIN,
      bridge_used: OF_A_CHAIN,
      trace_id: 'random; names what brought it',
      logged_at: TIME,
      kafka_partition: OF_THE_LOG,
      kafka_offset: OF_THE_LOG,
    },
  },
  {
    name: 'identity_persons',
    clearing: {
      by: 'script',
      script:
        'a dictionary in memory, read anew from identity_overrides every six minutes and by the removal from files; keyed hashes',
    },
    columns: { name: HASH, identity_key: HASH, person_key: HASH, version: OF_THE_LOG },
  },
  {
    name: 'analyst_grants',
    clearing: { by: 'kept', reason: 'which account may read what; accounts have made-up names' },
    columns: {
      account: 'name of an account of ClickHouse, made up by a command',
      environment_id: ENVIRONMENT,
      revoked: 'yes or no',
      changed_at: TIME,
      version: COUNT,
    },
  },
  {
    name: 'analyst_accounts',
    clearing: { by: 'kept', reason: 'which accounts were given out; accounts have made-up names' },
    columns: {
      account: 'name of an account of ClickHouse, made up by a command',
      password_mark: 'part of a hash of a random password',
      claim: 'random; names a command',
      dropped: 'yes or no',
      changed_at: TIME,
      version: COUNT,
    },
  },
  {
    name: 'applied_sql_files',
    clearing: { by: 'no personal data', reason: 'which SQL files were applied' },
    columns: { name: 'name of a file of ours', checksum: 'of a file of ours', applied_at: TIME },
  },
];

export const TABLES: readonly TableStore[] = [...ERASED_TABLES, ...OTHER_TABLES, ...STAFF_TABLES, ...MINTING_TABLES];
