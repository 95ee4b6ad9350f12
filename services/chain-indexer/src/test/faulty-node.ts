import { type ChainBlock, type ChainLog, type ChainNode, NodeFault } from '@playline/chain';
import { bloomOf } from './logs.ts';
import { type ChainState, createStateNode, type MemoryChain } from './memory-chain.ts';

/** What can go wrong with one request. */
export const NODE_FAULTS = [
  'none',
  'unreachable',
  'late',
  'busy',
  'too-much',
  'refuses the logs of a block',
  'lags',
  'lags on an orphan',
  'leaves out a log',
  'leaves out the last log',
  'leaves out all logs',
  'gives a log twice',
  'gives logs of a replaced block',
  'gives logs in another order',
  'gives another hash',
  'cuts the list of blocks short',
] as const;
export type NodeFaultName = (typeof NODE_FAULTS)[number];

/** How a node spoils its answers, drawn for each request. */
export interface FaultyNodeOptions {
  readonly name: string;
  readonly draw: () => NodeFaultName;
  /** Chooses within a fault: a number from 0 to below `below`. */
  readonly pick: (below: number) => number;
}

/**
 * The logs without one. The last log is kept if others cover all its bits of the bloom: no reader could see that it is
 * missing.
 */
function without(logs: readonly ChainLog[], at: number): readonly ChainLog[] {
  const left = logs.toSpliced(at, 1);
  const own = (all: readonly ChainLog[]) => all.filter(({ blockHash }) => blockHash === logs[at]?.blockHash);
  const isLast = own(logs).at(-1) === logs[at];
  return isLast && bloomOf(own(left)).equals(bloomOf(own(logs))) ? logs : left;
}

function spoil(logs: readonly ChainLog[], fault: NodeFaultName, { pick }: FaultyNodeOptions): readonly ChainLog[] {
  const at = pick(Math.max(1, logs.length));
  if (fault === 'leaves out a log') return without(logs, at);
  if (fault === 'leaves out the last log') return without(logs, logs.length - 1);
  if (fault === 'leaves out all logs') return [];
  if (fault === 'gives a log twice') return logs.flatMap((log, index) => (index === at ? [log, log] : [log]));
  if (fault === 'gives logs in another order') return logs.toReversed();
  return logs;
}

/** @returns the fault, unless it is one that throws */
function fail(fault: NodeFaultName, pick: FaultyNodeOptions['pick']): NodeFaultName {
  if (fault === 'unreachable') throw new NodeFault('unreachable', 'no answer');
  if (fault === 'late') throw new NodeFault('late', 'it does not answer in time');
  if (fault === 'busy') throw new NodeFault('busy', 'rate limited', pick(2) === 0 ? null : 500);
  return fault;
}

const rename = (block: ChainBlock | null, fault: NodeFaultName) =>
  fault === 'gives another hash' && block !== null ? { ...block, hash: `0x${'ab'.repeat(32)}` } : block;

function refuseMany(fault: NodeFaultName, from: number, to: number): void {
  if (fault === 'too-much' && to > from) throw new NodeFault('too-much', 'fewer blocks');
}

/** A node behind a load balancer, some of whose backends are behind or broken. */
export function createFaultyNode(chain: MemoryChain, options: FaultyNodeOptions): ChainNode {
  const { draw, pick, name } = options;
  let state: ChainState = chain.state;
  const honest = createStateNode(name, chain.depth, () => state);
  const begin = (): NodeFaultName => {
    const fault = fail(draw(), pick);
    state = chain.state;
    if (fault.startsWith('lags') || fault === 'gives logs of a replaced block')
      state = chain.states[chain.states.length - 1 - pick(Math.min(chain.states.length, 12))]!;
    return fault;
  };
  return {
    name,
    chainId: () => honest.chainId(),
    block: async (at) => {
      const fault = begin();
      const block = await honest.block(at);
      return at === 0 ? block : rename(block, fault);
    },
    blocks: async (from, to) => {
      const fault = begin();
      refuseMany(fault, from, to);
      const blocks = await honest.blocks(from, to);
      return fault === 'cuts the list of blocks short' ? blocks.slice(0, -1) : blocks;
    },
    blocksAt: async (numbers) => {
      const fault = begin();
      const blocks = await honest.blocksAt(numbers);
      return fault === 'cuts the list of blocks short' ? blocks.map(() => null) : blocks;
    },
    logsOf: async (hash) => {
      const fault = begin();
      if (fault === 'refuses the logs of a block') throw new NodeFault('too-much', 'fewer blocks');
      return spoil(await honest.logsOf(hash), fault, options);
    },
    logsByReceipts: async (hash) => {
      const fault = begin();
      return spoil(await honest.logsByReceipts(hash), fault, options);
    },
    logsIn: async (from, to) => {
      const fault = begin();
      refuseMany(fault, from, to);
      return spoil(await honest.logsIn(from, to), fault, options);
    },
    calls: async (calls) => {
      begin();
      return honest.calls(calls);
    },
  };
}
