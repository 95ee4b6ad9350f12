import {
  type CallNode,
  type CallResult,
  type ChainBlock,
  type ChainLog,
  type ChainNode,
  isContractFault,
  NodeFault,
  type NodeFaultKind,
  type RpcCall,
  type RpcError,
  type RpcResponse,
} from '../node.ts';
import { createTransport, parseResponse, RequestTooLarge } from './transport.ts';

export interface RpcNodeOptions {
  readonly name: string;
  /** Any part of the URL may be a secret. */
  readonly url: string;
  readonly timeoutMs?: number;
  readonly fetch?: typeof fetch;
}

const TIMEOUT_MS = 20_000;
/** Contract calls can be slow, and indexing must not wait for them. */
const CALLS_TIMEOUT_MS = 5_000;
/** A receipt can be several megabytes long. */
const RECEIPTS_MAX = 20;
/** This many logs take several hundred megabytes of memory. */
const LOGS_MAX = 1_000_000;

/** Enough to read a name through a proxy contract. With more gas, a contract could overload the node. */
const CALL_GAS = 1_000_000;
/** With this gas limit, a single result can be two megabytes long. */
const CALLS_RESPONSE_BYTES_MAX = 8 * 1024 * 1024;

const toHex = (number: number) => `0x${number.toString(16)}`;

function openTransport(
  { url, timeoutMs = TIMEOUT_MS, fetch: fetchImpl = fetch }: Omit<RpcNodeOptions, 'name'>,
  responseBytesMax?: number,
) {
  return createTransport({ url, timeoutMs, fetch: fetchImpl, responseBytesMax });
}

/** Returns node errors as responses; their messages may contain the URL. @throws NodeFault if there is no response */
export function createRpcClient(target: Omit<RpcNodeOptions, 'name'>): (call: RpcCall) => Promise<RpcResponse> {
  const send = openTransport(target);
  let lastId = 0;
  return async ({ method, params }) => {
    const requestId = ++lastId;
    const { id, response } = parseResponse(await send({ jsonrpc: '2.0', id: requestId, method, params }));
    // An error response may have no id.
    if (response.ok && id !== requestId)
      throw new NodeFault('inconsistent', 'the response id does not match the request id');
    return response;
  };
}

/** Returns a batch's responses in call order. @throws NodeFault if a response is missing or batches are unsupported */
export function createRpcBatches(
  target: Omit<RpcNodeOptions, 'name'>,
): (calls: readonly RpcCall[]) => Promise<readonly RpcResponse[]> {
  const send = openTransport(target);
  let lastId = 0;
  return async (calls) => {
    const requests = calls.map((call) => ({ jsonrpc: '2.0', id: ++lastId, ...call }));
    const body = await send(requests);
    if (Array.isArray(body)) return toResponsesOf(requests, body);
    const { response } = parseResponse(body);
    const fault = response.ok ? null : toFault(response.error);
    if (fault?.kind === 'busy') throw fault;
    throw new NodeFault('unreachable', 'the node does not support batches');
  };
}

class RpcNode implements ChainNode {
  readonly name: string;
  private readonly client: (call: RpcCall) => Promise<RpcResponse>;
  private readonly batches: BatchSender;
  private readonly contracts: BatchSender;

  constructor({ name, ...target }: RpcNodeOptions) {
    this.name = name;
    this.client = createRpcClient(target);
    this.batches = new BatchSender(openTransport(target));
    const timeoutMs = Math.min(target.timeoutMs ?? TIMEOUT_MS, CALLS_TIMEOUT_MS);
    this.contracts = new BatchSender(openTransport({ ...target, timeoutMs }, CALLS_RESPONSE_BYTES_MAX));
  }

  private async request(call: RpcCall): Promise<unknown> {
    return resultOf(await this.client(call));
  }

  async chainId() {
    return parseQuantity(await this.request({ method: 'eth_chainId', params: [] }), 'chain id');
  }

