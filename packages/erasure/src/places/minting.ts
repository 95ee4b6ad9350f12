import type { TablePlace } from './place.ts';
import { ADDRESS, COUNT, TIME } from './words.ts';

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

const metadata = (name: string, subject: Record<string, string>): TablePlace => ({
  name,
  clearing: { by: 'no personal data', reason: 'what a team tells the public of its collections' },
  columns: { ...OF_ALL, ...subject, updated_at: TIME, metadata: OF_A_TEAM },
});

/** What teams ask to be minted, and what they say of it. */
export const MINTING_TABLES: readonly TablePlace[] = [
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
