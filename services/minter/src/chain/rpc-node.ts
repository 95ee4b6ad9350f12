import { NodeFault } from '@playline/chain';
import { z } from 'zod';
import type { CallAnswer, ChainNode, ContractCall, MintReceipt, SendAnswer } from '../ports.ts';
import { type AskNode, type AskNodeTogether, NodeRefusal } from './json-rpc.ts';
import { toRefusalWords } from './mint-calls.ts';
import { BLOCK, block, count, hex, parseAnswer, quantity, toQuantity } from './node-shapes.ts';
import { findSpender } from './nonce-spender.ts';

const receipt = z.object({
  status: count,
  blockNumber: count,
  blockHash: hex,
  logs: z.array(z.object({ address: hex, topics: z.array(hex), data: hex, logIndex: count })),
});

/** Error messages of nodes for signed bytes; there are no codes that all nodes share. The first match counts. */
const SEND_WORDS: readonly { readonly pattern: RegExp; readonly kind: SendAnswer['kind'] }[] = [
  { pattern: /already (known|imported)|known transaction/i, kind: 'known' },
  { pattern: /nonce (is )?too low|nonce too small|invalid nonce: too low/i, kind: 'spent' },
  { pattern: /underpriced|less than block base fee|fee too low|gas price too low/i, kind: 'underpriced' },
  { pattern: /insufficient funds|insufficient balance/i, kind: 'funds' },
  {
    pattern:
      /intrinsic gas|gas limit|oversized|chain ?id|configured cap|not supported|invalid sender|signature|rlp|decode|priority fee.*(higher|greater)|tip.*higher/i,
    kind: 'refused',
  },
];

export interface RpcNodeOptions {
  readonly ask: AskNode;
  readonly askTogether: AskNodeTogether;
  /** Final blocks: those that the node calls `finalized`, or those at least this many blocks behind its latest one. */
  readonly finality: 'finalized' | number;
}

/** A node that is asked over JSON-RPC. */
export function createRpcNode({ ask, askTogether, finality }: RpcNodeOptions): ChainNode {
  const read = async <T>(schema: z.ZodType<T>, method: string, params: readonly unknown[]): Promise<T> =>
    parseAnswer(schema, method, await ask(method, params));
  const blockAt = (at: number | string) =>
    read(block.nullable(), BLOCK, [typeof at === 'number' ? toQuantity(at) : at, false]);
  const existing = async (at: number | string) => {
    const found = await blockAt(at);
    if (found === null) throw new NodeFault('behind', `the node of the chain has no block ${at}`);
    return found;
  };
  const finalized = (head: number) => existing(typeof finality === 'number' ? Math.max(0, head - finality) : finality);
  return {
    chainId: () => read(count, 'eth_chainId', []),
    genesisHash: async () => (await existing(0)).hash,
    head: async () => {
      const { number, baseFeePerGas: baseFee } = await existing('latest');
      const { number: last, hash } = await finalized(number);
      return { number, baseFee, finalized: last, finalizedHash: hash };
    },
    spentNonces: async (address, at) => {
      const isDepth = at === 'finalized' && typeof finality === 'number';
      const tag = isDepth ? toQuantity((await finalized((await existing('latest')).number)).number) : at;
      return read(count, 'eth_getTransactionCount', [address, tag]);
    },
    receiptOf: async (hash) => toReceipt(await ask(RECEIPT, [hash])),
    blockHashOf: async (number) => (await blockAt(number))?.hash ?? null,
    viewOf: async (hash, numbers) => {
      const blocks = numbers.map((number) => ({ method: BLOCK, params: [toQuantity(number), false] }));
      const [found, ...others] = await askTogether([{ method: RECEIPT, params: [hash] }, ...blocks]);
      const blockHashes = others.map((other) => parseAnswer(block.nullable(), BLOCK, other)?.hash ?? null);
      return { receipt: toReceipt(found), blockHashes };
    },
    send: (bytes) => send(ask, bytes),
    spenderOf: (spent) => findSpender({ read, askTogether }, spent),
    call: (call) => answerOf(read(hex, 'eth_call', [call, 'latest'])),
    gasOf: (call: ContractCall) => answerOf(read(count, 'eth_estimateGas', [call])),
    priorityFee: () => read(quantity, 'eth_maxPriorityFeePerGas', []),
    balanceOf: (address) => read(quantity, 'eth_getBalance', [address, 'latest']),
  };
}

const RECEIPT = 'eth_getTransactionReceipt';

function toReceipt(answer: unknown): MintReceipt | null {
  const found = parseAnswer(receipt.nullable(), RECEIPT, answer);
  return found === null ? null : { ...found, isSuccess: found.status === 1 };
}

async function send(ask: AskNode, bytes: Buffer): Promise<SendAnswer> {
  try {
    await ask('eth_sendRawTransaction', [`0x${bytes.toString('hex')}`]);
    return { kind: 'taken' };
  } catch (fault) {
    if (!(fault instanceof NodeRefusal)) throw fault;
    const kind = SEND_WORDS.find(({ pattern }) => fault.says(pattern))?.kind ?? 'later';
    return { kind };
  }
}

/** Error messages for a call that reverts, from nodes that do not return the revert data. */
const REVERTED = /^(execution reverted|vm exception while processing transaction: revert)/i;
const REVERTED_CODE = 3;
/** Error messages for a call that cannot finish in the contract. */
const UNRUNNABLE =
  /out of gas|gas required exceeds|exceeds (the )?(block )?gas|gas cap|gas uint64 overflow|invalid opcode|bad instruction|invalid (jump|code)|stack (under|over)flow|stack limit|call depth|vm execution error/i;
/** Either the call is too expensive, or the node is too busy. */
const OUT_OF_TIME = /time ?out|timed out|aborted/i;

/** A contract's revert is an answer; a node's error is a fault. The node's message may contain its address. */
async function answerOf<T>(asked: Promise<T>): Promise<CallAnswer<T>> {
  try {
    return { kind: 'done', value: await asked };
  } catch (fault) {
    if (!(fault instanceof NodeRefusal)) throw fault;
    if (fault.data !== null) return { kind: 'reverted', words: toRefusalWords(fault.data) };
    if (fault.code === REVERTED_CODE || fault.says(REVERTED)) return { kind: 'reverted', words: toRefusalWords('0x') };
    const words = 'The contract cannot run the call: it runs out of gas, or into code that is none.';
    if (fault.says(UNRUNNABLE)) return { kind: 'unrunnable', words, isSure: true };
    const late = 'The node has no time to run the call.';
    if (fault.says(OUT_OF_TIME)) return { kind: 'unrunnable', words: late, isSure: false };
    throw new NodeFault('unreachable', fault.message);
  }
}
