import type { ServerResponse } from 'node:http';

/** As long as a whole request may take to arrive. */
export const ANSWER_MAX_MS = 30_000;

/**
 * Cuts the connection of a caller that does not read its answer. Node has no such bound: its request timeouts end with
 * the request, and its socket timeout begins anew with every byte that is taken. Most answers are with the kernel by
 * now, and cost nothing here.
 * @param response just ended
 */
export function boundReading(response: ServerResponse, boundMs: number): void {
  const { socket } = response.req;
  // Without a socket of its own it waits behind the answers of earlier requests on this connection.
  if (response.socket !== null && socket.writableLength === 0) return;
  const timer = setTimeout(() => socket.destroy(), boundMs).unref();
  response.once('close', () => clearTimeout(timer));
}
