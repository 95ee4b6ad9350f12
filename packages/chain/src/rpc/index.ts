import {
  type AskNode,
  type CallResult,
  type ChainBlock,
  type ChainLog,
  type ChainNode,
  NodeFault,
  type RpcAnswer,
  type RpcCall,
} from '../node.ts';
import { BatchSender, toAnswersOf } from './batches.ts';
import { isMaybeContractFault, resultOf, toFault } from './faults.ts';
import { parseBlock, parseBytes, parseLogs, parseQuantity, parseReceipts, parseTransactions } from './parse.ts';
import { createTransport, parseAnswer } from './transport.ts';

export interface RpcNodeOptions {
  /** For logs and metrics. */
  readonly name: string;
  /** `http:` or `https:`. Any part may be a secret, so it is never logged. */
  readonly url: string;
  /** Most milliseconds until an answer. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

const TIMEOUT_MS = 20_000;
/** Calls of contracts take milliseconds. A contract can be written to take longer, and indexing must not wait for it. */
const CALLS_TIMEOUT_MS = 5_000;
/** Fewer than other calls, because a receipt can have megabytes. */
const RECEIPTS_MAX = 20;
/** Most logs of one block. They take several hundred megabytes of memory. */
const LOGS_MAX = 1_000_000;

/**
 * Gas of a call of a contract. Names and decimals need some ten thousand, also behind a proxy. More would let a contract
 * keep the node busy: it may use all of it.
 */
const CALL_GAS = 1_000_000;
/** Contracts choose the length of their answers. With this much gas one answer can have two megabytes of text. */
const CALLS_ANSWER_BYTES_MAX = 8 * 1024 * 1024;

const toHex = (number: number) => `0x${number.toString(16)}`;

/**
 * Creates calls to one node, each in its own request. The answer may be an error, whose text may quote the URL.
 * @throws NodeFault when there is no answer
 */
export function createRpcQuestions({
  url,
  timeoutMs = TIMEOUT_MS,
  fetch: ask = fetch,
}: Omit<RpcNodeOptions, 'name'>): (call: RpcCall) => Promise<RpcAnswer> {
  const send = createTransport({ url, timeoutMs, fetch: ask });
  let lastId = 0;
  return async ({ method, params }) => {
    const wanted = ++lastId;
    const { id, answer } = parseAnswer(await send({ jsonrpc: '2.0', id: wanted, method, params }));
    // An error may come without the id of its call.
    if (answer.ok && id !== wanted) throw new NodeFault('inconsistent', 'it answered another question');
    return answer;
  };
}

/**
 * Creates batches of calls to one node. A batch is one request, so one node answers all of it, even if several share
 * the URL. Answers are in the order of the calls.
 * @throws NodeFault when there is no answer, one is missing, or the node does not support batches
 */
export function createRpcBatches({
  url,
  timeoutMs = TIMEOUT_MS,
  fetch: ask = fetch,
}: Omit<RpcNodeOptions, 'name'>): (calls: readonly RpcCall[]) => Promise<readonly RpcAnswer[]> {
  const send = createTransport({ url, timeoutMs, fetch: ask });
  let lastId = 0;
  return async (calls) => {
    const requests = calls.map((call) => ({ jsonrpc: '2.0', id: ++lastId, ...call }));
    const body = await send(requests);
    if (Array.isArray(body)) return toAnswersOf(requests, body);
    const { answer } = parseAnswer(body);
    const fault = answer.ok ? null : toFault(answer.error);
    if (fault?.kind === 'busy') throw fault;
    throw new NodeFault('unreachable', 'it does not take several questions in one request');
  };
}

class RpcNode implements ChainNode {
  readonly name: string;
  private readonly question: (call: RpcCall) => Promise<RpcAnswer>;
  private readonly batches: BatchSender;
  private readonly contracts: BatchSender;

  constructor({ name, url, timeoutMs = TIMEOUT_MS, fetch: ask = fetch }: RpcNodeOptions) {
    this.name = name;
    this.question = createRpcQuestions({ url, timeoutMs, fetch: ask });
    this.batches = new BatchSender(createTransport({ url, timeoutMs, fetch: ask }));
    const callsTimeoutMs = Math.min(timeoutMs, CALLS_TIMEOUT_MS);
    const ofContracts = { timeoutMs: callsTimeoutMs, answerBytesMax: CALLS_ANSWER_BYTES_MAX };
    this.contracts = new BatchSender(createTransport({ url, fetch: ask, ...ofContracts }));
  }

