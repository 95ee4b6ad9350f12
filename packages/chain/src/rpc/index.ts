import {
  type CallNode,
  type CallResult,
  type ChainBlock,
  type ChainLog,
  type ChainNode,
  isContractFault,
  NodeFault,
  type NodeFaultKind,
  type RpcAnswer,
  type RpcCall,
  type RpcError,
} from '../node.ts';
import { createTransport, parseAnswer, RequestTooLarge } from './transport.ts';

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
export function createRpcClient({
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
  private readonly client: (call: RpcCall) => Promise<RpcAnswer>;
  private readonly batches: BatchSender;
  private readonly contracts: BatchSender;

  constructor({ name, url, timeoutMs = TIMEOUT_MS, fetch: ask = fetch }: RpcNodeOptions) {
    this.name = name;
    this.client = createRpcClient({ url, timeoutMs, fetch: ask });
    this.batches = new BatchSender(createTransport({ url, timeoutMs, fetch: ask }));
    const callsTimeoutMs = Math.min(timeoutMs, CALLS_TIMEOUT_MS);
    const ofContracts = { timeoutMs: callsTimeoutMs, answerBytesMax: CALLS_ANSWER_BYTES_MAX };
    this.contracts = new BatchSender(createTransport({ url, fetch: ask, ...ofContracts }));
  }

  private async request(call: RpcCall): Promise<unknown> {
    return resultOf(await this.client(call));
  }

  async chainId() {
    return parseQuantity(await this.request({ method: 'eth_chainId', params: [] }), 'number of a chain');
  }

  async block(at: 'latest' | 'finalized' | number) {
    const tag = typeof at === 'number' ? toHex(at) : at;
    const block = parseBlock(await this.request({ method: 'eth_getBlockByNumber', params: [tag, false] }));
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
    const answers = await this.batches.callMany(
      numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [toHex(number), false] })),
    );
    return answers.map((answer) => parseBlock(resultOf(answer)));
  }

  async logsOf(blockHash: string) {
    return parseLogs(await this.request({ method: 'eth_getLogs', params: [{ blockHash }] }));
  }

  async logsByReceipts(blockHash: string) {
    const block = await this.request({ method: 'eth_getBlockByHash', params: [blockHash, false] });
    const transactions = parseTransactions(block, blockHash);
    try {
      const receipts = await this.request({ method: 'eth_getBlockReceipts', params: [blockHash] });
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
      return (await this.batches.callMany(calls)).map(resultOf);
    } catch (fault) {
      if (!(fault instanceof NodeFault && (fault.kind === 'too-much' || fault.kind === 'late'))) throw fault;
      return (await this.batches.callEach(calls)).map(resultOf);
    }
  }

  async logsIn(from: number, to: number) {
    const filter = { fromBlock: toHex(from), toBlock: toHex(to) };
    return parseLogs(await this.request({ method: 'eth_getLogs', params: [filter] }));
  }

  async calls(calls: Parameters<ChainNode['calls']>[0]) {
    const gas = toHex(CALL_GAS);
    const answers = await this.contracts.callMany(
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
export function createCallNode({
  url,
  timeoutMs = TIMEOUT_MS,
  fetch: ask = fetch,
}: Omit<RpcNodeOptions, 'name'>): CallNode {
  const send = createTransport({ url, timeoutMs, fetch: ask });
  let lastId = 0;
  return async (call) => resultOf(parseAnswer(await send({ jsonrpc: '2.0', id: ++lastId, ...call })).answer);
}

/** Calls in one request. Some providers refuse more. */
const BATCH_MAX = 50;

/**
 * The answers in the order of the requests.
 * @throws NodeFault when one is missing
 */
function toAnswersOf(requests: readonly { readonly id: number }[], body: readonly unknown[]): RpcAnswer[] {
  const answers = new Map(body.map(parseAnswer).map(({ id, answer }) => [id, answer]));
  return requests.map(({ id }) => {
    const answer = answers.get(id);
    if (answer === undefined) throw new NodeFault('unreachable', 'it left a question unanswered');
    return answer;
  });
}

/** The one error that answers a batch of several calls: an object, or a list of that object alone. */
function refusalIn(body: unknown): NodeFault | null {
  if (Array.isArray(body) && body.length !== 1) return null;
  const { answer } = parseAnswer(Array.isArray(body) ? body[0] : body);
  if (!answer.ok) return toFault(answer.error);
  return Array.isArray(body) ? null : new NodeFault('unreachable', 'it does not answer a batch');
}

/** Sends many calls to one node, in batches until it refuses one, from then on each in its own request. */
class BatchSender {
  private readonly send: (body: unknown) => Promise<unknown>;
  private takesBatches = true;
  private lastId = 0;

  constructor(send: (body: unknown) => Promise<unknown>) {
    this.send = send;
  }

  /** @returns an answer for each call, in their order */
  async callMany(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (let from = 0; from < calls.length; from += BATCH_MAX) {
      const some = calls.slice(from, from + BATCH_MAX);
      for (const each of await (this.takesBatches && some.length > 1 ? this.callBatch(some) : this.callEach(some)))
        answers.push(each);
    }
    return answers;
  }

  /** Like `askMany`, each call in its own request. */
  async callEach(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (const call of calls) answers.push(parseAnswer(await this.send(this.toRequest(call))).answer);
    return answers;
  }

  private async callBatch(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const requests = calls.map((call) => this.toRequest(call));
    const body = await this.sendBatch(requests);
    const refusal = body === null ? null : refusalIn(body);
    // A rate limit is no refusal of batches.
    if (refusal?.kind === 'busy') throw refusal;
    if (body !== null && refusal === null) return toAnswersOf(requests, body as readonly unknown[]);
    this.takesBatches = false;
    return this.callEach(calls);
  }

  /** @returns null when the node refuses the request because of its size */
  private async sendBatch(requests: readonly unknown[]): Promise<unknown> {
    try {
      return await this.send(requests);
    } catch (fault) {
      if (fault instanceof RequestTooLarge) return null;
      throw fault;
    }
  }

  private toRequest({ method, params }: RpcCall) {
    return { jsonrpc: '2.0', id: ++this.lastId, method, params };
  }
}

const HEX = /^0x[0-9a-f]*$/;
const BLOOM_DIGITS = 2 + 512;
const HASH_DIGITS = 2 + 64;
const ADDRESS_DIGITS = 2 + 40;
const TOPICS_MAX = 4;

const noAnswer = (what: string) => new NodeFault('unreachable', `it answered with ${what}`);

type Members = Record<string, unknown>;

function membersOf(value: unknown, what: string): Members {
  if (typeof value !== 'object' || value === null) throw noAnswer(`no ${what}`);
  return value as Members;
}

/** Checks a hexadecimal text of so many digits with `0x`, and returns it in lower case. */
function hex(value: unknown, digits: number | null, what: string): string {
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  if (!HEX.test(text) || (digits !== null && text.length !== digits)) throw noAnswer(`an invalid ${what}`);
  return text;
}

/** Cache of texts that recur in logs: contracts, topics, owners, blocks and transactions. */
const REPEATED_MAX = 50_000;
const repeatedTexts = new Map<string, string>();

/** Like `hex`, for texts that recur: each is checked once and in memory once. */
function repeatedHex(value: unknown, digits: number, what: string): string {
  const known = typeof value === 'string' ? repeatedTexts.get(value) : undefined;
  if (known?.length === digits) return known;
  const text = hex(value, digits, what);
  if (repeatedTexts.size >= REPEATED_MAX) repeatedTexts.clear();
  repeatedTexts.set(value as string, text);
  return text;
}

/** @throws NodeFault when it is no safe integer */
function parseQuantity(value: unknown, what: string): number {
  const text = hex(value, null, what);
  const number = text.length > 2 ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw noAnswer(`an invalid ${what}`);
  return number;
}

/** Null for an unknown block. @throws NodeFault when it is no block */
function parseBlock(value: unknown): ChainBlock | null {
  if (value === null || value === undefined) return null;
  const block = membersOf(value, 'block');
  return {
    number: parseQuantity(block.number, 'number of a block'),
    hash: hex(block.hash, HASH_DIGITS, 'hash of a block'),
    parentHash: hex(block.parentHash, HASH_DIGITS, 'hash of a block'),
    timestampS: parseQuantity(block.timestamp, 'time of a block'),
    logsBloom: Buffer.from(hex(block.logsBloom, BLOOM_DIGITS, 'bloom').slice(2), 'hex'),
  };
}

function parseLog(value: unknown): ChainLog {
  const log = membersOf(value, 'log');
  if (!Array.isArray(log.topics) || log.topics.length > TOPICS_MAX) throw noAnswer('a log without topics');
  const data = hex(log.data, null, 'data of a log');
  if (data.length % 2 !== 0) throw noAnswer('data of a log with half a byte');
  return {
    blockNumber: parseQuantity(log.blockNumber, 'number of a block'),
    blockHash: repeatedHex(log.blockHash, HASH_DIGITS, 'hash of a block'),
    transactionHash: repeatedHex(log.transactionHash, HASH_DIGITS, 'hash of a transaction'),
    transactionIndex: parseQuantity(log.transactionIndex, 'index of a transaction'),
    logIndex: parseQuantity(log.logIndex, 'index of a log'),
    address: repeatedHex(log.address, ADDRESS_DIGITS, 'address'),
    topics: log.topics.map((topic) => repeatedHex(topic, HASH_DIGITS, 'topic')),
    data,
  };
}

/** @throws NodeFault when it is no list of logs */
function parseLogs(value: unknown): ChainLog[] {
  if (!Array.isArray(value)) throw noAnswer('no list of logs');
  return value.map(parseLog);
}

const inconsistent = (message: string) => new NodeFault('inconsistent', message);
const unknownBlock = () => new NodeFault('behind', 'it does not know the block');

/**
 * The logs of the receipts of these transactions, in their order.
 * @throws NodeFault when it is no list of receipts, or not one receipt for each of them
 */
function parseReceipts(
  value: unknown,
  { blockHash, transactions }: { readonly blockHash: string; readonly transactions: readonly string[] },
): ChainLog[] {
  if (value === null) throw unknownBlock();
  if (!Array.isArray(value)) throw noAnswer('no list of receipts');
  if (value.length !== transactions.length)
    throw inconsistent(`it gave ${value.length} receipts of ${transactions.length} transactions`);
  const logs: ChainLog[] = [];
  for (const [index, each] of value.entries()) {
    if (each === null) throw unknownBlock();
    const receipt = membersOf(each, 'receipt');
    if (hex(receipt.blockHash, HASH_DIGITS, 'hash of a block') !== blockHash)
      throw inconsistent('a receipt is of another block than was asked for');
    if (hex(receipt.transactionHash, HASH_DIGITS, 'hash of a transaction') !== transactions[index])
      throw inconsistent('a receipt is of another transaction than the one at its place in the block');
    for (const log of parseLogs(receipt.logs)) {
      if (log.transactionHash !== transactions[index]) throw inconsistent('a receipt has a log of another transaction');
      logs.push(log);
    }
  }
  return logs;
}

/** The hashes of a block's transactions, in their order. @throws NodeFault when it is not this block */
function parseTransactions(value: unknown, blockHash: string): string[] {
  if (value === null || value === undefined) throw unknownBlock();
  const block = membersOf(value, 'block');
  if (hex(block.hash, HASH_DIGITS, 'hash of a block') !== blockHash)
    throw inconsistent('it gave another block than was asked for');
  if (!Array.isArray(block.transactions)) throw noAnswer('a block without its transactions');
  return block.transactions.map((hash) => hex(hash, HASH_DIGITS, 'hash of a transaction'));
}

/** Hexadecimal of any length. @throws NodeFault */
const parseBytes = (value: unknown): string => hex(value, null, 'answer of a contract');

/**
 * Kinds of faults by the text of the message, because nodes use error codes differently. The first match counts: a
 * refusal of a range often names blocks that are "not available" too, and must still lead to a smaller range.
 */
const FAULT_PATTERNS: readonly (readonly [RegExp, NodeFaultKind])[] = [
  [/\brate|too many requests|per second|credits|capacity|throttl|daily/i, 'busy'],
  [
    /block range|ranges? over|range (is )?too|too many|more than|limited to|response size|exceed|too (large|big|wide)|timed? ?out|max(imum)? .*(range|results|blocks|logs)/i,
    'too-much',
  ],
  [/unknown block|not found|missing|not available|pruned|beyond|after last|greater than/i, 'behind'],
];

/** Besu answers this to a call that halts without a reason, and any node to a fault of its own. */
const INTERNAL = { code: -32603, message: /^internal error\.?$/i };

/** Whether the contract may have failed: a description is then left out, but nothing is decided for good. */
function isMaybeContractFault(error: RpcError): boolean {
  return isContractFault(error) || (error.code === INTERNAL.code && INTERNAL.message.test(error.message));
}

/** Only the kind is kept: the message of a node may quote its URL. */
function toFault({ code, message }: RpcError): NodeFault {
  const [, kind = 'unreachable'] = FAULT_PATTERNS.find(([pattern]) => pattern.test(message)) ?? [];
  return new NodeFault(kind, `it answered with JSON-RPC error ${Number.isFinite(code) ? code : ''} (${kind})`);
}

/** @throws NodeFault when the answer is an error */
function resultOf(answer: RpcAnswer): unknown {
  if (!answer.ok) throw toFault(answer.error);
  return answer.result;
}
