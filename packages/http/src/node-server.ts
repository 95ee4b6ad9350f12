import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';

export interface NodeServerOptions extends ServerOptions {
  readonly listener: RequestListener;
  readonly connectionsMax: number;
  readonly onMalformed: (error: Error & { code?: string }, socket: Socket) => void;
}

/** Creates a Node server that limits connections, pipelining, and the memory for unread body bytes. */
export function createNodeServer({ listener, connectionsMax, onMalformed, ...options }: NodeServerOptions) {
  const server = createServer({ ...options, IncomingMessage: PackedRequest }, listener);
  const onPaused = limitPipelining(server);
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    if (error.code === PAUSED) onPaused(error, socket as Socket);
    else onMalformed(error, socket as Socket);
  });
  /** In order of opening. */
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    if (connections.size >= connectionsMax) (findReplaceable(connections) ?? socket).destroy();
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  return { server, connections };
}

type NodeSocket = Socket & { _httpMessage?: ServerResponse<IncomingMessage> | null };

/**
 * Returns the connection that a new connection replaces: the oldest idle connection, or else the oldest connection
 * that is still receiving a body. Connections without a request are not preferred, because a caller could
 * block others by opening many connections.
 */
function findReplaceable(connections: ReadonlySet<NodeSocket>): Socket | undefined {
  let receiving: Socket | undefined;
  for (const socket of connections) {
    if (socket.destroyed) continue;
    const response = socket._httpMessage;
    if (response == null) return socket;
    if (!response.req.complete) receiving ??= socket;
  }
  return receiving;
}

/** A Buffer has about 200 bytes of overhead, so chunks below this size are combined. */
export const SMALL_BYTES = 1024;
const PAGE_BYTES = 4096;

/** A request that combines small body chunks in pages until they are read. */
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

/** Maximum pending requests per connection. Further pipelined requests are parsed after a response is sent. */
const PENDING_MAX = 4;
/** Maximum received bytes across all paused connections, each of which buffers at most one read of 64 KiB. */
const PAUSED_BYTES_MAX = 16 * 1024 * 1024;
/** How many paused connections resume per event loop turn, so that other connections are not delayed. */
const RESUMED_PER_TURN = 8;

/** The callback result that pauses llhttp. */
const HPE_PAUSED = 21;
const PAUSED = 'HPE_PAUSED';
const EMPTY_BUFFER = Buffer.alloc(0);

interface NodeParser {
  /** Called for each request after its headers are parsed. The result is returned to llhttp. */
  onIncoming(request: IncomingMessage, keepAlive: boolean): number;
  resume(): void;
}
type PipelinedSocket = Socket & {
  parser: NodeParser | null;
  _httpMessage?: ServerResponse | null;
  /** True while Node has paused the connection because responses are not read. */
  _paused: boolean;
  [PIPELINE]?: Pipeline;
};

const PIPELINE = Symbol('pipeline');

/**
 * Limits the pending requests per connection. Node parses a whole read, up to 64 KiB with thousands of requests, before
 * it checks whether responses are read. Must be called before the server listens.
 * @returns the handler for a `clientError` with code `PAUSED`
 */
function limitPipelining(server: Server): (error: Error, socket: Socket) => void {
  const paused = new PausedConnections();
  server.on('connection', (socket: PipelinedSocket) => {
    socket[PIPELINE] = new Pipeline(socket, paused);
  });
  return (error, socket) => {
    const { rawPacket, bytesParsed } = error as Error & { rawPacket: Buffer; bytesParsed: number };
    (socket as PipelinedSocket)[PIPELINE]?.pause(rawPacket.subarray(bytesParsed));
  };
}

class PausedConnections {
  /** Received bytes that are not parsed yet. */
  bytes = 0;
  #ready: (() => void)[] = [];

