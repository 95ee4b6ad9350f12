import { NodeFault } from '@playline/chain';

/** A question to a node. */
export interface NodeQuestion {
  readonly method: string;
  readonly params: readonly unknown[];
}

type RpcAnswer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: { readonly code: number; readonly message: string; readonly data: unknown } };

/** A question to one node, and what it says in the place of an answer. @throws NodeFault */
export type AskRpc = (call: NodeQuestion) => Promise<RpcAnswer>;

/** Several of them in one request. @throws NodeFault */
export type AskRpcTogether = (calls: readonly NodeQuestion[]) => Promise<readonly RpcAnswer[]>;

/** A node has refused what it was asked. Its own words may quote its address: they can be looked at, and are never told. */
export class NodeRefusal extends Error {
  override readonly name = 'NodeRefusal';
  readonly code: number;
  /** What a contract has answered when it reverted; null when it says nothing of one. */
  readonly data: string | null;
  readonly #words: string;

  constructor({ code, message, data }: { readonly code: number; readonly message: string; readonly data: unknown }) {
    super(`the node of the chain refused what it was asked${Number.isFinite(code) ? ` (code ${code})` : ''}`);
    this.code = code;
    this.data = toRevertData(data);
    this.#words = message;
  }

  says(pattern: RegExp): boolean {
    return pattern.test(this.#words);
  }
}

/** Asks a node. @throws NodeRefusal, NodeFault */
export type AskNode = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Codes of nodes that have no time, or do not know what they are asked yet. */
const BUSY_CODES = new Set([429, -32_005, -32_097]);

/** Creates questions to one node. */
export function createJsonRpc(ask: AskRpc): AskNode {
  return async (method, params) => toResult(await ask({ method, params }));
}

/** Asks a node several questions in one request, which one node answers as a whole. @throws NodeRefusal, NodeFault */
export type AskNodeTogether = (questions: readonly NodeQuestion[]) => Promise<readonly unknown[]>;

export function createJsonRpcTogether(ask: AskRpcTogether): AskNodeTogether {
  return async (questions) => (await ask(questions)).map(toResult);
}

function toResult(answer: RpcAnswer): unknown {
  if (answer.ok) return answer.result;
  if (BUSY_CODES.has(answer.error.code)) throw new NodeFault('busy', 'the node of the chain is asked too often');
  throw new NodeRefusal(answer.error);
}

/** What a contract reverts with: four bytes and words of 32, as nodes write it. Nothing else is taken for that. */
const REVERT_DATA = /^(?:reverted )?(0x[0-9a-f]{8}(?:[0-9a-f]{64})*)$/i;

/** Nodes put it into the data of an error, or into an object in there. */
function toRevertData(data: unknown, depth = 0): string | null {
  if (typeof data === 'string') return REVERT_DATA.exec(data)?.[1]?.toLowerCase() ?? null;
  if (typeof data !== 'object' || data === null || depth > 3) return null;
  for (const each of Object.values(data)) {
    const found = toRevertData(each, depth + 1);
    if (found !== null) return found;
  }
  return null;
}
