import type { IncomingMessage, ServerResponse } from 'node:http';

/** As long as a whole request may take to arrive. */
export const ANSWER_MAX_MS = 30_000;

/**
 * Cuts the connection of a caller that does not read its answer. Node has no such bound: its request timeouts end with
 * the request, and its socket timeout starts again with every byte that the caller takes. Most answers have been handed
 * to the kernel by now, and need no timer.
 * @param response just ended
 */
export function boundReading(response: ServerResponse, boundMs: number): void {
  const { socket } = response.req;
  // Without a socket of its own it waits behind the answers of earlier requests on this connection.
  if (response.socket !== null && socket.writableLength === 0) return;
  const timer = setTimeout(() => socket.destroy(), boundMs).unref();
  response.once('close', () => clearTimeout(timer));
}

/**
 * Callers send to the end before they read the answer, and a connection closed with unread bytes is reset, which can
 * throw the answer away. Eight times the largest batch covers what honest callers send by mistake.
 */
const READ_ON_BYTES_MAX = 8 * 1024 * 1024;
/** As long as a whole body may take. */
const READ_ON_MAX_MS = 10_000;

/** Throws away the rest of a body whose answer is already out, within bounds; past them the connection is cut. */
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
