import type { IncomingMessage } from 'node:http';

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
