import { NodeFault } from '@playline/chain';
import { z } from 'zod';
import type { CallAnswer, ChainNode, ContractCall, MintReceipt, SendAnswer } from '../ports.ts';
import { askOneBranch, readBlock, readExisting, viewBranch } from './branch-views.ts';
import { type Finality, readHead } from './chain-head.ts';
import { type AskNode, type AskNodeTogether, NodeRefusal } from './json-rpc.ts';
import { toRefusalWords } from './mint-calls.ts';
import { count, hex, NONCES, parseAnswer, quantity, toQuantity } from './node-shapes.ts';
import { findSpender } from './nonce-spender.ts';
import { createFindAncestor } from './parent-links.ts';

const receipt = z.object({
  status: count,
  blockNumber: count,
  blockHash: hex,
  logs: z.array(z.object({ address: hex, topics: z.array(hex), data: hex, logIndex: count })),
});

/**
 * Error messages of nodes for signed bytes; there are no codes that all nodes share. The first match counts. Older
 * releases of Nethermind answer with names: `AlreadyKnown`, `OldNonce, Current nonce: 5`, `FeeTooLowToCompete`.
 */
const SEND_WORDS: readonly { readonly pattern: RegExp; readonly kind: SendAnswer['kind'] }[] = [
  { pattern: /already ?(known|imported)|known transaction/i, kind: 'known' },
  { pattern: /nonce (is )?too low|nonce too small|invalid nonce: too low|\bold ?nonce\b/i, kind: 'spent' },
  {
    pattern: /underpriced|less than block base fee|fee ?too ?low|gas price too low|replacement ?not ?allowed/i,
    kind: 'underpriced',
  },
  { pattern: /insufficient ?funds|insufficient balance/i, kind: 'funds' },
  {
    pattern:
      /intrinsic gas|gas ?limit|oversized|chain ?id|configured cap|not supported|invalid sender|signature|rlp|decode|priority fee.*(higher|greater)|tip.*higher/i,
    kind: 'refused',
  },
];

export interface RpcNodeOptions {
  readonly ask: AskNode;
  readonly askTogether: AskNodeTogether;
  readonly finality: Finality;
}

/** A node that is asked over JSON-RPC. */
export function createRpcNode({ ask, askTogether, finality }: RpcNodeOptions): ChainNode {
  const read = async <T>(schema: z.ZodType<T>, method: string, params: readonly unknown[]): Promise<T> =>
    parseAnswer(schema, method, await ask(method, params));
  const questions = { ask, askTogether, findAncestor: createFindAncestor(ask) };
  return {
    chainId: () => read(count, 'eth_chainId', []),
    genesisHash: async () => (await readExisting(ask, 0)).hash,
    head: (known) => readHead(questions, finality, known ?? null),
    spentNonces: async (address, at) => {
      const asked = at.map((each) => ({
        method: NONCES,
        params: [address, typeof each === 'number' ? toQuantity(each) : each],
      }));
      const apart = async () => {
        const answers: unknown[] = [];
        for (const { method, params } of asked) answers.push(await ask(method, params));
        return answers;
      };
      const answers = asked.length === 1 ? await apart() : await askOneBranch(() => askTogether(asked), apart);
      return answers.map((answer) => parseAnswer(count, NONCES, answer));
    },
    receiptOf: async (hash) => toReceipt(await ask(RECEIPT, [hash])),
    blockHashOf: async (number) => (await readBlock(ask, number))?.hash ?? null,
    viewOf: async (hash, numbers) => {
      const { answer, hashes } = await viewBranch(questions, numbers, { method: RECEIPT, params: [hash] });
      return { receipt: toReceipt(answer), blockHashes: hashes };
    },
    send: (bytes) => send(ask, bytes),
    spenderOf: (spent) => findSpender(questions, spent),
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
    if (fault.isOfContract) return { kind: 'unrunnable', words, isSure: true };
    const late = 'The node has no time to run the call.';
    if (fault.says(OUT_OF_TIME)) return { kind: 'unrunnable', words: late, isSure: false };
    throw new NodeFault('unreachable', fault.message);
  }
}
