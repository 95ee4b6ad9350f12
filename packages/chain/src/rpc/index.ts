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
  readonly name: string;
  /** Any part may be a secret. */
  readonly url: string;
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

const TIMEOUT_MS = 20_000;
/** A contract may take long, and indexing must not wait. */
const CALLS_TIMEOUT_MS = 5_000;
/** A receipt can have megabytes. */
const RECEIPTS_MAX = 20;
/** Several hundred megabytes of memory. */
const LOGS_MAX = 1_000_000;

/** Enough for names behind a proxy; more would let a contract keep the node busy. */
const CALL_GAS = 1_000_000;
/** One result can have two megabytes at this gas. */
const CALLS_ANSWER_BYTES_MAX = 8 * 1024 * 1024;

const toHex = (number: number) => `0x${number.toString(16)}`;

/** The text of an error may quote the URL. @throws NodeFault when there is no answer */
export function createRpcClient({
  url,
  timeoutMs = TIMEOUT_MS,
  fetch: fetchImpl = fetch,
}: Omit<RpcNodeOptions, 'name'>): (call: RpcCall) => Promise<RpcAnswer> {
  const send = createTransport({ url, timeoutMs, fetch: fetchImpl });
  let lastId = 0;
  return async ({ method, params }) => {
    const wanted = ++lastId;
    const { id, answer } = parseAnswer(await send({ jsonrpc: '2.0', id: wanted, method, params }));
    // An error may come without an id.
    if (answer.ok && id !== wanted) throw new NodeFault('inconsistent', 'the answer has another id than the request');
    return answer;
  };
}

/** One batch; answers are in order. @throws NodeFault when one is missing or batches are not supported */
export function createRpcBatches({
  url,
  timeoutMs = TIMEOUT_MS,
  fetch: fetchImpl = fetch,
}: Omit<RpcNodeOptions, 'name'>): (calls: readonly RpcCall[]) => Promise<readonly RpcAnswer[]> {
  const send = createTransport({ url, timeoutMs, fetch: fetchImpl });
  let lastId = 0;
  return async (calls) => {
    const requests = calls.map((call) => ({ jsonrpc: '2.0', id: ++lastId, ...call }));
    const body = await send(requests);
    if (Array.isArray(body)) return toAnswersOf(requests, body);
    const { answer } = parseAnswer(body);
    const fault = answer.ok ? null : toFault(answer.error);
    if (fault?.kind === 'busy') throw fault;
    throw new NodeFault('unreachable', 'it does not support batches');
  };
}

class RpcNode implements ChainNode {
  readonly name: string;
  private readonly client: (call: RpcCall) => Promise<RpcAnswer>;
  private readonly batches: BatchSender;
  private readonly contracts: BatchSender;

