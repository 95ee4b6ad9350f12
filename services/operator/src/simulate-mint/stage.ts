import type { ChainNode, IndexedChain } from '@playline/chain';
import type { ClickHouseAccount } from '@playline/runtime';
import type { Random } from '../simulate/random.ts';
import type { Run } from '../simulate/run.ts';
import type { MintApi } from './api.ts';
import type { AssetMaker, DemoContracts } from './assets.ts';
import type { CollectionKind, MintBook } from './book.ts';
import type { MintDifferences } from './kinds.ts';
import type { MintRows } from './mint-rows.ts';
import type { MinterRole } from './minter-role.ts';

export interface MintSimulationOptions {
  /** Of the chain interface, without `/v1`. */
  readonly url: string;
  readonly chain: IndexedChain;
  readonly nodes: readonly ChainNode[];
  readonly contracts: DemoContracts;
  readonly role: MinterRole;
  readonly clickhouse: ClickHouseAccount;
  /** Name of the header of secret keys, and the demo project's. */
  readonly keyHeader: string;
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly seed: number;
  readonly assetsMax: number;
  /** Assets per second; 0 at once. */
  readonly rate: number;
  /** Share of assets that can never be minted. */
  readonly brokenShare: number;
  /** Ends the asking. */
  readonly durationMaxMs: number;
  /** Patience with assets of which nothing changes any more. */
  readonly settleIdleMaxMs: number;
  /** Ends the asking early; what was asked for is reconciled all the same. */
  readonly stop: AbortSignal;
  /** Told often. */
  onProgress(line: string): void;
  /** Told of what changes the course of the run. */
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
  /** Collections, tokens and stacks that refreshes were about. */
  refreshed: number;
  /** Assets asked for without MINTER_ROLE, and those of which the minter said that they wait for it. */
  withoutRole: number;
  waitedForRole: number;
  /** Reference ids that had failed and were accepted again. */
  again: number;
}

/** What a run is made of. */
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
  /** When the asking ends. */
  readonly endAt: number;
}

export const COLLECTIONS: readonly CollectionKind[] = ['erc721', 'erc1155'];

/** Path of a collection of the demo project. */
export const pathOf = ({ options }: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `/v1/chains/${options.chain.name}/collections/${options.contracts[collection]}`;

export const mintsOf = (stage: Pick<MintStage, 'options'>, collection: CollectionKind): string =>
  `${pathOf(stage, collection)}/nfts/mint-requests`;

/** Whether nothing more is to be asked for. */
export const isOver = ({ options, endAt }: MintStage): boolean => options.stop.aborted || performance.now() > endAt;
