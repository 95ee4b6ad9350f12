import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { PublicError, toEnvelope } from '@playline/errors';
import type { HttpApp } from './app.ts';
import { traceOf } from './trace.ts';

/** Node's own bound for request line and headers together, said here because callers are told of it. */
export const HEADER_BYTES_MAX = 16 * 1024;
/** Far more than any caller sends; without a bound 16 KiB would be thousands of headers, each an object to make. */
export const HEADER_LINES_MAX = 1000;
/** Time for a caller to read the answer to a broken request before the connection is cut. */
const LINGER_MS = 1000;
/** RFC 6585: the one status that says which part is too large; the code of the envelope stays that of a wrong request. */
const HEADERS_TOO_LARGE = 431;

/** Node's code for headers, or a request, that took too long. */
const LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

/** A fault, and its status where that is not the one of its code. */
interface Refusal {
  readonly fault: PublicError;
  readonly status?: number;
}

/** Connections that were told: Node calls again for every piece of bytes that follows the first broken one. */
const told = new WeakSet<Socket>();

/**
 * Answers what is no request: bytes that are no HTTP, headers that are too long, a request that takes too long. To be
 * called for `clientError` of Node's server.
 */
export function answerBrokenRequest(app: HttpApp, error: Error & { code?: string }, socket: Socket): void {
  const isGone = error.code === 'ECONNRESET' || error.code === 'EPIPE';
  if (told.has(socket) && !isGone) return;
  told.add(socket);
  if (!socket.writable || isGone) {
    socket.destroy();
    return;
  }
  const { fault, status } = refusalOf(error);
  const exchange = app.exchangeOf(socket);
  if (exchange === undefined) {
    // Nothing was asked, so nothing is answered. A 408 could pass for the answer to a request that is just being sent.
    if (error.code === LATE && socket.bytesRead === 0) endAndLinger(socket);
    else answerRaw(app, socket, { fault, status });
  } else if (!exchange.request.complete) {
    // It may have its answer already, such as a refusal of its headers: one request has one answer.
    exchange.failAndClose(fault, status);
    // Not before: the answers of earlier requests may still be to come, and go out first.
    exchange.whenSent(() => endAndLinger(socket));
  } else if (exchange.answered) exchange.whenSent(() => answerRaw(app, socket, { fault, status }));
  // Only what came after it is broken: its own answer must not say otherwise.
  else exchange.endConnection();
}

function refusalOf(error: Error & { code?: string }): Refusal {
  const invalid = (message: string, details?: Record<string, number>) =>
    new PublicError('VALIDATION_ERROR', { message, cause: error, ...(details && { details }) });
  switch (error.code) {
    case LATE:
      // It may be the network's doing: no 4xx, on which callers drop their batch.
      return { fault: new PublicError('INTERNAL_SERVER_ERROR', { cause: error }) };
    case 'HPE_HEADER_OVERFLOW': {
      const details = { limitBytes: HEADER_BYTES_MAX, limitHeaders: HEADER_LINES_MAX };
      const message = `Path and headers may have ${HEADER_BYTES_MAX} bytes together, and there may be ${HEADER_LINES_MAX} headers.`;
      return { fault: invalid(message, details), status: HEADERS_TOO_LARGE };
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW': {
      const message = `The chunk extensions of a body may have ${HEADER_BYTES_MAX} bytes together.`;
      return { fault: invalid(message, { limitBytes: HEADER_BYTES_MAX }) };
    }
    default:
      return { fault: invalid('The request is not valid HTTP.') };
  }
}

/** Answers where there is no request to answer, and ends the connection. */
export function answerRaw(app: HttpApp, socket: Socket, { fault, ...own }: Refusal): void {
  const { traceId } = traceOf(undefined);
  const { body, ...of } = toEnvelope(fault, { traceId, link: app.frame.link });
  const status = own.status ?? of.status;
  const text = JSON.stringify(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    `x-trace-id: ${traceId}`,
    'connection: close',
  ];
  app.frame.onAnswer(null, status);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${text}`);
  endAndLinger(socket);
}

function endAndLinger(socket: Socket): void {
  socket.end();
  linger(socket);
}

/** Half-closed first, so that the answer is not thrown away by a reset; cut when the caller does not close too. */
function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {});
}
