import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AnvilOptions,
  anvilArguments,
  anvilProgram,
  type BlockMaker,
  CHAIN_ID,
  type ContractName,
  callRpc,
  type DemoAddresses,
  deployDemo,
  openBlockMaker,
  prepareSigner,
  readContract,
  SIGNATURES,
  saveState,
  setClock,
} from '@playline/infra/chain';
import { freePorts } from '@playline/infra/ports';
import {
  type Abi,
  type Address,
  createTestClient,
  defineChain,
  encodeDeployData,
  type Hash,
  http,
  parseAbi,
  publicActions,
  walletActions,
} from 'viem';
import { until } from '../until.ts';

export interface TestChainOptions {
  /**
   * `manual`: the test calls `mine`. `each`: the node mines every transaction immediately. `needed`: as in a local
   * stack, blocks are mined while any transaction is pending or not final.
   */
  readonly mining?: 'manual' | 'each' | 'needed';
  /** Number of blocks between `safe` and the latest block; twice this number for `finalized`. */
  readonly epochBlocks?: number;
  /** Block interval for `needed`. Block timestamps are whole seconds, so they run ahead of the clock. */
  readonly blockMs?: number;
}

export interface TestChain {
  /** `http://127.0.0.1:port`; `ws://` also works. Does not change on `restart`. */
  readonly rpc: string;
  readonly id: number;
  readonly client: TestChainClient;
  /**
   * Ten unlocked accounts with 10,000 ether each. The first account administers the demo contracts.
   */
  readonly accounts: readonly Address[];
  mine(blocks?: number): Promise<void>;
  /** Sends from the first account and waits for the receipt. @throws Error if the transaction fails or reverts */
  send(transaction: { to?: Address; data?: Hash; value?: bigint }): Promise<Hash>;
  /** Replaces the latest blocks with empty blocks, which drops their transactions. */
  reorg(depth: number): Promise<void>;
  /** Returns the number of blocks that `reorg` can replace, which are the blocks mined since the node started. */
  replaceableBlocks(): Promise<number>;
  deploy(name: ContractName, args?: readonly unknown[]): Promise<Address>;
  /** Deploys the demo contracts. @param minter receives the contracts' roles and funds */
  deployDemo(minter?: Address): Promise<DemoAddresses>;
  /** Saves the state for `restart`; `needed` saves after each block. @returns the last block number */
  save(): Promise<number>;
  kill(): Promise<void>;
  /** Starts the node from the last saved state, or with a new chain if no state was saved. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const FINALIZED_EPOCHS = 2;

class AnvilChain implements TestChain {
  readonly rpc: string;
  readonly id = CHAIN_ID;
  readonly client: TestChainClient;
  accounts: readonly Address[] = [];
  private readonly options: Required<TestChainOptions>;
  private readonly node: AnvilOptions;
  private readonly folder: string;
  private child: ChildProcess | null = null;
  private maker: BlockMaker | null = null;
  private startedAtBlock = 0;

  constructor(options: Required<TestChainOptions>, port: number) {
    this.options = options;
    this.folder = mkdtempSync(join(tmpdir(), 'playline-chain-'));
    const { mining, epochBlocks } = options;
    const statePath = join(this.folder, 'state.json');
    this.node = { port, statePath, epochBlocks, autoMine: mining === 'each' };
    this.rpc = `http://127.0.0.1:${port}`;
    this.client = createChainClient(this.rpc);
  }

  private readonly killChild = () => void this.child?.kill('SIGKILL');

  async restart(): Promise<void> {
    if (this.child !== null) throw new Error('the node is still running: call kill first');
    const child = spawn(anvilProgram(), anvilArguments(this.node), { stdio: ['ignore', 'ignore', 'inherit'] });
    this.child = child;
    process.on('exit', this.killChild);
    await until('the node responds', async () => {
      if (child.exitCode !== null) throw new Error(`the node exited with ${child.exitCode}`);
      return callRpc(this.rpc, 'eth_chainId');
    });
    await setClock(this.rpc);
    this.accounts = await this.client.getAddresses();
    this.startedAtBlock = await this.latestBlockNumber();
    if (this.options.mining === 'needed') this.maker ??= this.openMaker();
  }

  private openMaker(): BlockMaker {
    const { epochBlocks, blockMs } = this.options;
    const save = () => this.save();
    return openBlockMaker({ rpc: this.rpc, depth: FINALIZED_EPOCHS * epochBlocks, blockMs, save });
  }

  mine(blocks = 1): Promise<void> {
    return this.client.mine({ blocks });
  }

  async send(transaction: { to?: Address; data?: Hash; value?: bigint }): Promise<Hash> {
    const hash = await this.client.sendTransaction({ account: this.accounts[0]!, chain: null, ...transaction });
    if (this.options.mining === 'manual') await this.mine();
    const { status } = await this.client.waitForTransactionReceipt({ hash });
    if (status !== 'success') throw new Error(`the transaction ${hash} reverted`);
    return hash;
  }

  async reorg(depth: number): Promise<void> {
    await callRpc(this.rpc, 'anvil_reorg', [depth, []]);
  }

  async replaceableBlocks(): Promise<number> {
    return (await this.latestBlockNumber()) - this.startedAtBlock;
  }

  private async latestBlockNumber(): Promise<number> {
    return Number(await this.client.getBlockNumber({ cacheTime: 0 }));
  }

  async deploy(name: ContractName, args: readonly unknown[] = []): Promise<Address> {
    const { abi, bytecode } = readContract(name);
    const hash = await this.send({ data: encodeDeployData({ abi: abi as Abi, bytecode, args }) });
    const { contractAddress } = await this.client.getTransactionReceipt({ hash });
    if (!contractAddress) throw new Error(`${name} was not deployed`);
    return contractAddress;
  }

  async deployDemo(minter?: Address): Promise<DemoAddresses> {
    const contracts = await deployDemo(this.rpc);
    if (minter !== undefined) await prepareSigner(this.rpc, minter, contracts);
    return contracts;
  }

  save(): Promise<number> {
    return saveState({ rpc: this.rpc, path: this.node.statePath });
  }

  async kill(): Promise<void> {
    const { child } = this;
    if (child === null) return;
    this.child = null;
    process.off('exit', this.killChild);
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  async close(): Promise<void> {
    await this.maker?.close();
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts a node with an empty chain on a free port. @throws Error with installation instructions */
export async function openTestChain(options: TestChainOptions = {}): Promise<TestChain> {
  const [port] = await freePorts(1);
  const chain = new AnvilChain({ mining: 'manual', epochBlocks: 2, blockMs: 100, ...options }, port!);
  await chain.restart();
  return chain;
}

const POLL_MS = 25;

const chain = defineChain({
  id: CHAIN_ID,
  name: 'demo-chain',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [] } },
});

export type TestChainClient = ReturnType<typeof createChainClient>;

function createChainClient(rpc: string) {
  // Without retries, tests notice immediately that a node was killed.
  const transport = http(rpc, { retryCount: 0 });
  return createTestClient({ mode: 'anvil', chain, transport, pollingInterval: POLL_MS, cacheTime: 0 })
    .extend(publicActions)
    .extend(walletActions);
}

/** ABIs of the compiled contracts, which viem uses to type-check calls. */
export const CONTRACT_ABIS = {
  'demo-erc721': parseAbi(SIGNATURES['demo-erc721']),
  'demo-erc1155': parseAbi(SIGNATURES['demo-erc1155']),
  'demo-erc20': parseAbi(SIGNATURES['demo-erc20']),
  'consecutive-erc721': parseAbi(SIGNATURES['consecutive-erc721']),
  'hostile-erc20': parseAbi(SIGNATURES['hostile-erc20']),
  'log-emitter': parseAbi(SIGNATURES['log-emitter']),
  'old-erc20': parseAbi(SIGNATURES['old-erc20']),
} as const;
