import { setTimeout as delay } from 'node:timers/promises';
import { grantCallsOf } from '@playline/access-keys';
import type { CallNode, ChainNode, IndexedChain } from '@playline/chain';
import type { ClickHouseAccount } from '@playline/stores';
import type { Random } from '@playline/testkit/random';
import type { Differences } from '../report.ts';
import type { Run } from '../run.ts';
import type { MintApi } from './api.ts';
import type { AssetMaker, CollectionKind, DemoContracts, MintBook } from './assets.ts';
import type { MintRows } from './judge-requests.ts';

/** Kinds of differences that a run about mints can find; each makes the run fail. */
export type MintDifferenceKind =
  | 'answer' // a call did not get the expected answer
  | 'list' // pages are out of order, have duplicates, or requests that do not belong there
  | 'missing' // an accepted request is not shown
  | 'open' // neither a token nor a failure at the end of the wait
  | 'outcome' // a token instead of a failure, a failure instead of a token, or another error
  | 'member' // a member of a mint request is not shown as it was requested
  | 'uninvited' // a refused asset, or one that was never requested, is shown, stored or minted
  | 'role' // a request ended while the signer had no MINTER_ROLE, or the minter did not report that it waits
  | 'chain' // the chain lacks the token of a mint request, has it differently, or has it twice
  | 'row' // the rows of mint_requests differ from the interface
  | 'history' // the activity history differs from the chain
  | 'metadata'; // the stored metadata is not what was sent last

export type MintDifferences = Differences<MintDifferenceKind>;

export interface MintSimulationOptions {
  /** Address of the chain interface, without `/v1`. */
  readonly url: string;
  readonly chain: IndexedChain;
  readonly nodes: readonly ChainNode[];
  readonly contracts: DemoContracts;
  readonly role: MinterRole;
  readonly clickhouse: ClickHouseAccount;
  /** Name of the header of secret keys, and the demo project's secret key. */
  readonly keyHeader: string;
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly seed: number;
  readonly assetsMax: number;
  /** Assets per second; 0: as fast as possible. */
  readonly rate: number;
  /** Share of assets that can never be minted. */
  readonly brokenShare: number;
  /** Maximum time for sending requests. */
  readonly durationMaxMs: number;
  /** Maximum time without any change of open assets. */
  readonly settleIdleMaxMs: number;
  /** Ends the requests early; what was requested is still reconciled. */
  readonly stop: AbortSignal;
  /** Called often, with the progress. */
  onProgress(line: string): void;
  /** Called with important events of the run. */
  log(line: string): void;
}

/** What was done, by kind. */
export interface MintCounts {
  orders: number;
  conflicts: number;
  probes: number;
  lists: number;
  listed: number;
  refreshes: number;
  /** Number of collections, tokens and stacks that were refreshed. */
  refreshed: number;
  /** Assets requested without MINTER_ROLE, and those of them that the minter reported as waiting for it. */
  withoutRole: number;
  waitedForRole: number;
  /** Number of failed reference ids that were accepted again. */
  again: number;
}

export const NO_COUNTS: MintCounts = {
  orders: 0,
  conflicts: 0,
  probes: 0,
  lists: 0,
  listed: 0,
  refreshes: 0,
  refreshed: 0,
  withoutRole: 0,
  waitedForRole: 0,
  again: 0,
};

/** The parts of a run. */
export interface MintStage {
  readonly options: MintSimulationOptions;
  readonly run: Run;
  readonly random: Random;
  readonly assets: AssetMaker;
  readonly book: MintBook;
  readonly api: MintApi;
  readonly rows: MintRows;
  readonly differences: MintDifferences;
  readonly counts: MintCounts;
  /** When to stop sending requests. */
  readonly endAt: number;
}

export const COLLECTIONS: readonly CollectionKind[] = ['erc721', 'erc1155'];

/** Path of a collection of the demo project. */
export const pathOf = ({ options }: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `/v1/chains/${options.chain.name}/collections/${options.contracts[collection]}`;

export const mintsOf = (stage: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `${pathOf(stage, collection)}/nfts/mint-requests`;

/** Whether to stop sending requests. */
export const isOver = ({ options, endAt }: MintStage): boolean => options.stop.aborted || performance.now() > endAt;

/** MINTER_ROLE of one address on some contracts, granted and revoked by their administrator. */
export interface MinterRole {
  /** @returns contracts on which the address lacks it */
  missing(): Promise<readonly string[]>;
  /** Resolves when it is granted on all of them, in a block. @throws Error when a transaction fails or is not mined */
  give(): Promise<void>;
  take(): Promise<void>;
}

export interface MinterRoleOptions {
  readonly ask: CallNode;
  /** Lower case, like the contracts. */
  readonly signer: string;
  readonly contracts: readonly string[];
}

/** Selectors of `revokeRole(bytes32,address)` and `hasRole(bytes32,address)`. */
const REVOKE_ROLE = '0xd547741f';
const HAS_ROLE = '0x91d14854';
const SELECTOR_DIGITS = 10;
const POLL_MS = 250;
/** A block takes a second, or more on a busy machine. */
const BLOCK_MAX_MS = 60_000;

/** The local stack's node signs for the administrator of the demo contracts, its first account. */
export function createMinterRole({ ask, signer, contracts }: MinterRoleOptions): MinterRole {
  const callsOf = () =>
    contracts
      .flatMap((contract) => grantCallsOf({ contract, address: signer }))
      .filter(({ role }) => role === 'MINTER_ROLE');
  const sendAll = async (selector: string | null) => {
    const [administrator] = (await ask({ method: 'eth_accounts', params: [] })) as string[];
    const hashes: unknown[] = [];
    for (const { to, data } of callsOf()) {
      const call = { from: administrator, to, data: selector === null ? data : withSelector(data, selector) };
      hashes.push(await ask({ method: 'eth_sendTransaction', params: [call] }));
    }
    for (const hash of hashes) await awaitReceipt(ask, hash);
  };
  return {
    missing: async () => {
      const missing: string[] = [];
      for (const { to, data } of callsOf()) {
        const call = { to, data: withSelector(data, HAS_ROLE) };
        const answer = await ask({ method: 'eth_call', params: [call, 'latest'] });
        if (BigInt(String(answer)) === 0n) missing.push(to);
      }
      return missing;
    },
    give: () => sendAll(null),
    take: () => sendAll(REVOKE_ROLE),
  };
}

const withSelector = (data: string, selector: string) => `${selector}${data.slice(SELECTOR_DIGITS)}`;

async function awaitReceipt(ask: CallNode, hash: unknown): Promise<void> {
  const endAt = performance.now() + BLOCK_MAX_MS;
  for (;;) {
    const receipt = (await ask({ method: 'eth_getTransactionReceipt', params: [hash] })) as { status?: string } | null;
    if (receipt?.status === '0x1') return;
    if (receipt !== null) throw new Error('the administrator of the demo contracts may not give or take roles');
    if (performance.now() > endAt) throw new Error('no block of the chain takes a transaction of the administrator');
    await delay(POLL_MS);
  }
}
