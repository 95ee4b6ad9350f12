import { setTimeout as delay } from 'node:timers/promises';
import { NodeFault } from '../node.ts';

/** One question of JSON-RPC. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What a node says in the place of an answer. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  /** As it came: what a contract has reverted with, at most. */
  readonly data: unknown;
}

export type RpcAnswer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcError };

export interface TransportOptions {
  /** May hold a secret anywhere. */
  readonly url: string;
  readonly timeoutMs: number;
  readonly fetch: typeof fetch;
}

/** As much as a process can take at once; nodes that give more are asked for less. */
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;
const TOO_MANY = 429;
const TOO_LARGE = 413;
const SECOND_MS = 1_000;
/** One answer in some goes wrong at many providers: to ask once more is cheaper than to begin a range anew. */
const ATTEMPT_WAITS_MS = [100, 400] as const;

/**
 * Whether the same question may have an answer in a moment; a node that says when it wants to be asked is not asked before.
 * One that was late has had its time: whoever asked may want less, or another node.
 */
const passes = ({ kind, retryAfterMs }: NodeFault) =>
  kind === 'unreachable' || (kind === 'busy' && retryAfterMs === null);

/** The address without user information, which `fetch` refuses, and the header that says it instead. */
function targetOf(url: string): { url: string; headers: Record<string, string> } {
  const parsed = new URL(url);
  const { username, password } = parsed;
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (username === '' && password === '') return { url, headers };
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  [parsed.username, parsed.password] = ['', ''];
  return { url: parsed.href, headers: { ...headers, authorization: `Basic ${Buffer.from(login).toString('base64')}` } };
}

/** Its code at most: what `fetch` says may name the address. */
function toSilence(fault: unknown): NodeFault {
  const cause = fault instanceof Error ? (fault.cause as { code?: unknown } | undefined) : undefined;
  const isLate = fault instanceof Error && fault.name === 'TimeoutError';
  const code = typeof cause?.code === 'string' ? ` (${cause.code})` : '';
  if (isLate) return new NodeFault('late', 'it does not answer in time');
  return new NodeFault('unreachable', `it cannot be reached${code}`);
}

function retryAfterOf(answer: Response): number | null {
  const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * SECOND_MS : null;
}

async function readText(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw new NodeFault('too-much', 'its answer is larger than 128 MiB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Creates what sends a body and gives what came back as JSON; what passes is asked three times. @throws NodeFault */
export function createTransport({ url, timeoutMs, fetch: ask }: TransportOptions): (body: unknown) => Promise<unknown> {
  const target = targetOf(url);
  const send = async (body: unknown): Promise<string> => {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await ask(target.url, {
      ...{ method: 'POST', headers: target.headers, body: JSON.stringify(body), signal, redirect: 'error' },
    });
    const text = await readText(answer);
    if (answer.status === TOO_MANY) throw new NodeFault('busy', 'it is asked too often', retryAfterOf(answer));
    if (answer.status === TOO_LARGE)
      throw new NodeFault('too-much', 'it refused the request as too large (status 413)');
    // Some nodes answer a fault of JSON-RPC with a status of its own.
    if (!answer.ok && !text.startsWith('{')) throw new NodeFault('unreachable', `it answered ${answer.status}`);
    return text;
  };
  const askOnce = async (body: unknown): Promise<unknown> => {
    let text: string;
    try {
      text = await send(body);
    } catch (fault) {
      throw fault instanceof NodeFault ? fault : toSilence(fault);
    }
    try {
      return JSON.parse(text);
    } catch {
      throw new NodeFault('unreachable', 'its answer is cut short, or no JSON');
    }
  };
  return async (body) => {
    for (const ms of ATTEMPT_WAITS_MS)
      try {
        return await askOnce(body);
      } catch (fault) {
        if (!(fault instanceof NodeFault && passes(fault))) throw fault;
        await delay(ms);
      }
    return askOnce(body);
  };
}

/** @throws NodeFault for what is no answer of JSON-RPC */
export function parseAnswer(value: unknown): { id: unknown; answer: RpcAnswer } {
  const { id, result, error } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  if (typeof error === 'object' && error !== null) {
    const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
    return { id, answer: { ok: false, error: { code: Number(code), message: String(message), data } } };
  }
  if (result === undefined) throw new NodeFault('unreachable', 'its answer has neither a result nor an error');
  return { id, answer: { ok: true, result } };
}