  async block(at: 'latest' | 'finalized' | number) {
    const tag = typeof at === 'number' ? toHex(at) : at;
    const block = parseBlock(await this.request({ method: 'eth_getBlockByNumber', params: [tag, false] }));
    if (block !== null && typeof at === 'number' && block.number !== at)
      throw new NodeFault('inconsistent', `the node returned block ${block.number} instead of block ${at}`);
    return block;
  }

  async blocks(from: number, to: number) {
    const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index);
    const blocks = await this.blocksAt(numbers);
    return blocks.filter((block): block is ChainBlock => block !== null);
  }

  async blocksAt(numbers: readonly number[]) {
    const responses = await this.batches.callMany(
      numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [toHex(number), false] })),
    );
    return responses.map((response) => parseBlock(resultOf(response)));
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
      // The method may be unsupported, or its result too long.
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
      if (logs.length > LOGS_MAX) throw new NodeFault('too-large', `a block has more than ${LOGS_MAX} logs`);
    }
    return logs;
  }

  private async receiptsOf(transactions: readonly string[]): Promise<unknown[]> {
    const calls = transactions.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }));
    try {
      return (await this.batches.callMany(calls)).map(resultOf);
    } catch (fault) {
      if (!(fault instanceof NodeFault && (fault.kind === 'too-large' || fault.kind === 'timeout'))) throw fault;
      return (await this.batches.callEach(calls)).map(resultOf);
    }
  }

  async logsIn(from: number, to: number) {
    const filter = { fromBlock: toHex(from), toBlock: toHex(to) };
    return parseLogs(await this.request({ method: 'eth_getLogs', params: [filter] }));
  }

  async calls(calls: Parameters<ChainNode['calls']>[0]) {
    const gas = toHex(CALL_GAS);
    const responses = await this.contracts.callMany(
      calls.map((call) => ({ method: 'eth_call', params: [{ ...call, gas }, 'latest'] })),
    );
    return responses.map(toCallResult);
  }
}

function toCallResult(response: RpcResponse): CallResult {
  if (response.ok) return parseBytes(response.result);
  return mayBeContractFault(response.error) ? null : toFault(response.error);
}

/** Creates a node without connecting to it. @throws TypeError if the URL is invalid */
export function createRpcNode(options: RpcNodeOptions): ChainNode {
  return new RpcNode(options);
}

/** Creates a client for methods that `ChainNode` does not have. Retries calls that get no response. */
export function createCallNode(target: Omit<RpcNodeOptions, 'name'>): CallNode {
  const send = openTransport(target);
  let lastId = 0;
  return async (call) => resultOf(parseResponse(await send({ jsonrpc: '2.0', id: ++lastId, ...call })).response);
}

/** Some providers reject larger batches. */
const BATCH_MAX = 50;

/** @throws NodeFault if a response is missing */
function toResponsesOf(requests: readonly { readonly id: number }[], body: readonly unknown[]): RpcResponse[] {
  const responses = new Map(body.map(parseResponse).map(({ id, response }) => [id, response]));
  return requests.map(({ id }) => {
    const response = responses.get(id);
    if (response === undefined) throw new NodeFault('unreachable', 'the batch lacks a response');
    return response;
  });
}

/** Returns the error for a whole batch: a single object, or a list that contains only that object. */
function refusalIn(body: unknown): NodeFault | null {
  if (Array.isArray(body) && body.length !== 1) return null;
  const { response } = parseResponse(Array.isArray(body) ? body[0] : body);
  if (!response.ok) return toFault(response.error);
  return Array.isArray(body) ? null : new NodeFault('unreachable', 'the response to a batch is not a list');
}

/** Sends batches until the node rejects one, and single requests from then on. */
class BatchSender {
  private readonly send: (body: unknown) => Promise<unknown>;
  private supportsBatches = true;
  private lastId = 0;

