import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createRequestWatch, type RequestWatch } from './request-watch.ts';

/**
 * - open: everything passes
 * - refuse: nothing listens; existing connections are reset
 * - freeze: connections are accepted, but no byte passes in either direction until another mode is set
 * - hold-answers: requests reach the store, but no answer passes until another mode is set
 */
export type WireMode = 'open' | 'refuse' | 'freeze' | 'hold-answers';

/** A TCP proxy between the services and one store. Loopback only. */
export interface Wire {
  /** Where the services connect. */
  readonly port: number;
  readonly mode: WireMode;
  set(mode: WireMode): Promise<void>;
  /** Resets all existing connections; new ones are accepted. */
  cut(): void;
  /** Resolves when matching bytes have been passed to the store. They are matched as latin1, percent-decoded. */
  sees(match: RegExp): Promise<void>;
  /**
   * Passes the next matching HTTP request on, drops the whole answer and resets the connection: the work is done, but
   * the client gets no answer. Resolves when that has happened.
   */
  loseAnswer(match: RegExp): Promise<void>;
  close(): Promise<void>;
}

/** One direction of one connection. */
interface Pipe {
  held: boolean;
  full: boolean;
  from: Socket;
}

interface Pair {
  near: Socket;
  far: Socket;
  /** Towards the store. */
  up: Pipe;
  down: Pipe;
  watch: RequestWatch;
}

const flow = (pipe: Pipe) => (pipe.held || pipe.full ? pipe.from.pause() : pipe.from.resume());

function pump(pipe: Pipe, to: Socket, onChunk: (chunk: Buffer) => boolean): void {
  pipe.from.on('data', (chunk) => {
    if (!onChunk(chunk)) return;
    pipe.full = !to.write(chunk);
    if (pipe.full) flow(pipe);
  });
  to.on('drain', () => {
    pipe.full = false;
    flow(pipe);
  });
  pipe.from.on('end', () => to.end());
}

class LoopbackWire implements Wire {
  readonly port: number;
  mode: WireMode = 'open';
  readonly #targetPort: () => number;
  readonly #pairs = new Set<Pair>();
  readonly #watches = new Set<{ match: RegExp; seen: () => void; loses: boolean }>();
  #server: Server | null = null;

  constructor(port: number, targetPort: () => number) {
    this.port = port;
    this.#targetPort = targetPort;
  }

  async listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (near) => this.#accept(near));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
  }

  #accept(near: Socket): void {
    const far = connect({ port: this.#targetPort(), host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    near.setNoDelay(true);
    const pipe = (from: Socket): Pipe => ({ from, held: false, full: false });
    const pair: Pair = { near, far, up: pipe(near), down: pipe(far), watch: createRequestWatch() };
    this.#pairs.add(pair);
    const end = (other: Socket) => {
      this.#pairs.delete(pair);
      other.destroy();
    };
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const)
      socket.on('error', () => {}).on('close', () => end(other));
    pump(pair.up, far, (chunk) => {
      this.#inspect(pair, chunk);
      return true;
    });
    pump(pair.down, near, (chunk) => {
      if (!pair.watch.isLosing) return true;
      pair.watch.swallow(chunk);
      if (pair.watch.isLost) near.resetAndDestroy();
      return false;
    });
    this.#hold(pair);
  }

  #inspect(pair: Pair, chunk: Buffer): void {
    if (this.#watches.size === 0) return;
    const text = pair.watch.textOf(chunk);
    for (const watch of this.#watches) {
      if (!watch.match.test(text)) continue;
      this.#watches.delete(watch);
      if (watch.loses) pair.watch.lose(watch.seen);
      else setImmediate(watch.seen);
    }
  }

  #hold(pair: Pair): void {
    pair.up.held = this.mode === 'freeze';
    pair.down.held = this.mode !== 'open';
    flow(pair.up);
    flow(pair.down);
  }

  async set(mode: WireMode): Promise<void> {
    this.mode = mode;
    if (mode === 'refuse') {
      this.cut();
      const server = this.#server;
      this.#server = null;
      if (server !== null) await new Promise((done) => server.close(done));
      return;
    }
    for (const pair of this.#pairs) this.#hold(pair);
    if (this.#server === null) await this.listen();
  }

  cut(): void {
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  #watch(match: RegExp, loses: boolean): Promise<void> {
    return new Promise((seen) => void this.#watches.add({ match, seen, loses }));
  }

  sees(match: RegExp): Promise<void> {
    return this.#watch(match, false);
  }

  loseAnswer(match: RegExp): Promise<void> {
    return this.#watch(match, true);
  }

  async close(): Promise<void> {
    await this.set('refuse');
  }
}

/**
 * @param port a free port to listen on. It stays reserved while nothing listens
 * @param targetPort returns the store's port on loopback; called for each connection
 */
export async function openWire(port: number, targetPort: () => number): Promise<Wire> {
  const wire = new LoopbackWire(port, targetPort);
  await wire.listen();
  return wire;
}
