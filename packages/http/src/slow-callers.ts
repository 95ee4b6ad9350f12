import type { IncomingMessage, ServerResponse } from 'node:http';

/** The same time that a whole request may take to arrive. */
export const ANSWER_MAX_MS = 30_000;

/**
 * Closes the connection of a caller that does not read its answer. Node has no such bound: its request timeouts end
 * with the request, and its socket timeout restarts with every byte that the caller reads. Most answers are already in
 * the kernel's hands by now, and need no timer.
 * @param response just ended
 */
export function boundReading(response: ServerResponse, boundMs: number): void {
  const { socket } = response.req;
  // Without a socket it waits behind the answers to earlier requests on this connection.
  if (response.socket !== null && socket.writableLength === 0) return;
  const timer = setTimeout(() => socket.destroy(), boundMs).unref();
  response.once('close', () => clearTimeout(timer));
}

/**
 * Callers send their whole request before they read the answer. Closing a connection with unread bytes resets it, which
 * can discard the answer. Eight times the largest batch covers what honest callers send by mistake.
 */
const READ_ON_BYTES_MAX = 8 * 1024 * 1024;
/** As long as a whole body may take. */
const READ_ON_MAX_MS = 10_000;

/**
 * Reads and discards the rest of a body that is answered already, within bounds; beyond them the connection is closed.
 */
export function readOn(request: IncomingMessage): void {
  let bytes = 0;
  const cut = () => request.socket.destroy();
  const timer = setTimeout(cut, READ_ON_MAX_MS).unref();
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > READ_ON_BYTES_MAX) cut();
  });
  request.once('close', () => clearTimeout(timer));
  request.once('end', () => clearTimeout(timer));
  request.on('error', () => {});
  request.resume();
}