  /** Calls `run` in a later turn of the event loop, in order. */
  resume(run: () => void): void {
    this.#ready.push(run);
    if (this.#ready.length === 1) setImmediate(() => this.#runNext());
  }

  #runNext(): void {
    for (const run of this.#ready.slice(0, RESUMED_PER_TURN)) run();
    this.#ready = this.#ready.slice(RESUMED_PER_TURN);
    if (this.#ready.length > 0) setImmediate(() => this.#runNext());
  }
}

/** The requests on one connection. The cost is one comparison per request if the caller waits for each response. */
class Pipeline {
  readonly #socket: PipelinedSocket;
  readonly #paused: PausedConnections;
  readonly #handle: NodeParser['onIncoming'];
  /** The number of pending requests, or 0 if only one request is pending. */
  #pending = 0;
  /** The request at which the parser is paused. */
  #waiting: { readonly request: IncomingMessage; readonly keepAlive: boolean } | null = null;
  #isResuming = false;
  /** Received bytes that are not parsed yet. */
  #restBytes = 0;
  /** Node's data listener, after this class has replaced it. */
  #parse: ((data: Buffer) => void) | null = null;

  constructor(socket: PipelinedSocket, paused: PausedConnections) {
    const parser = socket.parser as NodeParser;
    this.#socket = socket;
    this.#paused = paused;
    this.#handle = parser.onIncoming;
    parser.onIncoming = (request, keepAlive) => this.#receive(request, keepAlive);
  }

  #receive(request: IncomingMessage, keepAlive: boolean): number {
    const current = this.#socket._httpMessage;
    if (current == null) return this.#handle(request, keepAlive);
    if (this.#pending === 0) this.#watch(current);
    if (this.#pending >= PENDING_MAX) {
      this.#waiting = { request, keepAlive };
      return HPE_PAUSED;
    }
    this.#pending++;
    return this.#handle(request, keepAlive);
  }

  /** Responses are sent in order, so it is enough to watch the current response. */
  #watch(response: ServerResponse): void {
    if (this.#pending === 0) this.#pending = 1;
    response.once('finish', () => {
      const next = this.#socket._httpMessage;
      this.#pending = next == null ? 0 : this.#pending - 1;
      if (next != null) this.#watch(next);
      this.#resumeSoon();
    });
  }

  #resumeSoon(): void {
    if (this.#waiting === null || this.#isResuming) return;
    this.#isResuming = true;
    this.#paused.resume(() => {
      // Node pauses the connection while its responses are not read.
      if (this.#socket._paused) this.#socket.once('drain', () => this.#resume());
      else this.#resume();
    });
  }

  /** Handles a paused parser, which Node reports as an error with the unparsed bytes. */
  pause(rest: Buffer): void {
    const socket = this.#socket;
    this.#setRestBytes(rest.length);
    if (this.#paused.bytes > PAUSED_BYTES_MAX) return void socket.destroy();
    if (this.#parse === null) {
      // With a data listener, bytes are read by the socket instead of the parser.
      [this.#parse] = socket.listeners('data') as [(data: Buffer) => void];
      socket.off('data', this.#parse);
      socket.on('data', (data: Buffer) => this.#onData(data));
      socket.once('close', () => this.#setRestBytes(0));
    }
    socket.pause();
    if (rest.length > 0) socket.unshift(rest);
  }

  #setRestBytes(bytes: number): void {
    this.#paused.bytes += bytes - this.#restBytes;
    this.#restBytes = bytes;
  }

  #onData(data: Buffer): void {
    const socket = this.#socket;
    // Reading the request body resumes the connection.
    if (this.#waiting !== null || socket._paused) {
      socket.pause();
      socket.unshift(data);
      return;
    }
    this.#setRestBytes(0);
    this.#parse?.(data);
  }

  #resume(): void {
    const socket = this.#socket;
    const waiting = this.#waiting;
    this.#isResuming = false;
    if (socket._paused) return void this.#resumeSoon();
    if (waiting === null || this.#pending >= PENDING_MAX || socket.destroyed || socket.parser === null) return;
    this.#waiting = null;
    socket.parser.resume();
    // Completes a request without a body.
    this.#parse?.(EMPTY_BUFFER);
    if (socket._httpMessage != null) this.#pending++;
    this.#handle(waiting.request, waiting.keepAlive);
    socket.resume();
  }
}
