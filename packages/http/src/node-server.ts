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
  readonly onBroken: (error: Error & { code?: string }, socket: Socket) => void;
}

/** Creates a Node server that bounds connections, pipelining and the memory for unread body bytes. */
export function createNodeServer({ listener, connectionsMax, onBroken, ...options }: NodeServerOptions) {
  const server = createServer({ ...options, IncomingMessage: PackedRequest }, listener);
  const onPaused = limitPipelining(server);
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    if (error.code === PAUSED) onPaused(error, socket as Socket);
    else onBroken(error, socket as Socket);
  });
  /** Oldest first. */
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
 * The connection to replace with a new connection: the oldest idle one, else the oldest whose body is still arriving,
 * so nothing is stored. Connections without a request get no preference, or a caller that opens many could block
 * others.
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

/** A Buffer has some 200 bytes of overhead, so chunks below this size are combined. */
export const SMALL_BYTES = 1024;
const PAGE_BYTES = 4096;

/** A request that collects small body chunks in pages until they are read. */
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

/** Maximum unanswered requests per connection. Further pipelined requests are parsed after a response was sent. */
const UNANSWERED_MAX = 4;
/** Maximum received bytes of all paused connections, each of which holds at most one read of 64 KiB. */
const PAUSED_BYTES_MAX = 16 * 1024 * 1024;
/** Paused connections that resume per turn of the event loop, so that other connections are not delayed. */
const RESUMED_PER_TURN = 8;

/** The callback result that pauses llhttp. */
const HPE_PAUSED = 21;
const PAUSED = 'HPE_PAUSED';
const NOTHING = Buffer.alloc(0);

interface NodeParser {
  /** Called for each request with parsed headers; the result is returned to llhttp. */
  onIncoming(request: IncomingMessage, keepAlive: boolean): number;
  resume(): void;
}
type PipelinedSocket = Socket & {
  parser: NodeParser | null;
  _httpMessage?: ServerResponse | null;
  /** True when Node paused the connection because responses are not read. */
  _paused: boolean;
  [PIPELINE]?: Pipeline;
};

const PIPELINE = Symbol('pipeline');

/**
 * Bounds the unanswered requests of each connection: Node parses all of a read, up to 64 KiB with thousands of
 * requests, before it checks whether responses are read. Must be called before the server listens.
 * @returns the handler of each `clientError` with code `PAUSED`
 */
function limitPipelining(server: Server): (error: Error, socket: Socket) => void {
  const paused = new Paused();
  server.on('connection', (socket: PipelinedSocket) => {
    socket[PIPELINE] = new Pipeline(socket, paused);
  });
  return (error, socket) => {
    const { rawPacket, bytesParsed } = error as Error & { rawPacket: Buffer; bytesParsed: number };
    (socket as PipelinedSocket)[PIPELINE]?.pause(rawPacket.subarray(bytesParsed));
  };
}

class Paused {
  /** Received and unparsed bytes. */
  bytes = 0;
  #ready: (() => void)[] = [];

  /** Calls back in a later turn of the event loop, in order. */
  resume(run: () => void): void {
    this.#ready.push(run);
    if (this.#ready.length === 1) setImmediate(() => this.#turn());
  }

  #turn(): void {
    for (const run of this.#ready.slice(0, RESUMED_PER_TURN)) run();
    this.#ready = this.#ready.slice(RESUMED_PER_TURN);
    if (this.#ready.length > 0) setImmediate(() => this.#turn());
  }
}

/** The requests on one connection. Costs one comparison per request while the caller waits for each response. */
class Pipeline {
  readonly #socket: PipelinedSocket;
  readonly #paused: Paused;
  readonly #serve: NodeParser['onIncoming'];
  /** Number of unanswered requests; also 0 while only one is unanswered. */
  #unanswered = 0;
  /** The request at which the parser is paused. */
  #waiting: { readonly request: IncomingMessage; readonly keepAlive: boolean } | null = null;
  #isResuming = false;
  /** Received and unparsed bytes. */
  #restBytes = 0;
  /** Node's data listener, once this class has replaced it. */
  #parse: ((data: Buffer) => void) | null = null;

  constructor(socket: PipelinedSocket, paused: Paused) {
    const parser = socket.parser as NodeParser;
    this.#socket = socket;
    this.#paused = paused;
    this.#serve = parser.onIncoming;
    parser.onIncoming = (request, keepAlive) => this.#receive(request, keepAlive);
  }

  #receive(request: IncomingMessage, keepAlive: boolean): number {
    const current = this.#socket._httpMessage;
    if (current == null) return this.#serve(request, keepAlive);
    if (this.#unanswered === 0) this.#watch(current);
    if (this.#unanswered >= UNANSWERED_MAX) {
      this.#waiting = { request, keepAlive };
      return HPE_PAUSED;
    }
    this.#unanswered++;
    return this.#serve(request, keepAlive);
  }

  /** Responses are sent in order, so it is enough to watch the current response. */
  #watch(response: ServerResponse): void {
    if (this.#unanswered === 0) this.#unanswered = 1;
    response.once('finish', () => {
      const next = this.#socket._httpMessage;
      this.#unanswered = next == null ? 0 : this.#unanswered - 1;
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

  /** Node reports a paused parser as an error, with the unparsed bytes. */
  pause(rest: Buffer): void {
    const socket = this.#socket;
    this.#keep(rest.length);
    if (this.#paused.bytes > PAUSED_BYTES_MAX) return void socket.destroy();
    if (this.#parse === null) {
      // A data listener moves the bytes from the parser's own reads to the socket.
      [this.#parse] = socket.listeners('data') as [(data: Buffer) => void];
      socket.off('data', this.#parse);
      socket.on('data', (data: Buffer) => this.#onData(data));
      socket.once('close', () => this.#keep(0));
    }
    socket.pause();
    if (rest.length > 0) socket.unshift(rest);
  }

  #keep(bytes: number): void {
    this.#paused.bytes += bytes - this.#restBytes;
    this.#restBytes = bytes;
  }

  #onData(data: Buffer): void {
    const socket = this.#socket;
    // A request that reads its body resumes the connection.
    if (this.#waiting !== null || socket._paused) {
      socket.pause();
      socket.unshift(data);
      return;
    }
    this.#keep(0);
    this.#parse?.(data);
  }

  #resume(): void {
    const socket = this.#socket;
    const waiting = this.#waiting;
    this.#isResuming = false;
    if (socket._paused) return void this.#resumeSoon();
    if (waiting === null || this.#unanswered >= UNANSWERED_MAX || socket.destroyed || socket.parser === null) return;
    this.#waiting = null;
    socket.parser.resume();
    // A request without a body ends here.
    this.#parse?.(NOTHING);
    if (socket._httpMessage != null) this.#unanswered++;
    this.#serve(waiting.request, waiting.keepAlive);
    socket.resume();
  }
}
