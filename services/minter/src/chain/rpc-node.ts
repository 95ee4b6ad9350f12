import { type BlockName, NodeFault, type RpcCall } from '@playline/chain';
import { z } from 'zod';
import type { CallOutcome, ChainHead, ChainNode, ContractCall, MintReceipt, SendOutcome, UsedNonce } from '../ports.ts';
import { type CallMethod, type CallMethods, NodeRefusal } from './json-rpc.ts';
import { toRefusalMessage } from './mint-calls.ts';

const hexText = z.string().regex(/^0x[0-9a-fA-F]*$/);
const hex = hexText.transform((text) => text.toLowerCase());
const quantity = hexText.transform((text) => BigInt(text));
const count = quantity.transform(Number);
const block = z.object({ number: count, hash: hex, baseFeePerGas: quantity.default(0n) });
const BLOCK = 'eth_getBlockByNumber';
const NONCES = 'eth_getTransactionCount';

const toQuantity = (number: number): string => `0x${number.toString(16)}`;

/** @throws NodeFault if the response does not match the schema */
function parseResponse<T>(schema: z.ZodType<T>, method: string, response: unknown): T {
  const parsed = schema.safeParse(response);
  if (parsed.success) return parsed.data;
  throw new NodeFault('unreachable', `the chain node returned an invalid response to ${method}`);
}

const receipt = z.object({
  status: count,
  blockNumber: count,
  blockHash: hex,
  logs: z.array(z.object({ address: hex, topics: z.array(hex), data: hex, logIndex: count })),
});

/** Error codes differ between nodes. The first match wins. Older Nethermind versions send names like `AlreadyKnown`. */
const SEND_MESSAGES: readonly { readonly pattern: RegExp; readonly kind: SendOutcome['kind'] }[] = [
  { pattern: /already ?(known|imported)|known transaction/i, kind: 'known' },
  { pattern: /nonce (is )?too low|nonce too small|invalid nonce: too low|\bold ?nonce\b/i, kind: 'nonce-used' },
  {
    pattern: /underpriced|less than block base fee|fee ?too ?low|gas price too low|replacement ?not ?allowed/i,
    kind: 'underpriced',
  },
  { pattern: /insufficient ?funds|insufficient balance/i, kind: 'unfunded' },
  {
    pattern:
      /intrinsic gas|gas ?limit|oversized|chain ?id|configured cap|not supported|invalid sender|signature|rlp|decode|priority fee.*(higher|greater)|tip.*higher/i,
    kind: 'refused',
  },
];

export interface RpcNodeOptions {
  readonly call: CallMethod;
  readonly callBatch: CallMethods;
  readonly finality: Finality;
}

export function createRpcNode({ call, callBatch, finality }: RpcNodeOptions): ChainNode {
  const read = async <T>(schema: z.ZodType<T>, method: string, params: readonly unknown[]): Promise<T> =>
    parseResponse(schema, method, await call(method, params));
  const calls = { call, callBatch, findAncestor: createFindAncestor(call) };
  return {
    chainId: () => read(count, 'eth_chainId', []),
    genesisHash: async () => (await readExisting(call, 0)).hash,
    head: (known) => readHead(calls, finality, known ?? null),
    nonceCounts: async (address, at) => {
      const calls = at.map((each) => ({
        method: NONCES,
        params: [address, typeof each === 'number' ? toQuantity(each) : each],
      }));
      const separate = async () => {
        const responses: unknown[] = [];
        for (const { method, params } of calls) responses.push(await call(method, params));
        return responses;
      };
      const responses = calls.length === 1 ? await separate() : await callOneBranch(() => callBatch(calls), separate);
      return responses.map((response) => parseResponse(count, NONCES, response));
    },
    receiptOf: async (hash) => toReceipt(await call(RECEIPT, [hash])),
    blockHashOf: async (number) => (await readBlock(call, number))?.hash ?? null,
    viewOf: async (hash, numbers) => {
      const { response, hashes } = await viewBranch(calls, numbers, { method: RECEIPT, params: [hash] });
      return { receipt: toReceipt(response), blockHashes: hashes };
    },
    send: (bytes) => send(call, bytes),
    hashByNonce: (used) => findByNonce(calls, used),
    call: (transaction) => toCallOutcome(read(hex, 'eth_call', [transaction, 'latest'])),
    gasOf: (call: ContractCall) => toCallOutcome(read(count, 'eth_estimateGas', [call])),
    priorityFee: () => read(quantity, 'eth_maxPriorityFeePerGas', []),
    balanceOf: (address) => read(quantity, 'eth_getBalance', [address, 'latest']),
  };
}

