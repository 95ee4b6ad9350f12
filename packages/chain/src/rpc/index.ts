import { type ChainBlock, type ChainLog, type ChainNode, NodeFault, type NodeFaultKind } from '../node.ts';
import { parseBlock, parseBytes, parseLogs, parseQuantity, parseReceipts, parseTransactions } from './parse.ts';
import { createTransport, parseAnswer, type RpcAnswer, type RpcCall, type RpcError } from './transport.ts';

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
/** Calls in one request. Some providers refuse more. */
const BATCH_MAX = 50;
/** Fewer than other calls, because a receipt can have megabytes. */
const RECEIPTS_MAX = 20;
/** Most logs of one block. They take several hundred megabytes of memory. */
const LOGS_MAX = 1_000_000;

/** Kinds of faults by the text of the message, because nodes use error codes differently. The first match counts. */
const WORDS: readonly (readonly [RegExp, NodeFaultKind])[] = [
  [/\brate|too many requests|per second|credits|capacity|throttl|daily/i, 'busy'],
  [
    /block range|ranges? over|range (is )?too|too many|more than|limited to|response size|exceed|too (large|big|wide)|timed? ?out|max(imum)? .*(range|results|blocks|logs)/i,
    'too-much',
  ],
  [/unknown block|not found|missing|not available|pruned|beyond|after last|greater than/i, 'behind'],
];
/** Errors of calls of a function that the contract does not have. */
const FAILED_CALL = /revert|opcode|out of gas|gas required|execution|stack|invalid jump|vm exception/i;
const REVERTED = 3;

/** Only the kind is kept: the message of a node may quote its URL. */
function toFault({ code, message }: RpcError): NodeFault {
  const [, kind = 'unreachable'] = WORDS.find(([pattern]) => pattern.test(message)) ?? [];
  return new NodeFault(kind, `it answered with JSON-RPC error ${Number.isFinite(code) ? code : ''} (${kind})`);
}

const toHex = (number: number) => `0x${number.toString(16)}`;

function resultOf(answer: RpcAnswer): unknown {
  if (!answer.ok) throw toFault(answer.error);
  return answer.result;
}

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

function toAnswersOf(requests: readonly { readonly id: number }[], body: readonly unknown[]): RpcAnswer[] {
  const answers = new Map(body.map(parseAnswer).map(({ id, answer }) => [id, answer]));
  return requests.map(({ id }) => {
    const answer = answers.get(id);
    if (answer === undefined) throw new NodeFault('unreachable', 'it left a question unanswered');
    return answer;
  });
}

class RpcNode implements ChainNode {
  readonly name: string;
  private readonly question: (call: RpcCall) => Promise<RpcAnswer>;
  private readonly send: (body: unknown) => Promise<unknown>;
  /** Becomes false when the node refuses a batch. */
  private takesBatches = true;
  private lastId = 0;

  constructor({ name, url, timeoutMs = TIMEOUT_MS, fetch: ask = fetch }: RpcNodeOptions) {
    this.name = name;
    this.question = createRpcQuestions({ url, timeoutMs, fetch: ask });
    this.send = createTransport({ url, timeoutMs, fetch: ask });
  }

  private toRequest({ method, params }: RpcCall) {
    return { jsonrpc: '2.0', id: ++this.lastId, method, params };
  }

  private async ask(call: RpcCall): Promise<unknown> {
    return resultOf(await this.question(call));
  }

  private async askBatch(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const requests = calls.map((call) => this.toRequest(call));
    const body = await this.send(requests);
    if (!Array.isArray(body)) {
      const { answer } = parseAnswer(body);
      const fault = answer.ok ? null : toFault(answer.error);
      // A rate limit is no refusal of batches.
      if (fault?.kind === 'busy') throw fault;
      this.takesBatches = false;
      return this.askEach(calls);
    }
    return toAnswersOf(requests, body);
  }

  private async askEach(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (const call of calls) answers.push(parseAnswer(await this.send(this.toRequest(call))).answer);
    return answers;
  }

  private async askMany(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (let from = 0; from < calls.length; from += BATCH_MAX) {
      const some = calls.slice(from, from + BATCH_MAX);
      answers.push(...(await (this.takesBatches && some.length > 1 ? this.askBatch(some) : this.askEach(some))));
    }
    return answers;
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
    const answers = await this.askMany(
      numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [toHex(number), false] })),
    );
    const blocks = answers.map((answer) => parseBlock(resultOf(answer)));
    return blocks.filter((block): block is ChainBlock => block !== null);
  }

  async logsOf(blockHash: string) {
    return parseLogs(await this.ask({ method: 'eth_getLogs', params: [{ blockHash }] }));
  }

  async logsByReceipts(blockHash: string) {
    try {
      const receipts = await this.ask({ method: 'eth_getBlockReceipts', params: [blockHash] });
      return parseReceipts(receipts, blockHash);
    } catch (fault) {
      // Not every node supports this call, and one that does may refuse such a long answer.
      if (!(fault instanceof NodeFault) || fault.kind === 'busy') throw fault;
    }
    return this.logsByTransactions(blockHash);
  }

  private async logsByTransactions(blockHash: string): Promise<readonly ChainLog[]> {
    const block = await this.ask({ method: 'eth_getBlockByHash', params: [blockHash, false] });
    const transactions = parseTransactions(block, blockHash);
    const logs: ChainLog[] = [];
    for (let from = 0; from < transactions.length; from += RECEIPTS_MAX) {
      const receipts = await this.receiptsOf(transactions.slice(from, from + RECEIPTS_MAX));
      for (const log of parseReceipts(receipts, blockHash)) logs.push(log);
      if (logs.length > LOGS_MAX) throw new NodeFault('too-much', `a block has more than ${LOGS_MAX} logs`);
    }
    return logs;
  }

  /** In one request, or each in its own if that is too much. */
  private async receiptsOf(transactions: readonly string[]): Promise<unknown[]> {
    const calls = transactions.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }));
    try {
      return (await this.askMany(calls)).map(resultOf);
    } catch (fault) {
      if (!(fault instanceof NodeFault && (fault.kind === 'too-much' || fault.kind === 'late'))) throw fault;
      return (await this.askEach(calls)).map(resultOf);
    }
  }

  async logsIn(from: number, to: number) {
    const filter = { fromBlock: toHex(from), toBlock: toHex(to) };
    return parseLogs(await this.ask({ method: 'eth_getLogs', params: [filter] }));
  }

  async calls(calls: Parameters<ChainNode['calls']>[0]) {
    const answers = await this.askMany(calls.map((call) => ({ method: 'eth_call', params: [call, 'latest'] })));
    return answers.map((answer) => {
      if (answer.ok) return parseBytes(answer.result);
      const { code, message } = answer.error;
      if (code === REVERTED || FAILED_CALL.test(message)) return null;
      throw toFault(answer.error);
    });
  }
}

/** Creates a node with JSON-RPC over HTTP, without a request yet. @throws TypeError when the URL is invalid */
export function createRpcNode(options: RpcNodeOptions): ChainNode {
  return new RpcNode(options);
}

/** Calls any method of a node, also one with effects. @throws NodeFault */
export type AskNode = (call: RpcCall) => Promise<unknown>;

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