  private async ask(call: RpcCall): Promise<unknown> {
    return resultOf(await this.question(call));
  }

  async chainId() {
    return parseQuantity(await this.ask({ method: 'eth_chainId', params: [] }), 'number of a chain');
  }

  async block(at: 'latest' | 'finalized' | number) {
    const tag = typeof at === 'number' ? toHex(at) : at;
    const block = parseBlock(await this.ask({ method: 'eth_getBlockByNumber', params: [tag, false] }));
    if (block !== null && typeof at === 'number' && block.number !== at)
      throw new NodeFault('inconsistent', `asked for block ${at} it gave ${block.number}`);
    return block;
  }

  async blocks(from: number, to: number) {
    const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index);
    const blocks = await this.blocksAt(numbers);
    return blocks.filter((block): block is ChainBlock => block !== null);
  }

  async blocksAt(numbers: readonly number[]) {
    const answers = await this.batches.askMany(
      numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [toHex(number), false] })),
    );
    return answers.map((answer) => parseBlock(resultOf(answer)));
  }

  async logsOf(blockHash: string) {
    return parseLogs(await this.ask({ method: 'eth_getLogs', params: [{ blockHash }] }));
  }

  async logsByReceipts(blockHash: string) {
    const block = await this.ask({ method: 'eth_getBlockByHash', params: [blockHash, false] });
    const transactions = parseTransactions(block, blockHash);
    try {
      const receipts = await this.ask({ method: 'eth_getBlockReceipts', params: [blockHash] });
      return parseReceipts(receipts, { blockHash, transactions });
    } catch (fault) {
      // Not every node supports this call, and one that does may refuse such a long answer.
      if (!(fault instanceof NodeFault) || fault.kind === 'busy') throw fault;
    }
    return this.logsByTransactions(blockHash, transactions);
  }

  private async logsByTransactions(blockHash: string, all: readonly string[]): Promise<readonly ChainLog[]> {
    const logs: ChainLog[] = [];
    for (let from = 0; from < all.length; from += RECEIPTS_MAX) {
      const transactions = all.slice(from, from + RECEIPTS_MAX);
      const receipts = await this.receiptsOf(transactions);
      for (const log of parseReceipts(receipts, { blockHash, transactions })) logs.push(log);
      if (logs.length > LOGS_MAX) throw new NodeFault('too-much', `a block has more than ${LOGS_MAX} logs`);
    }
    return logs;
  }

  /** In one request, or each in its own if that is too much. */
  private async receiptsOf(transactions: readonly string[]): Promise<unknown[]> {
    const calls = transactions.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }));
    try {
      return (await this.batches.askMany(calls)).map(resultOf);
    } catch (fault) {
      if (!(fault instanceof NodeFault && (fault.kind === 'too-much' || fault.kind === 'late'))) throw fault;
      return (await this.batches.askEach(calls)).map(resultOf);
    }
  }

  async logsIn(from: number, to: number) {
    const filter = { fromBlock: toHex(from), toBlock: toHex(to) };
    return parseLogs(await this.ask({ method: 'eth_getLogs', params: [filter] }));
  }

  async calls(calls: Parameters<ChainNode['calls']>[0]) {
    const gas = toHex(CALL_GAS);
    const answers = await this.contracts.askMany(
      calls.map((call) => ({ method: 'eth_call', params: [{ ...call, gas }, 'latest'] })),
    );
    return answers.map(toCallResult);
  }
}

function toCallResult(answer: RpcAnswer): CallResult {
  if (answer.ok) return parseBytes(answer.result);
  return isMaybeContractFault(answer.error) ? null : toFault(answer.error);
}

/** Creates a node with JSON-RPC over HTTP, without a request yet. @throws TypeError when the URL is invalid */
export function createRpcNode(options: RpcNodeOptions): ChainNode {
  return new RpcNode(options);
}

/** Creates the function for calls that `ChainNode` lacks. Calls without an answer are repeated. */
export function createAskNode({
  url,
  timeoutMs = TIMEOUT_MS,
  fetch: ask = fetch,
}: Omit<RpcNodeOptions, 'name'>): AskNode {
  const send = createTransport({ url, timeoutMs, fetch: ask });
  let lastId = 0;
  return async (call) => resultOf(parseAnswer(await send({ jsonrpc: '2.0', id: ++lastId, ...call })).answer);
}
