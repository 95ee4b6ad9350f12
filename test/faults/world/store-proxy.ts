import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { PortPool } from './world.ts';

/**
 * - open: forwards everything
 * - refuse: does not listen, and resets existing connections
 * - freeze: accepts connections, but forwards no bytes in either direction
 * - hold-responses: forwards requests, but no responses
 */
export type ProxyMode = 'open' | 'refuse' | 'freeze' | 'hold-responses';

interface Pipe {
  held: boolean;
  full: boolean;
  from: Socket;
}

interface Pair {
  client: Socket;
  store: Socket;
  requests: Pipe;
  responses: Pipe;
  dropped?: string;
  onDropped(): void;
}

/** Longer than any statement that the services send, including its settings. */
const HEAD_BYTES_MAX = 64 * 1024;
const CHUNKED_END = '0\r\n\r\n';

/** Converts a chunk to text for matching. For an HTTP request, returns only the decoded request line. */
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

/** @param shouldForward called with each chunk; returns false to drop the chunk */
function pump(pipe: Pipe, to: Socket, shouldForward: (chunk: Buffer) => boolean): void {
  pipe.from.on('data', (chunk) => {
    if (!shouldForward(chunk)) return;
    pipe.full = !to.write(chunk);
    if (pipe.full) flow(pipe);
  });
  to.on('drain', () => {
    pipe.full = false;
    flow(pipe);
  });
  pipe.from.on('end', () => to.end());
}

class StoreProxy {
  readonly port: number;
  readonly #targetPort: () => number;
  readonly #pairs = new Set<Pair>();
  readonly #watches = new Set<{ match: RegExp; resolve: () => void; dropsResponse: boolean }>();
  #mode: ProxyMode = 'open';
  #server: Server | null = null;

  constructor(port: number, targetPort: () => number) {
    this.port = port;
    this.#targetPort = targetPort;
  }

  async #listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
  }

  #accept(client: Socket): void {
    const store = connect({ port: this.#targetPort(), host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    client.setNoDelay(true);
    const pipe = (from: Socket): Pipe => ({ from, held: false, full: false });
    const pair: Pair = { client, store, requests: pipe(client), responses: pipe(store), onDropped: () => {} };
    this.#pairs.add(pair);
    const end = (socket: Socket, other: Socket) =>
      socket
        .on('error', () => {})
        .on('close', () => {
          this.#pairs.delete(pair);
          other.destroy();
        });
    end(client, store);
    end(store, client);
    pump(pair.requests, store, (chunk) => {
      this.#inspect(pair, chunk);
      return true;
    });
    pump(pair.responses, client, (chunk) => {
      if (pair.dropped === undefined) return true;
      const wasComplete = isCompleteResponse(pair.dropped);
      pair.dropped += chunk.toString('latin1');
      if (isCompleteResponse(pair.dropped)) client.resetAndDestroy();
      if (isCompleteResponse(pair.dropped) && !wasComplete) pair.onDropped();
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
      if (watch.dropsResponse) Object.assign(pair, { dropped: '', onDropped: watch.resolve });
      else setImmediate(watch.resolve);
    }
  }

  #hold(pair: Pair): void {
    pair.requests.held = this.#mode === 'freeze';
    pair.responses.held = this.#mode !== 'open';
    flow(pair.requests);
    flow(pair.responses);
  }

  async set(mode: ProxyMode): Promise<void> {
    this.#mode = mode;
    if (mode === 'refuse') {
      for (const { client, store } of this.#pairs) {
        client.resetAndDestroy();
        store.resetAndDestroy();
      }
      const server = this.#server;
      this.#server = null;
      if (server !== null) await new Promise((done) => server.close(done));
      return;
    }
    for (const pair of this.#pairs) this.#hold(pair);
    if (this.#server === null) await this.#listen();
  }

  #watch(match: RegExp, dropsResponse: boolean): Promise<void> {
    return new Promise((resolve) => void this.#watches.add({ match, resolve, dropsResponse }));
  }

  /** Resolves when a matching request has been forwarded to the store. See `textOf`. */
  waitForRequest(match: RegExp): Promise<void> {
    return this.#watch(match, false);
  }

  // Forwards the next matching HTTP request, drops the whole response and resets the connection. Resolves when the
  // response has been dropped.
  dropResponse(match: RegExp): Promise<void> {
    return this.#watch(match, true);
  }

  async close(): Promise<void> {
    await this.set('refuse');
  }
}

/** @param port a reserved port @param targetPort returns the store's port; called for each connection */
export async function startStoreProxy(port: number, targetPort: () => number): Promise<StoreProxy> {
  const proxy = new StoreProxy(port, targetPort);
  await proxy.set('open');
  return proxy;
}

const STORES = ['kafka', 'redis', 'clickhouse', 'registry'] as const;
export type Store = (typeof STORES)[number];

export interface StoreProxies extends Readonly<Record<Store, StoreProxy>> {
  openAll(): Promise<void>;
  close(): Promise<void>;
}

/** @param portOf returns a store's port; called for each connection, so that stores may start later */
export async function startProxies(pool: PortPool, portOf: (store: Store) => number): Promise<StoreProxies> {
  const opened = await Promise.all(
    STORES.map(async (store) => [store, await startStoreProxy(pool.take(), () => portOf(store))] as const),
  );
  const onAll = async (action: (proxy: StoreProxy) => Promise<void>) =>
    void (await Promise.all(opened.map(([, proxy]) => action(proxy))));
  return {
    ...(Object.fromEntries(opened) as Record<Store, StoreProxy>),
    openAll: () => onAll((proxy) => proxy.set('open')),
    close: () => onAll((proxy) => proxy.close()),
  };
}
