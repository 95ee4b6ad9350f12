import { createHash } from 'node:crypto';
import { createRandom } from '@playline/testkit/random';
import { createDifferences } from '../report.ts';
import { createRun } from '../run.ts';
import { createAssetFactory, createMintLedger, type RequestedAsset, THRESHOLD } from './assets.ts';
import type { MintAttemptRow } from './check-requests.ts';
import type { ShownMint } from './lists.ts';
import {
  type ApiCall,
  type ApiResponse,
  createCounts,
  createTally,
  type MintDifferenceKind,
  type MintStage,
} from './stage.ts';

const CHAIN = { name: 'demo-chain', id: 'eip155:31337' };
export const CONTRACTS = {
  erc721: `0x${'71'.repeat(20)}`,
  erc1155: `0x${'55'.repeat(20)}`,
  erc20: `0x${'20'.repeat(20)}`,
};
const NO_RESPONSE: ApiResponse = { status: null, headers: {}, json: null, text: 'no response', mayBeStored: false };

export interface TestStage extends MintStage {
  readonly called: ApiCall[];
  /** Responses to the next calls. If the list is empty, calls get no response. */
  readonly responses: ApiResponse[];
  readonly stored: MintAttemptRow[];
  readonly holdings: Map<string, string>;
}

export function createTestStage(seed = 1): TestStage {
  const run = createRun(seed, 0);
  const random = createRandom(seed);
  const [called, responses, stored]: [ApiCall[], ApiResponse[], MintAttemptRow[]] = [[], [], []];
  const holdings = new Map<string, string>();
  const node = {
    name: 'memory',
    calls: async (calls: readonly { data: string }[]) => calls.map(({ data }) => holdings.get(data) ?? null),
  };
  return {
    run,
    random,
    called,
    responses,
    stored,
    holdings,
    options: {
      chain: CHAIN,
      contracts: CONTRACTS,
      nodes: [node],
      settleIdleMaxMs: 0,
    } as unknown as MintStage['options'],
    assets: createAssetFactory(run, random, CONTRACTS),
    ledger: createMintLedger(),
    api: {
      tally: createTally(),
      close: () => {},
      call: async (call) => {
        called.push(call);
        return responses.shift() ?? NO_RESPONSE;
      },
    },
    rows: { attempts: async () => stored, waitingForRole: async () => 0, metadata: async () => [] },
    differences: createDifferences<MintDifferenceKind>(),
    counts: createCounts(),
    endAt: Number.POSITIVE_INFINITY,
  };
}

export const createResponse = (status: number, json: unknown, fields: Partial<ApiResponse> = {}): ApiResponse => ({
  status,
  headers: {},
  json,
  text: JSON.stringify(json),
  mayBeStored: false,
  ...fields,
});

export function createQuotaResponse(fields: Partial<ApiResponse> = {}): ApiResponse {
  const headers = {
    'imx-mint-requests-limit': '2000',
    'imx-mint-requests-limit-reset': '2026-11-24T12:00:00.000Z',
    'imx-remaining-mint-requests': '1999',
    'imx-mint-requests-retry-after': '0',
  };
  const json = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replaceAll('-', '_'), value]));
  return createResponse(202, json, { headers, ...fields });
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');

export function toMinted(asset: RequestedAsset, number: number): ShownMint {
  const { referenceId, collection, owner, tokenId, amount } = asset;
  const hash = hashOf(referenceId);
  return {
    chain: { id: CHAIN.id, name: CHAIN.name },
    collection_address: CONTRACTS[collection],
    reference_id: referenceId,
    owner_address: owner.toLowerCase(),
    status: 'succeeded',
    amount,
    error: null,
    token_id: tokenId ?? String(THRESHOLD + BigInt(number)),
    activity_id: hash.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    transaction_hash: `0x${hash}`,
    created_at: '2026-11-24T12:00:00.000000Z',
    updated_at: '2026-11-24T12:00:09.000000Z',
  };
}

export function toFailed(asset: RequestedAsset, message: string): ShownMint {
  const nothing = { activity_id: null, transaction_hash: null, token_id: asset.tokenId };
  return { ...toMinted(asset, 0), ...nothing, status: 'failed', error: { message } };
}