const RECEIPT = 'eth_getTransactionReceipt';

function toReceipt(response: unknown): MintReceipt | null {
  const found = parseResponse(receipt.nullable(), RECEIPT, response);
  return found === null ? null : { ...found, isSuccess: found.status === 1 };
}

async function send(call: CallMethod, bytes: Buffer): Promise<SendOutcome> {
  try {
    await call('eth_sendRawTransaction', [`0x${bytes.toString('hex')}`]);
    return { kind: 'accepted' };
  } catch (fault) {
    if (!(fault instanceof NodeRefusal)) throw fault;
    const kind = SEND_MESSAGES.find(({ pattern }) => fault.matches(pattern))?.kind ?? 'deferred';
    return { kind };
  }
}

/** Matches reverts from nodes that send no revert data. */
const REVERTED = /^(execution reverted|vm exception while processing transaction: revert)/i;
const REVERTED_CODE = 3;
/** The call is too expensive, or the node is too busy. */
const TIMED_OUT = /time ?out|timed out|aborted/i;

/** Converts a revert to a result. Any other error is a fault, and its message may contain a URL. */
async function toCallOutcome<T>(calls: Promise<T>): Promise<CallOutcome<T>> {
  try {
    return { kind: 'done', value: await calls };
  } catch (fault) {
    if (!(fault instanceof NodeRefusal)) throw fault;
    if (fault.data !== null) return { kind: 'reverted', message: toRefusalMessage(fault.data) };
    if (fault.code === REVERTED_CODE || fault.matches(REVERTED))
      return { kind: 'reverted', message: toRefusalMessage('0x') };
    const message = 'The contract cannot execute the call: it runs out of gas or reaches invalid code.';
    if (fault.isFromContract) return { kind: 'unrunnable', message, isCertain: true };
    const timeoutMessage = 'The node timed out while executing the call.';
    if (fault.matches(TIMED_OUT)) return { kind: 'unrunnable', message: timeoutMessage, isCertain: false };
    throw new NodeFault('unreachable', fault.message);
  }
}

/** The final block that the node reports, or a number of blocks behind the latest block. */
export type Finality = 'finalized' | number;

/** Retries, because the latest block may move back between two requests. */
const ATTEMPTS = 3;

/** Uses one batch, because two nodes may share the URL and one may lag. @param known the last final block, or null */
function readHead(calls: BranchCalls, finality: Finality, known: number | null): Promise<ChainHead> {
  return callOneBranch(
    () => readInBatch(calls, finality, known),
    () => readOneByOne(calls, finality, known),
  );
}

async function readInBatch(
  { call, callBatch }: BranchCalls,
  finality: Finality,
  known: number | null,
): Promise<ChainHead> {
  const view = async (final: number | 'finalized') => {
    // The latest block is read last, so it cannot be closer to the final block.
    const tags = [...(known === null ? [] : [known]), final, 'latest' as const];
    const responses = await callBatch(tags.map(toBlockCall));
    const knownHash = known === null ? null : (parseBlock(responses[0])?.hash ?? null);
    const [end, latest] = [parseExisting(responses.at(-2), final), parseExisting(responses.at(-1), 'latest')];
    return toHead(latest, end, knownHash);
  };
  if (finality === 'finalized') return view(finality);
  let { number } = await readExisting(call, 'latest');
  for (let tries = 0; tries < ATTEMPTS; tries++) {
    const head = await view(toHorizon(number, finality));
    if (head.number >= number) return head;
    ({ number } = head);
  }
  throw new NodeFault('behind', 'the latest block on the chain node keeps moving back');
}

