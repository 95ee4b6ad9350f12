import type { ChainNode, IndexedChain } from '@playline/chain';
import type { ClickHouseAccount } from '@playline/stores';
import type { Random } from '@playline/testkit/random';
import type { Differences } from '../report.ts';
import type { Run } from '../run.ts';
import type { MintApi } from './api.ts';
import type { AssetMaker, CollectionKind, DemoContracts, MintBook } from './assets.ts';
import type { MintRows } from './check-requests.ts';
import type { MinterRole } from './role.ts';

/** Kinds of differences that a run about mints can find; each makes the run fail. */
export type MintDifferenceKind =
  | 'answer' // a call did not get the expected answer
  | 'list' // pages are out of order, have duplicates, or requests that do not belong there
  | 'missing' // an accepted request is not shown
  | 'open' // neither a token nor a failure at the end of the wait
  | 'outcome' // a token instead of a failure, a failure instead of a token, or another error
  | 'member' // a member of a mint request is not shown as requested
  | 'uninvited' // a refused asset, or one that was never requested, is shown, stored or minted
  | 'role' // a request ended while the signer had no MINTER_ROLE, or the minter did not report that it waits
  | 'chain' // the chain lacks the token of a mint request, has it differently, or has it twice
  | 'row' // the rows of mint_requests differ from the interface
  | 'history' // the activity history differs from the chain
  | 'metadata'; // the stored metadata is not what was sent last

export type MintDifferences = Differences<MintDifferenceKind>;

export interface MintSimulationOptions {
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
  readonly rate: number;
  readonly brokenShare: number;
  readonly durationMaxMs: number;
  /** Maximum time without any change of open assets. */
  readonly settleIdleMaxMs: number;
  readonly stop: AbortSignal;
  onProgress(line: string): void;
  log(line: string): void;
}

export const createCounts = () => ({
  orders: 0,
  conflicts: 0,
  probes: 0,
  lists: 0,
  listed: 0,
  refreshes: 0,
  /** Collections, tokens and stacks that were refreshed. */
  refreshed: 0,
  /** Assets requested without MINTER_ROLE, and those of them that the minter reported as waiting for it. */
  withoutRole: 0,
  waitedForRole: 0,
  /** Failed reference ids that were accepted again. */
  again: 0,
});

export interface MintStage {
  readonly options: MintSimulationOptions;
  readonly run: Run;
  readonly random: Random;
  readonly assets: AssetMaker;
  readonly book: MintBook;
  readonly api: MintApi;
  readonly rows: MintRows;
  readonly differences: MintDifferences;
  readonly counts: ReturnType<typeof createCounts>;
  readonly endAt: number;
}

export const COLLECTIONS: readonly CollectionKind[] = ['erc721', 'erc1155'];

export const pathOf = ({ options }: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `/v1/chains/${options.chain.name}/collections/${options.contracts[collection]}`;

export const mintsOf = (stage: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `${pathOf(stage, collection)}/nfts/mint-requests`;

export const isOver = ({ options, endAt }: MintStage): boolean => options.stop.aborted || performance.now() > endAt;
