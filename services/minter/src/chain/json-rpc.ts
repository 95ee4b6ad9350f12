import { isContractFault, NodeFault, type RpcAnswer, type RpcCall, type RpcError } from '@playline/chain';

/** Sends one request to one node; errors that the node returns are part of the answer. @throws NodeFault */
export type CallRpc = (call: RpcCall) => Promise<RpcAnswer>;

/** Sends several requests as one batch. @throws NodeFault */
export type CallRpcBatch = (calls: readonly RpcCall[]) => Promise<readonly RpcAnswer[]>;

/** A node returned an error. Its message may contain the node's address, so code may match it but never show it. */
export class NodeRefusal extends Error {
  override readonly name = 'NodeRefusal';
  readonly code: number;
  /** Data that the contract reverted with; null when the error carries none. */
  readonly data: string | null;
  /** Whether the error says that the contract failed, and not the node. */
  readonly isOfContract: boolean;
  readonly #words: string;

  constructor({ code, message, data }: RpcError) {
    super(`the node of the chain refused what it was asked${Number.isFinite(code) ? ` (code ${code})` : ''}`);
    this.code = code;
    this.data = toRevertData(data);
    this.#words = message.slice(0, MESSAGE_CHARACTERS_MAX);
    this.isOfContract = isContractFault({ code, message: this.#words });
  }

  matches(pattern: RegExp): boolean {
    return pattern.test(this.#words);
  }
}

/** Sends one request and returns its result. @throws NodeRefusal, NodeFault */
export type CallMethod = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Error codes of nodes that are rate limited, or have not synchronised far enough. */
const BUSY_CODES = new Set([429, -32_005, -32_097]);

/** Creates the function that sends requests to one node. */
export function createJsonRpc(ask: CallRpc): CallMethod {
  return async (method, params) => toResult(await ask({ method, params }));
}

/** Sends several requests as one batch, which a single node answers. @throws NodeRefusal, NodeFault */
export type CallMethods = (questions: readonly RpcCall[]) => Promise<readonly unknown[]>;

export function createJsonRpcTogether(ask: CallRpcBatch): CallMethods {
  return async (questions) => (await ask(questions)).map(toResult);
}

function toResult(answer: RpcAnswer): unknown {
  if (answer.ok) return answer.result;
  if (BUSY_CODES.has(answer.error.code)) throw new NodeFault('busy', 'the node of the chain is asked too often');
  throw new NodeRefusal(answer.error);
}

/** A message contains the contract's revert text, which can have megabytes. The patterns need only its beginning. */
const MESSAGE_CHARACTERS_MAX = 2_000;

const REVERT_PREFIX = 'Reverted ';
const [SELECTOR_DIGITS, WORD_DIGITS] = [8, 64];
/** A contract may revert with megabytes. Shown are 500 characters, which 100 words of 32 bytes contain. */
const REVERT_SLOTS_MAX = 100;

/**
 * Revert data of a contract: a selector of four bytes and words of 32 bytes, of which the first are kept. Any other text
 * is not revert data. Only the kept part is matched, because a pattern over megabytes exhausts the stack.
 */
function readRevertData(text: string): string | null {
  const hasPrefix = text.slice(0, REVERT_PREFIX.length).toLowerCase() === REVERT_PREFIX.toLowerCase();
  const start = hasPrefix ? REVERT_PREFIX.length : 0;
  if ((text.length - start - '0x'.length - SELECTOR_DIGITS) % WORD_DIGITS !== 0) return null;
  const kept = text.slice(start, start + '0x'.length + SELECTOR_DIGITS + REVERT_SLOTS_MAX * WORD_DIGITS);
  return /^0x[0-9a-f]{8,}$/i.test(kept) ? kept.toLowerCase() : null;
}

/** Some nodes put it into the `data` of the error, others into an object in there. */
function toRevertData(data: unknown, depth = 0): string | null {
  if (typeof data === 'string') return readRevertData(data);
  if (typeof data !== 'object' || data === null || depth > 3) return null;
  for (const each of Object.values(data)) {
    const found = toRevertData(each, depth + 1);
    if (found !== null) return found;
  }
  return null;
}