/** Reads the blocks one by one, and verifies by their hashes that they are linked. */
async function readOneByOne(
  { call, findAncestor }: BranchCalls,
  finality: Finality,
  known: number | null,
): Promise<ChainHead> {
  const knownHash = known === null ? null : ((await readBlock(call, known))?.hash ?? null);
  if (finality === 'finalized') {
    const end = await readExisting(call, finality);
    return toHead(await readExisting(call, 'latest'), end, knownHash);
  }
  const latest = await readExisting(call, 'latest');
  const number = toHorizon(latest.number, finality);
  return toHead(latest, { number, hash: await findAncestor(latest, number) }, knownHash);
}

const toHorizon = (latest: number, depth: number) => Math.max(0, latest - depth);

function toHead(
  { number, baseFeePerGas: baseFee }: Awaited<ReturnType<typeof readExisting>>,
  { number: finalized, hash: finalizedHash }: BlockName,
  knownHash: string | null,
): ChainHead {
  if (finalized > number)
    throw new NodeFault(
      'behind',
      `the chain node reports block ${finalized} as final, but its latest block is ${number}`,
    );
  return { number, baseFee, finalized, finalizedHash, knownHash };
}

const fullBlock = block.extend({ transactions: z.array(z.object({ hash: hex, from: hex, nonce: count })) });

/** Finds the transaction that used a nonce. Only a transaction on the final block's branch is proof. */
async function findByNonce(calls: BranchCalls, used: UsedNonce): Promise<string | null> {
  const number = await findBlock(calls.call, used).catch((fault: unknown) => {
    if (fault instanceof NodeRefusal) return null;
    throw fault;
  });
  if (number === null) return null;
  const { horizon, address, nonce } = used;
  const full = { method: BLOCK, params: [toQuantity(number), true] };
  const { response, hashes } = await viewBranch(calls, [number, horizon.number], full);
  const [blockHash, horizonHash] = hashes;
  if (horizonHash !== horizon.hash)
    throw new NodeFault('inconsistent', `the node has a different final block ${horizon.number}`);
  const found = parseResponse(fullBlock.nullable(), BLOCK, response);
  if (found === null || found.hash !== blockHash) return null;
  return found.transactions.find((each) => each.from === address && each.nonce === nonce)?.hash ?? null;
}

/** Returns null if the nonce is unused at the final block. @throws NodeRefusal if the node lacks the old state */
async function findBlock(call: CallMethod, { address, nonce, horizon }: UsedNonce): Promise<number | null> {
  const isUsedAt = async (number: number) =>
    parseResponse(count, NONCES, await call(NONCES, [address, toQuantity(number)])) > nonce;
  if (!(await isUsedAt(horizon.number))) return null;
  // The nonce was probably used recently, so the search goes back in doubling steps.
  let [before, at] = [Math.max(-1, horizon.number - 1), horizon.number];
  for (let step = 1; before >= 0 && (await isUsedAt(before)); step *= 2)
    [before, at] = [Math.max(-1, before - step), before];
  while (at - before > 1) {
    const middle = Math.floor((before + at) / 2);
    if (await isUsedAt(middle)) at = middle;
    else before = middle;
  }
  return at;
}

interface BranchCalls {
  readonly call: CallMethod;
  readonly callBatch: CallMethods;
  readonly findAncestor: FindAncestor;
}

type Block = NonNullable<ReturnType<typeof parseBlock>>;
type BlockTag = number | 'latest' | 'finalized';

/** Faults that may mean that batches are unsupported. An unavailable node causes the same faults. */
const NO_BATCH = new Set(['unreachable', 'too-large']);

/** Uses a batch, which one node processes. Without batch support, block hashes must prove the branch. */
async function callOneBranch<T>(batched: () => Promise<T>, separate: () => Promise<T>): Promise<T> {
  try {
    return await batched();
  } catch (fault) {
    if (!(fault instanceof NodeFault && NO_BATCH.has(fault.kind))) throw fault;
    return separate();
  }
}

