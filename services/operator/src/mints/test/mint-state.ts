import type { MintStateRecord } from '@playline/contracts';
import type { MintState } from '@playline/mints';

export const CONTRACT = `0x${'c0'.repeat(20)}`;
export const SIGNER = `0x${'51'.repeat(20)}`;

const bytesOf = (hex: string) => Buffer.from(hex.slice(2), 'hex');
let count = 0;

export const stateRecordOf = (referenceId: string, changes: Partial<MintStateRecord> = {}): MintStateRecord => ({
  chain: 'demo-chain',
  contractAddress: bytesOf(CONTRACT),
  referenceId,
  signer: bytesOf(SIGNER),
  attemptId: Buffer.from((++count).toString(16).padStart(32, '0'), 'hex'),
  projectId: 'demo',
  environmentId: 'demo-development',
  ownerAddress: Buffer.alloc(20, 1),
  tokenId: '7',
  amount: null,
  requestedAt: 1_000,
  traceId: '0'.repeat(32),
  revision: 2,
  status: 'pending',
  stage: 'waiting',
  reason: 'The key is disabled.',
  nonce: null,
  transactionHash: null,
  activityId: null,
  error: null,
  requestPartition: 0,
  requestOffset: count,
  changedAt: 2_000,
  ...changes,
});

export const FAILED: MintState = {
  chain: 'demo-chain',
  contractAddress: CONTRACT,
  referenceId: 'sword',
  attemptId: 'a1'.repeat(16),
  signer: SIGNER,
  projectId: 'demo',
  environmentId: 'demo-development',
  ownerAddress: `0x${'ab'.repeat(20)}`,
  tokenId: '7',
  amount: null,
  traceId: '0'.repeat(32),
  requestedAt: 1_000,
  revision: 3,
  status: 'failed',
  stage: 'settled',
  reason: null,
  nonce: null,
  transactionHash: null,
  activityId: null,
  error: 'reverted',
  changedAt: 2_000,
};