  constructor(send: (body: unknown) => Promise<unknown>) {
    this.send = send;
  }

  async callMany(calls: readonly RpcCall[]): Promise<RpcResponse[]> {
    const responses: RpcResponse[] = [];
    for (let from = 0; from < calls.length; from += BATCH_MAX) {
      const batch = calls.slice(from, from + BATCH_MAX);
      for (const each of await (this.supportsBatches && batch.length > 1
        ? this.callBatch(batch)
        : this.callEach(batch)))
        responses.push(each);
    }
    return responses;
  }

  async callEach(calls: readonly RpcCall[]): Promise<RpcResponse[]> {
    const responses: RpcResponse[] = [];
    for (const call of calls) responses.push(parseResponse(await this.send(this.toRequest(call))).response);
    return responses;
  }

  private async callBatch(calls: readonly RpcCall[]): Promise<RpcResponse[]> {
    const requests = calls.map((call) => this.toRequest(call));
    const body = await this.sendBatch(requests);
    const refusal = body === null ? null : refusalIn(body);
    // A rate-limited batch is not a rejected batch.
    if (refusal?.kind === 'busy') throw refusal;
    if (body !== null && refusal === null) return toResponsesOf(requests, body as readonly unknown[]);
    this.supportsBatches = false;
    return this.callEach(calls);
  }