const toBlockCall = (at: BlockTag): RpcCall => ({
  method: BLOCK,
  params: [typeof at === 'number' ? toQuantity(at) : at, false],
});

const parseBlock = (response: unknown) => parseResponse(block.nullable(), BLOCK, response);

/** @throws NodeFault if the block is unknown */
function parseExisting(response: unknown, at: BlockTag): Block {
  const found = parseBlock(response);
  if (found === null) throw new NodeFault('behind', `the chain node has no block ${at}`);
  return found;
}

async function readBlock(call: CallMethod, at: BlockTag): Promise<Block | null> {
  const { method, params } = toBlockCall(at);
  return parseBlock(await call(method, params));
}

/** @throws NodeFault if the block is unknown */
async function readExisting(call: CallMethod, at: BlockTag): Promise<Block> {
  const { method, params } = toBlockCall(at);
  return parseExisting(await call(method, params), at);
}

/** Returns the hashes (null if unknown) of blocks on one branch, and the response to a call from the same branch. */
function viewBranch(
  { call, callBatch, findAncestor }: BranchCalls,
  numbers: readonly number[],
  other: RpcCall,
): Promise<{ readonly response: unknown; readonly hashes: readonly (string | null)[] }> {
  const batched = async () => {
    // Highest first: a node that has the final block is on the final branch for the other blocks as well.
    const descending = numbers.toSorted((one, next) => next - one);
    const responses = await callBatch([...descending.map(toBlockCall), other]);
    const hashOf = (number: number) => parseBlock(responses[descending.indexOf(number)])?.hash ?? null;
    return { response: responses.at(-1), hashes: numbers.map(hashOf) };
  };
  const separate = async () => {
    const end = await readBlock(
      call,
      numbers.reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY),
    );
    const hashes: (string | null)[] = [];
    for (const number of numbers) hashes.push(end === null ? null : await findAncestor(end, number));
    return { response: await call(other.method, other.params), hashes };
  };
  return callOneBranch(batched, separate);
}

/** Returns the block's hash on the branch of `end`. @throws NodeFault */
type FindAncestor = (end: BlockName, number: number) => Promise<string>;

const BLOCK_BY_HASH = 'eth_getBlockByHash';
const linked = block.extend({ parentHash: hex });

/** The hashes of this many blocks take several megabytes. */
const DISTANCE_MAX = 20_000;
/** Limit per search. The next search continues from the last block read. */
const BLOCKS_PER_SEARCH_MAX = 500;

/** Walks parent hashes, which works even if several nodes respond. Links never change, so each link is read once. */
function createFindAncestor(call: CallMethod): FindAncestor {
  const parents = new Map<string, string>();
  const readParent = async ({ number, hash }: BlockName): Promise<string> => {
    const found = parseResponse(linked.nullable(), BLOCK_BY_HASH, await call(BLOCK_BY_HASH, [hash, false]));
    if (found === null) throw new NodeFault('behind', `the chain node does not have block ${number}`);
    if (found.hash !== hash || found.number !== number)
      throw new NodeFault('inconsistent', `the chain node returned the wrong block for ${number}`);
    const [oldest] = parents.keys();
    if (parents.size >= 2 * DISTANCE_MAX && oldest !== undefined) parents.delete(oldest);
    parents.set(hash, found.parentHash);
    return found.parentHash;
  };
  return async (end, wanted) => {
    const message = `the node does not support batches, and ${end.number - wanted} blocks must be read one by one`;
    if (end.number - wanted > DISTANCE_MAX) throw new NodeFault('too-large', `${message}, which is too many`);
    let { hash } = end;
    let calls = 0;
    for (let { number } = end; number > wanted; number--) {
      const cachedParent = parents.get(hash);
      if (cachedParent === undefined && ++calls > BLOCKS_PER_SEARCH_MAX)
        throw new NodeFault('behind', `${message}; reading continues`);
      hash = cachedParent ?? (await readParent({ number, hash }));
    }
    return hash;
  };
}
