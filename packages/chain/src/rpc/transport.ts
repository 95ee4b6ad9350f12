import { setTimeout as delay } from 'node:timers/promises';
import { NodeFault, type RpcResponse } from '../node.ts';

export interface TransportOptions {
  /** Any part of the URL may be a secret. */
  readonly url: string;
  readonly timeoutMs: number;
  readonly fetch: typeof fetch;
  /** Limits memory use. */
  readonly responseBytesMax?: number | undefined;
}

const RESPONSE_BYTES_MAX = 128 * 1024 * 1024;
const TOO_MANY_REQUESTS = 429;
const CONTENT_TOO_LARGE = 413;
const SECOND_MS = 1_000;
/** Delays between attempts. Many providers fail occasionally. */
const ATTEMPT_WAITS_MS = [100, 400] as const;

/** A request that timed out is not retried, because the caller may request less or use another node. */
const isRetryable = ({ kind, retryAfterMs }: NodeFault) =>
  kind === 'unreachable' || (kind === 'busy' && retryAfterMs === null);

/** The node responded with HTTP status 413. */
export class RequestTooLarge extends NodeFault {
  constructor() {
    super('too-large', 'the node rejected the request as too large (status 413)');
  }
}

/** Moves the credentials into a header, because `fetch` rejects URLs with credentials. */
function targetOf(url: string): { url: string; headers: Record<string, string> } {
  const parsed = new URL(url);
  const { username, password } = parsed;
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (username === '' && password === '') return { url, headers };
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  [parsed.username, parsed.password] = ['', ''];
  return { url: parsed.href, headers: { ...headers, authorization: `Basic ${Buffer.from(login).toString('base64')}` } };
}

/** Omits the error message of `fetch`, because it may contain the URL. */
function toNodeFault(fault: unknown): NodeFault {
  const cause = fault instanceof Error ? (fault.cause as { code?: unknown } | undefined) : undefined;
  const isTimeout = fault instanceof Error && fault.name === 'TimeoutError';
  const code = typeof cause?.code === 'string' ? ` (${cause.code})` : '';
  if (isTimeout) return new NodeFault('timeout', 'the request timed out');
  return new NodeFault('unreachable', `cannot reach the node${code}`);
}

function retryAfterOf(response: Response): number | null {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * SECOND_MS : null;
}

async function readText(response: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new NodeFault('too-large', `the response is larger than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Posts a body and parses the JSON response. Makes at most three attempts. @throws NodeFault */
export function createTransport({
  url,
  timeoutMs,
  fetch: fetchImpl,
  responseBytesMax = RESPONSE_BYTES_MAX,
}: TransportOptions): (body: unknown) => Promise<unknown> {
  const target = targetOf(url);
  const send = async (body: unknown): Promise<string> => {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetchImpl(target.url, {
      method: 'POST',
      headers: target.headers,
      body: JSON.stringify(body),
      signal,
      redirect: 'error',
    });
    const text = await readText(response, responseBytesMax);
    if (response.status === TOO_MANY_REQUESTS) throw new NodeFault('busy', 'rate limited', retryAfterOf(response));
    if (response.status === CONTENT_TOO_LARGE) throw new RequestTooLarge();
    // Some nodes send a JSON-RPC error with an HTTP error status.
    if (!response.ok && !/^[{[]/.test(text))
      throw new NodeFault('unreachable', `the node responded with status ${response.status}`);
    return text;
  };
  const attempt = async (body: unknown): Promise<unknown> => {
    let text: string;
    try {
      text = await send(body);
    } catch (fault) {
      throw fault instanceof NodeFault ? fault : toNodeFault(fault);
    }
    try {
      return JSON.parse(text);
    } catch {
      throw new NodeFault('unreachable', 'the response is truncated or not JSON');
    }
  };
  return async (body) => {
    for (const ms of ATTEMPT_WAITS_MS)
      try {
        return await attempt(body);
      } catch (fault) {
        if (!(fault instanceof NodeFault && isRetryable(fault))) throw fault;
        await delay(ms);
      }
    return attempt(body);
  };
}

/** @throws NodeFault if the value is not a JSON-RPC response */
export function parseResponse(value: unknown): { id: unknown; response: RpcResponse } {
  const { id, result, error } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  if (typeof error === 'object' && error !== null) {
    const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
    return { id, response: { ok: false, error: { code: Number(code), message: String(message), data } } };
  }
  if (result === undefined) throw new NodeFault('unreachable', 'the response has neither a result nor an error');
  return { id, response: { ok: true, result } };
}
