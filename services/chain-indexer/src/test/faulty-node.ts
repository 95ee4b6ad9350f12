import { type ChainBlock, type ChainLog, type ChainNode, NodeFault } from '@playline/chain';
import { bloomOf } from './logs.ts';
import { type ChainState, createStateNode, type MemoryChain } from './memory-chain.ts';

export const NODE_FAULTS = [
  'none',
  'unreachable',
  'timeout',
  'busy',
  'too-large',
  'refuses the logs of a block',
  'lags',
  'lags on an orphan',
  'omits a log',
  'omits the last log',
  'omits all logs',
  'returns a log twice',
  'returns logs from a replaced block',
  'returns logs in the wrong order',
  'returns the wrong hash',
  'truncates the list of blocks',
] as const;
export type NodeFaultName = (typeof NODE_FAULTS)[number];

export interface FaultyNodeOptions {
  readonly name: string;
  readonly draw: () => NodeFaultName;
  /** Draws an integer from 0 to `below - 1`, which selects the fault's details. */
  readonly pick: (below: number) => number;
}

/**
 * Removes a log. The last log is retained if the other logs cover all its bloom bits, because no reader could detect
 * that it is missing.
 */
function removeLog(logs: readonly ChainLog[], at: number): readonly ChainLog[] {
  const remaining = logs.toSpliced(at, 1);
  const logsOfBlock = (all: readonly ChainLog[]) => all.filter(({ blockHash }) => blockHash === logs[at]?.blockHash);
  const isLast = logsOfBlock(logs).at(-1) === logs[at];
  return isLast && bloomOf(logsOfBlock(remaining)).equals(bloomOf(logsOfBlock(logs))) ? logs : remaining;
}

function corrupt(logs: readonly ChainLog[], fault: NodeFaultName, { pick }: FaultyNodeOptions): readonly ChainLog[] {
  const at = pick(Math.max(1, logs.length));
  if (fault === 'omits a log') return removeLog(logs, at);
  if (fault === 'omits the last log') return removeLog(logs, logs.length - 1);
  if (fault === 'omits all logs') return [];
  if (fault === 'returns a log twice') return logs.flatMap((log, index) => (index === at ? [log, log] : [log]));
  if (fault === 'returns logs in the wrong order') return logs.toReversed();
  return logs;
}

/** @returns the fault @throws NodeFault if the fault makes the request fail */
function fail(fault: NodeFaultName, pick: FaultyNodeOptions['pick']): NodeFaultName {
  if (fault === 'unreachable') throw new NodeFault('unreachable', 'no response');
  if (fault === 'timeout') throw new NodeFault('timeout', 'the request timed out');
  if (fault === 'busy') throw new NodeFault('busy', 'rate limited', pick(2) === 0 ? null : 500);
  return fault;
}

const replaceHash = (block: ChainBlock | null, fault: NodeFaultName) =>
  fault === 'returns the wrong hash' && block !== null ? { ...block, hash: `0x${'ab'.repeat(32)}` } : block;

function refuseMany(fault: NodeFaultName, from: number, to: number): void {
  if (fault === 'too-large' && to > from) throw new NodeFault('too-large', 'too many blocks');
}

/** Simulates a node behind a load balancer with backends that lag or are faulty. */
export function createFaultyNode(chain: MemoryChain, options: FaultyNodeOptions): ChainNode {
  const { draw, pick, name } = options;
  let state: ChainState = chain.state;
  const honest = createStateNode(name, chain.depth, () => state);
  const begin = (): NodeFaultName => {
    const fault = fail(draw(), pick);
    state = chain.state;
    if (fault.startsWith('lags') || fault === 'returns logs from a replaced block')
      state = chain.states[chain.states.length - 1 - pick(Math.min(chain.states.length, 12))]!;
    return fault;
  };
  return {
    name,
    chainId: () => honest.chainId(),
    block: async (at) => {
      const fault = begin();
      const block = await honest.block(at);
      return at === 0 ? block : replaceHash(block, fault);
    },
    blocks: async (from, to) => {
      const fault = begin();
      refuseMany(fault, from, to);
      const blocks = await honest.blocks(from, to);
      return fault === 'truncates the list of blocks' ? blocks.slice(0, -1) : blocks;
    },
    blocksAt: async (numbers) => {
      const fault = begin();
      const blocks = await honest.blocksAt(numbers);
      return fault === 'truncates the list of blocks' ? blocks.map(() => null) : blocks;
    },
    logsOf: async (hash) => {
      const fault = begin();
      if (fault === 'refuses the logs of a block') throw new NodeFault('too-large', 'too many blocks');
      return corrupt(await honest.logsOf(hash), fault, options);
    },
    logsByReceipts: async (hash) => {
      const fault = begin();
      return corrupt(await honest.logsByReceipts(hash), fault, options);
    },
    logsIn: async (from, to) => {
      const fault = begin();
      refuseMany(fault, from, to);
      return corrupt(await honest.logsIn(from, to), fault, options);
    },
    calls: async (calls) => {
      begin();
      return honest.calls(calls);
    },
  };
}
