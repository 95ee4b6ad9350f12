/** A node did not answer, or answered with something that is none. Holds no address of it: there may be a secret in it. */
export class NodeFault extends Error {
  override readonly name = 'NodeFault';
}

/** A node has refused what it was asked. */
export class NodeRefusal extends Error {
  override readonly name = 'NodeRefusal';
  /** What a contract has answered when it reverted; null when it says nothing of one. */
  readonly data: string | null;

  constructor(message: string, data: string | null) {
    super(message);
    this.data = data;
  }
}

/** Asks a node. @throws NodeRefusal, NodeFault */
export type AskNode = (method: string, params: readonly unknown[]) => Promise<unknown>;

export interface JsonRpcOptions {
  /** Of nodes of one chain, the preferred one first; there may be a secret in each. */
  readonly urls: readonly string[];
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;

/** Creates questions to nodes by JSON-RPC: of several the next one is asked when one does not answer. */
export function createJsonRpc({ urls, timeoutMs = TIMEOUT_MS }: JsonRpcOptions): AskNode {
  let [preferred, id] = [0, 0];
  const askOne = async (url: string, body: string) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(url, { method: 'POST', headers, body, signal }).catch(() => null);
    if (answer === null) throw new NodeFault('the node of the chain does not answer');
    const text = await answer.text().catch(() => '');
    return readAnswer(text, answer.status);
  };
  return async (method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params });
    let last: unknown = null;
    for (let attempt = 0; attempt < urls.length; attempt++) {
      try {
        return await askOne(urls[preferred % urls.length]!, body);
      } catch (fault) {
        if (fault instanceof NodeRefusal) throw fault;
        last = fault;
        preferred++;
      }
    }
    throw last;
  };
}

/** Codes of nodes that have no time, or do not know what they are asked yet. */
const BUSY_CODES = new Set([429, -32_005, -32_097]);

function readAnswer(text: string, status: number): unknown {
  const answer = parseJson(text);
  if (answer === null) throw new NodeFault(`the node of the chain answered ${status} and no JSON`);
  const { error } = answer;
  if (error === undefined || error === null) {
    if (!('result' in answer)) throw new NodeFault(`the node of the chain answered ${status} without a result`);
    return answer.result;
  }
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  if (BUSY_CODES.has(Number(code)) || status === 429) throw new NodeFault('the node of the chain is asked too often');
  throw new NodeRefusal(String(message), toRevertData(data));
}

function parseJson(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Nodes put it into the data of an error, or into an object in there. */
function toRevertData(data: unknown): string | null {
  if (typeof data === 'string') return /0x[0-9a-f]*/i.exec(data)?.[0]?.toLowerCase() ?? null;
  if (typeof data !== 'object' || data === null) return null;
  return (
    Object.values(data)
      .map(toRevertData)
      .find((each) => each !== null) ?? null
  );
}
