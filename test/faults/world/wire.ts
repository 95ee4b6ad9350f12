import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { PortPool } from './world.ts';

/**
 * - open: forwards everything
 * - refuse: does not listen, and resets existing connections
 * - freeze: accepts connections, but forwards no bytes in either direction
 * - hold-responses: forwards requests, but no responses
 */
export type WireMode = 'open' | 'refuse' | 'freeze' | 'hold-responses';

interface Pipe {
  held: boolean;
  full: boolean;
  from: Socket;
}

interface Pair {
  near: Socket;
  far: Socket;
  up: Pipe;
  down: Pipe;
  lost?: string;
  onLost(): void;
}

/** Longer than any statement that the services send, including its settings. */
const HEAD_BYTES_MAX = 64 * 1024;
const CHUNKED_END = '0\r\n\r\n';

/** Converts a chunk to text for matching. For an HTTP request, this is its first line, decoded. */
function textOf(chunk: Buffer): string {
  const text = chunk.subarray(0, HEAD_BYTES_MAX).toString('latin1');
  if (!text.startsWith('POST ') && !text.startsWith('GET ')) return text;
  const line = text.split('\r\n', 1)[0]!;
  try {
    return decodeURIComponent(line.replaceAll('+', ' '));
  } catch {
    return line;
  }
}

function isCompleteResponse(text: string): boolean {
  const split = text.indexOf('\r\n\r\n');
  if (split < 0) return false;
  const body = text.slice(split + 4);
  const length = /\r\ncontent-length: *(\d+)/.exec(text.slice(0, split).toLowerCase())?.[1];
  if (length !== undefined) return body.length >= Number(length);
  return body === CHUNKED_END || body.endsWith(`\r\n${CHUNKED_END}`);
}

const flow = (pipe: Pipe) => (pipe.held || pipe.full ? pipe.from.pause() : pipe.from.resume());

/** @param passes called with each chunk; returns false to drop the chunk */
function pump(pipe: Pipe, to: Socket, passes: (chunk: Buffer) => boolean): void {
  pipe.from.on('data', (chunk) => {
    if (!passes(chunk)) return;
    pipe.full = !to.write(chunk);
    if (pipe.full) flow(pipe);
  });
  to.on('drain', () => {
    pipe.full = false;
    flow(pipe);
  });
  pipe.from.on('end', () => to.end());
}

class Wire {
  readonly port: number;
  readonly #targetPort: () => number;
  readonly #pairs = new Set<Pair>();
  readonly #watches = new Set<{ match: RegExp; seen: () => void; loses: boolean }>();
  #mode: WireMode = 'open';
  #server: Server | null = null;

  constructor(port: number, targetPort: () => number) {
    this.port = port;
    this.#targetPort = targetPort;
  }

  async #listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (near) => this.#accept(near));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
  }

  #accept(near: Socket): void {
    const far = connect({ port: this.#targetPort(), host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    near.setNoDelay(true);
    const pipe = (from: Socket): Pipe => ({ from, held: false, full: false });
    const pair: Pair = { near, far, up: pipe(near), down: pipe(far), onLost: () => {} };
    this.#pairs.add(pair);
    const end = (socket: Socket, other: Socket) =>
      socket
        .on('error', () => {})
        .on('close', () => {
          this.#pairs.delete(pair);
          other.destroy();
        });
    end(near, far);
    end(far, near);
    pump(pair.up, far, (chunk) => {
      this.#inspect(pair, chunk);
      return true;
    });
    pump(pair.down, near, (chunk) => {
      if (pair.lost === undefined) return true;
      const wasComplete = isCompleteResponse(pair.lost);
      pair.lost += chunk.toString('latin1');
      if (isCompleteResponse(pair.lost)) near.resetAndDestroy();
      if (isCompleteResponse(pair.lost) && !wasComplete) pair.onLost();
      return false;
    });
    this.#hold(pair);
  }

  #inspect(pair: Pair, chunk: Buffer): void {
    if (this.#watches.size === 0) return;
    const text = textOf(chunk);
    for (const watch of this.#watches) {
      if (!watch.match.test(text)) continue;
      this.#watches.delete(watch);
      if (watch.loses) Object.assign(pair, { lost: '', onLost: watch.seen });
      else setImmediate(watch.seen);
    }
  }

  #hold(pair: Pair): void {
    pair.up.held = this.#mode === 'freeze';
    pair.down.held = this.#mode !== 'open';
    flow(pair.up);
    flow(pair.down);
  }

  async set(mode: WireMode): Promise<void> {
    this.#mode = mode;
    if (mode === 'refuse') {
      for (const { near, far } of this.#pairs) {
        near.resetAndDestroy();
        far.resetAndDestroy();
      }
      const server = this.#server;
      this.#server = null;
      if (server !== null) await new Promise((done) => server.close(done));
      return;
    }
    for (const pair of this.#pairs) this.#hold(pair);
    if (this.#server === null) await this.#listen();
  }

  #watch(match: RegExp, loses: boolean): Promise<void> {
    return new Promise((seen) => void this.#watches.add({ match, seen, loses }));
  }

  /** Resolves when a request that matches has been forwarded to the store. See `textOf`. */
  sees(match: RegExp): Promise<void> {
    return this.#watch(match, false);
  }

  // Forwards the next HTTP request that matches, drops the whole response and resets the connection. Resolves when the
  // response has been dropped.
  loseAnswer(match: RegExp): Promise<void> {
    return this.#watch(match, true);
  }

  async close(): Promise<void> {
    await this.set('refuse');
  }
}

/** @param port a reserved port @param targetPort returns the store's port; called for each connection */
export async function openWire(port: number, targetPort: () => number): Promise<Wire> {
  const wire = new Wire(port, targetPort);
  await wire.set('open');
  return wire;
}

const STORES = ['kafka', 'redis', 'clickhouse', 'registry'] as const;
export type Store = (typeof STORES)[number];

export interface Wires extends Readonly<Record<Store, Wire>> {
  openAll(): Promise<void>;
  close(): Promise<void>;
}

/** @param portOf returns a store's port; called for each connection, so stores may start later */
export async function openWires(pool: PortPool, portOf: (store: Store) => number): Promise<Wires> {
  const opened = await Promise.all(
    STORES.map(async (store) => [store, await openWire(pool.take(), () => portOf(store))] as const),
  );
  const onAll = async (action: (wire: Wire) => Promise<void>) =>
    void (await Promise.all(opened.map(([, wire]) => action(wire))));
  return {
    ...(Object.fromEntries(opened) as Record<Store, Wire>),
    openAll: () => onAll((wire) => wire.set('open')),
    close: () => onAll((wire) => wire.close()),
  };
}
