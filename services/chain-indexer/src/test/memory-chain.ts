import { createHash } from 'node:crypto';
import type { ChainBlock, ChainLog, ChainNode, ReadBlocks } from '@playline/chain';
import { NodeFault } from '@playline/chain';
import { bloomOf, TOPIC } from './logs.ts';

export type LogDraft = Pick<ChainLog, 'address' | 'topics' | 'data'>;

export interface MemoryBlock extends ChainBlock {
  readonly logs: readonly ChainLog[];
}

export type ChainState = readonly MemoryBlock[];

const hashOf = (text: string) => `0x${createHash('sha256').update(text).digest('hex')}`;

/** An in-memory chain. Like a real chain, it is never reorganised below the final block. Retains all states. */
export class MemoryChain {
  readonly states: ChainState[] = [];
  readonly depth: number;
  private created = 0;
  private readonly salt: string;

  /** @param depth the number of latest blocks that can be replaced */
  constructor(depth: number, salt = '') {
    this.depth = depth;
    this.salt = salt;
    this.states.push([this.createBlock(null, [])]);
  }

  get state(): ChainState {
    return this.states.at(-1)!;
  }

  private createBlock(parent: MemoryBlock | null, drafts: readonly LogDraft[]): MemoryBlock {
    const number = parent === null ? 0 : parent.number + 1;
    const name = `${this.salt}/${number}/${this.created++}`;
    const hash = hashOf(name);
    const logs = drafts.map((draft, logIndex) => ({
      ...draft,
      blockNumber: number,
      blockHash: hash,
      logIndex,
      transactionIndex: logIndex >> 1,
      transactionHash: hashOf(`${name}/${logIndex >> 1}`),
    }));
    const times = { timestampS: 1_700_000_000 + Math.floor(number / 4) };
    return { number, hash, parentHash: parent?.hash ?? hashOf('none'), logsBloom: bloomOf(logs), logs, ...times };
  }

  mine(drafts: readonly LogDraft[] = []): void {
    this.states.push([...this.state, this.createBlock(this.state.at(-1)!, drafts)]);
  }

  /** Replaces up to `depth` blocks that are not final with other blocks, and adds a block. */
  reorg(depth: number, drafts: readonly (readonly LogDraft[])[]): void {
    const replaced = Math.min(depth, this.depth, this.state.length - 1);
    this.replace(replaced, drafts);
  }

  /** Replaces `depth` blocks, even if they are final, and adds a block. */
  replace(depth: number, drafts: readonly (readonly LogDraft[])[]): void {
    const blocks = this.state.slice(0, this.state.length - depth);
    for (let index = 0; index <= depth; index++) blocks.push(this.createBlock(blocks.at(-1)!, drafts[index] ?? []));
    this.states.push(blocks);
  }

  finalLogs(): ChainLog[] {
    return this.finalBlocks().flatMap(({ logs }) => logs);
  }

  readFinal(): ReadBlocks {
    return { blocks: this.finalBlocks(), logs: this.finalLogs(), parentTimestampS: null };
  }

  private finalBlocks(): MemoryBlock[] {
    return this.state.filter(({ number }) => number <= finalOf(this.state, this.depth));
  }
}

export const finalOf = (state: ChainState, depth: number): number => state.length - 1 - depth;

export function createStateNode(name: string, depth: number, stateOf: () => ChainState): ChainNode {
  const find = (hash: string) => {
    const found = stateOf().find((block) => block.hash === hash);
    if (found === undefined) throw new NodeFault('behind', 'unknown block');
    return found;
  };
  return {
    name,
    chainId: async () => 31337,
    block: async (at) => {
      const state = stateOf();
      const number = at === 'latest' ? state.length - 1 : at === 'finalized' ? finalOf(state, depth) : at;
      return state[number] ?? null;
    },
    blocks: async (from, to) => stateOf().slice(from, to + 1),
    blocksAt: async (numbers) => {
      const state = stateOf();
      return numbers.map((number) => state[number] ?? null);
    },
    logsOf: async (hash) => find(hash).logs,
    logsByReceipts: async (hash) => find(hash).logs,
    logsIn: async (from, to) =>
      stateOf()
        .slice(from, to + 1)
        .flatMap(({ logs }) => logs),
    calls: async (calls) => calls.map(() => null),
  };
}

const word = (value: number | bigint) => value.toString(16).padStart(64, '0');
const addressWord = (number: number) => `0x${word(number)}`;

/** Creates a transfer log. Addresses are given as numbers; 0 is the zero address. */
export function transferDraft(contract: number, sides: readonly [number, number], value: number): LogDraft {
  const address = `0x${contract.toString(16).padStart(40, '0')}`;
  const [from, to] = sides;
  if (contract % 2 === 0)
    return { address, topics: [TOPIC.transfer, addressWord(from), addressWord(to)], data: `0x${word(value)}` };
  return { address, topics: [TOPIC.transfer, addressWord(from), addressWord(to), `0x${word(value)}`], data: '0x' };
}

export function rangeDraft(contract: number, tokens: number): LogDraft {
  const address = `0x${contract.toString(16).padStart(40, '0')}`;
  const topics = [TOPIC.consecutiveTransfer, addressWord(0), addressWord(0), addressWord(1)];
  return { address, topics, data: `0x${word(tokens - 1)}` };
}
