import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Callbacks for commits. A pending promise delays the commit and everything that follows on the connection. */
export interface CommitWatch {
  /** Watches transaction commits instead of offset commits. */
  readonly of?: 'transactions';
  /** Called with a commit request, including the offset metadata, before the request is forwarded. */
  onRequest?(text: string): Promise<void> | void;
  /** Called when the broker has responded to a commit, before the response is forwarded. */
  onResponse?(): Promise<void> | void;
}

export interface KafkaProxy {
  readonly brokers: string[];
  watch: CommitWatch;
  settled(): Promise<void>;
  close(): Promise<void>;
}

const METADATA = 3;
const OFFSET_COMMIT = 8;
const FIND_COORDINATOR = 10;
const END_TRANSACTION = 26;
const SIZE_BYTES = 4;

export async function openKafkaProxy(brokers: readonly string[]): Promise<KafkaProxy> {
  const listeners = brokers.map((broker) => {
    const end = broker.lastIndexOf(':');
    return { host: broker.slice(0, end), port: Number(broker.slice(end + 1)), proxyPort: 0, server: createServer() };
  });
  const sockets = new Set<Socket>();
  const pending = new Set<Promise<void>>();
  const proxy: KafkaProxy = {
    brokers: [],
    watch: {},
    settled: async () => void (await Promise.all(pending)),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all(listeners.map(({ server }) => closeServer(server)));
    },
  };
  for (const listener of listeners) {
    listener.proxyPort = await listen(listener.server);
    proxy.brokers.push(`127.0.0.1:${listener.proxyPort}`);
  }
  const rewrite = (frame: Buffer) => {
    for (const { host, port, proxyPort } of listeners) patchPort(frame, { host, port, proxyPort });
  };
  for (const { server, host, port } of listeners)
    server.on('connection', (client) => {
      const upstream = connect({ host, port });
      for (const socket of [client, upstream]) {
        sockets.add(socket);
        socket.setNoDelay(true);
        socket.on('error', () => {});
        socket.once('close', () => sockets.delete(socket));
      }
      const forwarding = forwardConnection({ client, upstream, rewrite, proxy });
      pending.add(forwarding);
      void forwarding.then(() => pending.delete(forwarding));
    });
  return proxy;
}

interface Connection {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly proxy: KafkaProxy;
  rewrite(frame: Buffer): void;
}

/** Only fetch requests that wait for records take longer. */
const RESPONSE_MAX_MS = 2_000;

/** Forwards both directions of a connection. A delayed request is forwarded even if the process has exited. */
async function forwardConnection({ client, upstream, rewrite, proxy }: Connection): Promise<void> {
  const requested: number[] = [];
  let checkDone = () => {};
  const isCommit = (api: number | undefined) =>
    api === (proxy.watch.of === 'transactions' ? END_TRANSACTION : OFFSET_COMMIT);
  const forward = async () => {
    for await (const frame of framesOf(client)) {
      const api = frame.readInt16BE(SIZE_BYTES);
      if (isCommit(api)) await proxy.watch.onRequest?.(frame.toString('latin1'));
      requested.push(api);
      upstream.write(frame);
    }
  };
  const backward = async () => {
    for await (const frame of framesOf(upstream)) {
      const api = requested[0];
      if (isCommit(api)) await proxy.watch.onResponse?.();
      if (api === METADATA || api === FIND_COORDINATOR) rewrite(frame);
      requested.shift();
      checkDone();
      if (!client.destroyed) client.write(frame);
    }
  };
  const forwardDone = forward().catch(() => {});
  const backwardDone = backward()
    .catch(() => {})
    .finally(() => client.destroy());
  await forwardDone;
  // Closing the connection earlier could prevent the broker from reading the request.
  const haveCommitsCompleted = new Promise<void>((resolve) => {
    checkDone = () => (requested.some(isCommit) ? undefined : resolve());
    checkDone();
  });
  await Promise.race([haveCommitsCompleted, backwardDone, delay(RESPONSE_MAX_MS)]);
  upstream.destroy();
  await backwardDone;
}

async function* framesOf(socket: Socket): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of socket) {
    rest = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
    while (rest.length >= SIZE_BYTES) {
      const end = SIZE_BYTES + rest.readInt32BE(0);
      if (rest.length < end) break;
      yield rest.subarray(0, end);
      rest = rest.subarray(end);
    }
  }
}

/** Replaces a broker's port with the proxy's port. In a response, the port is the 4 bytes after the host. */
function patchPort(frame: Buffer, { host, port, proxyPort }: { host: string; port: number; proxyPort: number }): void {
  const name = Buffer.from(host);
  for (let start = frame.indexOf(name); start >= 0; start = frame.indexOf(name, start + 1)) {
    const end = start + name.length;
    if (end + 4 <= frame.length && frame.readInt32BE(end) === port) frame.writeInt32BE(proxyPort, end);
  }
}

export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
