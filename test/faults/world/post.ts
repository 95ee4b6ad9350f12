import type { Agent } from 'node:http';
import { sendRequest } from '../../simulate/delivery.ts';
import { MESSAGES_PATH } from '../../simulate/game/sender.ts';

export interface Attempt {
  readonly beganAt: number;
  readonly endedAt: number;
  /** HTTP status; 0 if no complete response arrived. */
  readonly status: number;
  readonly text: string;
  readonly connection: string | undefined;
}

export interface Post {
  url: string;
  key: string;
  body: string | Buffer;
  agent?: Agent;
  /** Null removes a header. */
  headers?: Readonly<Record<string, string | null>> | undefined;
  method?: 'GET' | 'POST' | 'PUT' | undefined;
  path?: string | undefined;
}

export const KEY_HEADER = 'x-service-publishable-key';
/** The client timeout in the contract, much longer than the gateway's deadline. */
const RESPONSE_MAX_MS = 30_000;

/** Sends a request, by default a POST to the messages route. Never throws. */
export async function post({ url, key, agent, path = MESSAGES_PATH, ...options }: Post): Promise<Attempt> {
  const all = { 'content-type': 'application/json', [KEY_HEADER]: key, ...options.headers };
  const headers = Object.fromEntries(Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== null));
  const request = { method: options.method ?? 'POST', path, headers, body: Buffer.from(options.body) };
  const beganAt = performance.now();
  const end = (status: number, text: string, connection?: string) => {
    return { beganAt, endedAt: performance.now(), status, text, connection };
  };
  try {
    const response = await sendRequest(url, { ...request, abortAfterMs: RESPONSE_MAX_MS }, agent);
    return end(response.status, response.text, response.headers.connection);
  } catch (error) {
    return end(0, error instanceof Error ? error.message : String(error));
  }
}
