import { isContractFault, NodeFault, type RpcCall, type RpcError, type RpcResponse } from '@playline/chain';

/** Calls a method. Errors from the node are part of the response. @throws NodeFault */
export type CallRpc = (call: RpcCall) => Promise<RpcResponse>;

/** Sends one batch. @throws NodeFault */
export type CallRpcBatch = (calls: readonly RpcCall[]) => Promise<readonly RpcResponse[]>;

/** An error from a node. The message may contain the URL, so it is only matched against patterns, never shown. */
export class NodeRefusal extends Error {
  override readonly name = 'NodeRefusal';
  readonly code: number;
  /** The revert data. */
  readonly data: string | null;
  readonly isFromContract: boolean;
  readonly #message: string;

  constructor({ code, message, data }: RpcError) {
    super(`the node rejected the request${Number.isFinite(code) ? ` (code ${code})` : ''}`);
    this.code = code;
    this.data = toRevertData(data);
    this.#message = message.slice(0, MESSAGE_CHARACTERS_MAX);
    this.isFromContract = isContractFault({ code, message: this.#message });
  }

  matches(pattern: RegExp): boolean {
    return pattern.test(this.#message);
  }
}

/** @throws NodeRefusal, NodeFault */
export type CallMethod = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** The node is rate limited, or is still syncing. */
const BUSY_CODES = new Set([429, -32_005, -32_097]);

export function createJsonRpc(call: CallRpc): CallMethod {
  return async (method, params) => toResult(await call({ method, params }));
}

/** Sends one batch, which one node processes. @throws NodeRefusal, NodeFault */
export type CallMethods = (calls: readonly RpcCall[]) => Promise<readonly unknown[]>;

export function createJsonRpcBatches(call: CallRpcBatch): CallMethods {
  return async (calls) => (await call(calls)).map(toResult);
}

function toResult(response: RpcResponse): unknown {
  if (response.ok) return response.result;
  if (BUSY_CODES.has(response.error.code)) throw new NodeFault('busy', 'the node is rate limited');
  throw new NodeRefusal(response.error);
}

/** Limits messages, which may contain megabytes of revert data. */
const MESSAGE_CHARACTERS_MAX = 2_000;

const REVERT_PREFIX = 'Reverted ';
const [SELECTOR_DIGITS, WORD_DIGITS] = [8, 64];
/** More than enough for the 500 characters that are shown. */
const REVERT_SLOTS_MAX = 100;

/** Reads a selector and 32-byte slots. Matches only the beginning, because matching megabytes exhausts the stack. */
function readRevertData(text: string): string | null {
  const hasPrefix = text.slice(0, REVERT_PREFIX.length).toLowerCase() === REVERT_PREFIX.toLowerCase();
  const start = hasPrefix ? REVERT_PREFIX.length : 0;
  if ((text.length - start - '0x'.length - SELECTOR_DIGITS) % WORD_DIGITS !== 0) return null;
  const prefix = text.slice(start, start + '0x'.length + SELECTOR_DIGITS + REVERT_SLOTS_MAX * WORD_DIGITS);
  return /^0x[0-9a-f]{8,}$/i.test(prefix) ? prefix.toLowerCase() : null;
}

/** Some nodes nest the data in an object. */
function toRevertData(data: unknown, depth = 0): string | null {
  if (typeof data === 'string') return readRevertData(data);
  if (typeof data !== 'object' || data === null || depth > 3) return null;
  for (const each of Object.values(data)) {
    const found = toRevertData(each, depth + 1);
    if (found !== null) return found;
  }
  return null;
}
