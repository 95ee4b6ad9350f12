import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { boundPipelining, PAUSED } from './pipelining.ts';

export interface NodeServerOptions extends ServerOptions {
  readonly listener: RequestListener;
  readonly connectionsMax: number;
  /** Called for bytes that are no request. */
  readonly onBroken: (error: Error & { code?: string }, socket: Socket) => void;
}

export interface NodeServer {
  readonly server: Server;
  /** Open connections, the oldest first. */
  readonly connections: ReadonlySet<Socket>;
}

/**
 * Creates Node's server with the bounds that every listener has: open connections, unanswered requests of a connection,
 * and the memory of body bytes that nothing has read yet.
 */
export function createNodeServer({ listener, connectionsMax, onBroken, ...options }: NodeServerOptions): NodeServer {
  const server = createServer({ ...options, IncomingMessage: PackedRequest }, listener);
  const onPaused = boundPipelining(server);
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    if (error.code === PAUSED) onPaused(error, socket as Socket);
    else onBroken(error, socket as Socket);
  });
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    if (connections.size >= connectionsMax) (replaceableOf(connections) ?? socket).destroy();
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  return { server, connections };
}

type NodeSocket = Socket & { _httpMessage?: ServerResponse<IncomingMessage> | null };

/**
 * The connection that a new one replaces when there are too many: the oldest one without an unanswered request. Idle
 * connections could keep all other callers out otherwise. One that has sent nothing yet has no less right to stay: else a
 * caller that opens many and begins a request on each would have every new one closed before its request arrives.
 *
 * If none is idle, the oldest one whose body is still arriving: nothing of it is stored, and one key could otherwise keep
 * all connections busy with slow bodies.
 */
function replaceableOf(connections: ReadonlySet<NodeSocket>): Socket | undefined {
  let receiving: Socket | undefined;
  for (const socket of connections) {
    if (socket.destroyed) continue;
    const response = socket._httpMessage;
    if (response == null) return socket;
    if (!response.req.complete) receiving ??= socket;
  }
  return receiving;
}

/** A Buffer costs some 200 bytes beside its content, so chunks below this size are copied together. */
export const SMALL_BYTES = 1024;
const PAGE_BYTES = 4096;

/** A request that keeps small chunks of its body in pages until somebody reads it. Node would keep a Buffer for each. */
class PackedRequest extends IncomingMessage {
  #page: Buffer | null = null;
  #pageBytes = 0;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk === null || this.readableFlowing === true || chunk.length >= SMALL_BYTES) {
      this.#pushPage();
      return super.push(chunk, encoding);
    }
    if (this.#page !== null && this.#pageBytes + chunk.length > PAGE_BYTES) this.#pushPage();
    this.#page ??= Buffer.allocUnsafeSlow(PAGE_BYTES);
    this.#pageBytes += chunk.copy(this.#page, this.#pageBytes);
    return this.readableLength + this.#pageBytes < this.readableHighWaterMark;
  }

  override _read(size: number): void {
    this.#pushPage();
    super._read(size);
  }

  #pushPage(): void {
    const page = this.#page;
    const pageBytes = this.#pageBytes;
    if (page === null) return;
    this.#page = null;
    this.#pageBytes = 0;
    super.push(pageBytes * 2 < PAGE_BYTES ? Buffer.copyBytesFrom(page, 0, pageBytes) : page.subarray(0, pageBytes));
  }
}
