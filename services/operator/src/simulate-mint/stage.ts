import type { ChainNode, IndexedChain } from '@playline/chain';
import type { ClickHouseAccount } from '@playline/stores';
import type { Random } from '../simulate/random.ts';
import type { Run } from '../simulate/run.ts';
import type { MintApi } from './api.ts';
import type { AssetMaker, DemoContracts } from './assets.ts';
import type { CollectionKind, MintBook } from './book.ts';
import type { MintDifferences } from './kinds.ts';
import type { MintRows } from './mint-rows.ts';
import type { MinterRole } from './minter-role.ts';

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
  /** Assets per second; 0: all at once. */
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
  say(line: string): void;
}

/** What was done, by kind. */
export interface MintDeeds {
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
  readonly deeds: MintDeeds;
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
