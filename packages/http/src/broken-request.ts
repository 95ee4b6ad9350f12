import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { PublicError, toEnvelope } from '@playline/errors';
import type { HttpApp } from './app.ts';
import { traceOf } from './trace.ts';

/** Node's own bound for request line and headers together. Written here because callers are told of it. */
export const HEADER_BYTES_MAX = 16 * 1024;
/**
 * Far more than any caller sends. Without a bound, 16 KiB could be thousands of headers, each of which becomes an
 * object.
 */
export const HEADER_LINES_MAX = 1000;
/** Time for a caller to read the answer to a broken request before the connection is cut. */
const LINGER_MS = 1000;
/**
 * RFC 6585: the only status that says which part is too large. The code of the envelope stays that of a wrong request.
 */
const HEADERS_TOO_LARGE = 431;

/** Node's code for headers, or a request, that took too long. */
const LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

/** A fault, and its status where that is not the one of its code. */
interface Refusal {
  readonly fault: PublicError;
  readonly status?: number;
}

/** Connections that have their answer: Node calls again for every piece of data after the first broken one. */
const told = new WeakSet<Socket>();

/**
 * Answers data that is no request: bytes that are not HTTP, headers that are too long, a request that takes too long.
 * To be called for `clientError` of Node's server.
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
    // No request was sent, so no answer is. The caller could take a 408 for the answer to a request that it is just
    // sending.
    if (error.code === LATE && socket.bytesRead === 0) endAndLinger(socket);
    else answerRaw(app, socket, { fault, status });
  } else if (!exchange.request.complete) {
    // It may have its answer already, such as a refusal of its headers. A request has one answer only.
    exchange.failAndClose(fault, status);
    // Not earlier: answers to earlier requests may still be on their way, and go out first.
    exchange.whenSent(() => endAndLinger(socket));
  } else if (exchange.answered) exchange.whenSent(() => answerRaw(app, socket, { fault, status }));
  // Only the data after this request is broken, so its own answer must stay as it is.
  else exchange.endConnection();
}

function refusalOf(error: Error & { code?: string }): Refusal {
  const invalid = (message: string, details?: Record<string, number>) =>
    new PublicError('VALIDATION_ERROR', { message, cause: error, ...(details && { details }) });
  switch (error.code) {
    case LATE:
      // The network may be the cause. So the answer is no 4xx, since callers would then drop their batch.
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

/**
 * Ends our half of the connection first, so that a reset does not discard the answer. Cut if the caller does not end
 * its half.
 */
function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {});
}