  constructor({ name, url, timeoutMs = TIMEOUT_MS, fetch: fetchImpl = fetch }: RpcNodeOptions) {
    this.name = name;
    this.client = createRpcClient({ url, timeoutMs, fetch: fetchImpl });
    this.batches = new BatchSender(createTransport({ url, timeoutMs, fetch: fetchImpl }));
    const callsTimeoutMs = Math.min(timeoutMs, CALLS_TIMEOUT_MS);
    const ofContracts = { timeoutMs: callsTimeoutMs, answerBytesMax: CALLS_ANSWER_BYTES_MAX };
    this.contracts = new BatchSender(createTransport({ url, fetch: fetchImpl, ...ofContracts }));
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
      throw new NodeFault('inconsistent', `for block ${at} it gave ${block.number}`);
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
      // The call may be unsupported, or its result too long.
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

/** Sends no request yet. @throws TypeError for an invalid URL */
export function createRpcNode(options: RpcNodeOptions): ChainNode {
  return new RpcNode(options);
}

/** For methods that `ChainNode` lacks. Repeats calls without an answer. */
export function createCallNode({
  url,
  timeoutMs = TIMEOUT_MS,
  fetch: fetchImpl = fetch,
}: Omit<RpcNodeOptions, 'name'>): CallNode {
  const send = createTransport({ url, timeoutMs, fetch: fetchImpl });
  let lastId = 0;
  return async (call) => resultOf(parseAnswer(await send({ jsonrpc: '2.0', id: ++lastId, ...call })).answer);
}

/** Some providers refuse more. */
const BATCH_MAX = 50;

/** @throws NodeFault when one is missing */
function toAnswersOf(requests: readonly { readonly id: number }[], body: readonly unknown[]): RpcAnswer[] {
  const answers = new Map(body.map(parseAnswer).map(({ id, answer }) => [id, answer]));
  return requests.map(({ id }) => {
    const answer = answers.get(id);
    if (answer === undefined) throw new NodeFault('unreachable', 'the batch lacks an answer');
    return answer;
  });
}

/** An error for the whole batch: an object, or a list of only that object. */
function refusalIn(body: unknown): NodeFault | null {
  if (Array.isArray(body) && body.length !== 1) return null;
  const { answer } = parseAnswer(Array.isArray(body) ? body[0] : body);
  if (!answer.ok) return toFault(answer.error);
  return Array.isArray(body) ? null : new NodeFault('unreachable', 'it does not answer a batch');
}

/** Sends batches until the node refuses one, then single requests. */
class BatchSender {
  private readonly send: (body: unknown) => Promise<unknown>;
  private takesBatches = true;
  private lastId = 0;

  constructor(send: (body: unknown) => Promise<unknown>) {
    this.send = send;
  }

  async callMany(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (let from = 0; from < calls.length; from += BATCH_MAX) {
      const some = calls.slice(from, from + BATCH_MAX);
      for (const each of await (this.takesBatches && some.length > 1 ? this.callBatch(some) : this.callEach(some)))
        answers.push(each);
    }
    return answers;
  }

  async callEach(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (const call of calls) answers.push(parseAnswer(await this.send(this.toRequest(call))).answer);
    return answers;
  }

  private async callBatch(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const requests = calls.map((call) => this.toRequest(call));
    const body = await this.sendBatch(requests);
    const refusal = body === null ? null : refusalIn(body);
    // A rate limit does not refuse batches.
    if (refusal?.kind === 'busy') throw refusal;
    if (body !== null && refusal === null) return toAnswersOf(requests, body as readonly unknown[]);
    this.takesBatches = false;
    return this.callEach(calls);
  }

  /** @returns null when the request is too large */
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

/** Returns lower case. @throws NodeFault */
function hex(value: unknown, digits: number | null, what: string): string {
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  if (!HEX.test(text) || (digits !== null && text.length !== digits)) throw noAnswer(`an invalid ${what}`);
  return text;
}

/** Texts that recur in logs. */
const REPEATED_MAX = 50_000;
const repeatedTexts = new Map<string, string>();

/** Validated and stored once. */
function repeatedHex(value: unknown, digits: number, what: string): string {
  const known = typeof value === 'string' ? repeatedTexts.get(value) : undefined;
  if (known?.length === digits) return known;
  const text = hex(value, digits, what);
  if (repeatedTexts.size >= REPEATED_MAX) repeatedTexts.clear();
  repeatedTexts.set(value as string, text);
  return text;
}

function parseQuantity(value: unknown, what: string): number {
  const text = hex(value, null, what);
  const number = text.length > 2 ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw noAnswer(`an invalid ${what}`);
  return number;
}

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

function parseLogs(value: unknown): ChainLog[] {
  if (!Array.isArray(value)) throw noAnswer('no list of logs');
  return value.map(parseLog);
}

const inconsistent = (message: string) => new NodeFault('inconsistent', message);
const unknownBlock = () => new NodeFault('behind', 'it does not know the block');

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
      throw inconsistent('a receipt belongs to another block');
    if (hex(receipt.transactionHash, HASH_DIGITS, 'hash of a transaction') !== transactions[index])
      throw inconsistent('a receipt belongs to another transaction');
    for (const log of parseLogs(receipt.logs)) {
      if (log.transactionHash !== transactions[index]) throw inconsistent('a receipt has a log of another transaction');
      logs.push(log);
    }
  }
  return logs;
}

function parseTransactions(value: unknown, blockHash: string): string[] {
  if (value === null || value === undefined) throw unknownBlock();
  const block = membersOf(value, 'block');
  if (hex(block.hash, HASH_DIGITS, 'hash of a block') !== blockHash)
    throw inconsistent('it returned another block than requested');
  if (!Array.isArray(block.transactions)) throw noAnswer('a block without its transactions');
  return block.transactions.map((hash) => hex(hash, HASH_DIGITS, 'hash of a transaction'));
}

const parseBytes = (value: unknown): string => hex(value, null, 'answer of a contract');

/** The first match counts: a refused range may also name blocks that are "not available". */
const FAULT_PATTERNS: readonly (readonly [RegExp, NodeFaultKind])[] = [
  [/\brate|too many requests|per second|credits|capacity|throttl|daily/i, 'busy'],
  [
    /block range|ranges? over|range (is )?too|too many|more than|limited to|response size|exceed|too (large|big|wide)|timed? ?out|max(imum)? .*(range|results|blocks|logs)/i,
    'too-much',
  ],
  [/unknown block|not found|missing|not available|pruned|beyond|after last|greater than/i, 'behind'],
];

/** Besu answers this to a call that halts, other nodes to their own faults. */
const INTERNAL = { code: -32603, message: /^internal error\.?$/i };

/** A description is then left out, but nothing is final. */
function isMaybeContractFault(error: RpcError): boolean {
  return isContractFault(error) || (error.code === INTERNAL.code && INTERNAL.message.test(error.message));
}

/** The node's message may quote its URL. */
function toFault({ code, message }: RpcError): NodeFault {
  const [, kind = 'unreachable'] = FAULT_PATTERNS.find(([pattern]) => pattern.test(message)) ?? [];
  return new NodeFault(kind, `it answered with JSON-RPC error ${Number.isFinite(code) ? code : ''} (${kind})`);
}

function resultOf(answer: RpcAnswer): unknown {
  if (!answer.ok) throw toFault(answer.error);
  return answer.result;
}