  /** @returns null if the request is too large */
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

const invalidResponse = (problem: string) => new NodeFault('unreachable', `the response contains ${problem}`);

type Members = Record<string, unknown>;

function membersOf(value: unknown, what: string): Members {
  if (typeof value !== 'object' || value === null) throw invalidResponse(`no ${what}`);
  return value as Members;
}

/** Returns the string in lower case. @throws NodeFault */
function hex(value: unknown, digits: number | null, what: string): string {
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  if (!HEX.test(text) || (digits !== null && text.length !== digits)) throw invalidResponse(`an invalid ${what}`);
  return text;
}

/** Maximum number of cached strings that recur in logs. */
const REPEATED_MAX = 50_000;
const repeatedStrings = new Map<string, string>();

/** Validates each string only once, and shares it between logs. */
function repeatedHex(value: unknown, digits: number, what: string): string {
  const cached = typeof value === 'string' ? repeatedStrings.get(value) : undefined;
  if (cached?.length === digits) return cached;
  const text = hex(value, digits, what);
  if (repeatedStrings.size >= REPEATED_MAX) repeatedStrings.clear();
  repeatedStrings.set(value as string, text);
  return text;
}

function parseQuantity(value: unknown, what: string): number {
  const text = hex(value, null, what);
  const number = text.length > 2 ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw invalidResponse(`an invalid ${what}`);
  return number;
}

function parseBlock(value: unknown): ChainBlock | null {
  if (value === null || value === undefined) return null;
  const block = membersOf(value, 'block');
  return {
    number: parseQuantity(block.number, 'block number'),
    hash: hex(block.hash, HASH_DIGITS, 'block hash'),
    parentHash: hex(block.parentHash, HASH_DIGITS, 'block hash'),
    timestampS: parseQuantity(block.timestamp, 'block time'),
    logsBloom: Buffer.from(hex(block.logsBloom, BLOOM_DIGITS, 'bloom').slice(2), 'hex'),
  };
}

function parseLog(value: unknown): ChainLog {
  const log = membersOf(value, 'log');
  if (!Array.isArray(log.topics) || log.topics.length > TOPICS_MAX) throw invalidResponse('a log without topics');
  const data = hex(log.data, null, 'log data');
  if (data.length % 2 !== 0) throw invalidResponse('log data with an odd number of digits');
  return {
    blockNumber: parseQuantity(log.blockNumber, 'block number'),
    blockHash: repeatedHex(log.blockHash, HASH_DIGITS, 'block hash'),
    transactionHash: repeatedHex(log.transactionHash, HASH_DIGITS, 'transaction hash'),
    transactionIndex: parseQuantity(log.transactionIndex, 'transaction index'),
    logIndex: parseQuantity(log.logIndex, 'log index'),
    address: repeatedHex(log.address, ADDRESS_DIGITS, 'address'),
    topics: log.topics.map((topic) => repeatedHex(topic, HASH_DIGITS, 'topic')),
    data,
  };
}

function parseLogs(value: unknown): ChainLog[] {
  if (!Array.isArray(value)) throw invalidResponse('no list of logs');
  return value.map(parseLog);
}

const inconsistent = (message: string) => new NodeFault('inconsistent', message);
const unknownBlock = () => new NodeFault('behind', 'the block is unknown');

function parseReceipts(
  value: unknown,
  { blockHash, transactions }: { readonly blockHash: string; readonly transactions: readonly string[] },
): ChainLog[] {
  if (value === null) throw unknownBlock();
  if (!Array.isArray(value)) throw invalidResponse('no list of receipts');
  if (value.length !== transactions.length)
    throw inconsistent(`the node returned ${value.length} receipts for ${transactions.length} transactions`);
  const logs: ChainLog[] = [];
  for (const [index, each] of value.entries()) {
    if (each === null) throw unknownBlock();
    const receipt = membersOf(each, 'receipt');
    if (hex(receipt.blockHash, HASH_DIGITS, 'block hash') !== blockHash)
      throw inconsistent('a receipt belongs to another block');
    if (hex(receipt.transactionHash, HASH_DIGITS, 'transaction hash') !== transactions[index])
      throw inconsistent('a receipt belongs to another transaction');
    for (const log of parseLogs(receipt.logs)) {
      if (log.transactionHash !== transactions[index])
        throw inconsistent('a receipt contains a log from another transaction');
      logs.push(log);
    }
  }
  return logs;
}

function parseTransactions(value: unknown, blockHash: string): string[] {
  if (value === null || value === undefined) throw unknownBlock();
  const block = membersOf(value, 'block');
  if (hex(block.hash, HASH_DIGITS, 'block hash') !== blockHash)
    throw inconsistent('the node did not return the requested block');
  if (!Array.isArray(block.transactions)) throw invalidResponse('a block without its transactions');
  return block.transactions.map((hash) => hex(hash, HASH_DIGITS, 'transaction hash'));
}

const parseBytes = (value: unknown): string => hex(value, null, 'contract result');

/** The first match wins, because the error for a refused range may also mention blocks that are "not available". */
const FAULT_PATTERNS: readonly (readonly [RegExp, NodeFaultKind])[] = [
  [/\brate|too many requests|per second|credits|capacity|throttl|daily/i, 'busy'],
  [
    /block range|ranges? over|range (is )?too|too many|more than|limited to|response size|exceed|too (large|big|wide)|timed? ?out|max(imum)? .*(range|results|blocks|logs)/i,
    'too-large',
  ],
  [/unknown block|not found|missing|not available|pruned|beyond|after last|greater than/i, 'behind'],
];

/** Besu returns this error for a halted call; other nodes return it for internal faults. */
const INTERNAL_ERROR = { code: -32603, message: /^internal error\.?$/i };

/** Also accepts an ambiguous error: the token then has no description, which can be read later. */
function mayBeContractFault(error: RpcError): boolean {
  return isContractFault(error) || (error.code === INTERNAL_ERROR.code && INTERNAL_ERROR.message.test(error.message));
}

/** Omits the node's message, because it may contain the URL. */
function toFault({ code, message }: RpcError): NodeFault {
  const [, kind = 'unreachable'] = FAULT_PATTERNS.find(([pattern]) => pattern.test(message)) ?? [];
  return new NodeFault(kind, `the node responded with JSON-RPC error ${Number.isFinite(code) ? code : ''} (${kind})`);
}

function resultOf(response: RpcResponse): unknown {
  if (!response.ok) throw toFault(response.error);
  return response.result;
}
