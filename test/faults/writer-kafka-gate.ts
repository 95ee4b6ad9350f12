import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Callbacks for commits. A returned promise delays the commit and everything after it on the connection. */
export interface CommitWatch {
  /** Which commits to watch: transaction commits, or offset commits when absent. */
  readonly of?: 'transactions';
  /** A commit has reached the gate but not the broker. `text` contains the offset metadata. */
  arrived?(text: string): Promise<void> | void;
  /** The broker has responded to a commit, and the process does not know it yet. */
  answered?(): Promise<void> | void;
}

/** A broker proxy for one process. It can delay offset and transaction commits. */
export interface KafkaGate {
  /** The addresses that the process uses instead of the broker addresses. */
  readonly brokers: string[];
  watch: CommitWatch;
  /** Resolves when the process has ended and every commit that it sent has a response or can no longer get one. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

const METADATA = 3;
const OFFSET_COMMIT = 8;
const FIND_COORDINATOR = 10;
const END_TRANSACTION = 26;
const SIZE_BYTES = 4;

export async function openKafkaGate(brokers: readonly string[]): Promise<KafkaGate> {
  const lanes = brokers.map((broker) => {
    const cut = broker.lastIndexOf(':');
    return { host: broker.slice(0, cut), port: Number(broker.slice(cut + 1)), gatePort: 0, server: createServer() };
  });
  const sockets = new Set<Socket>();
  const passages = new Set<Promise<void>>();
  const gate: KafkaGate = {
    brokers: [],
    watch: {},
    settled: async () => void (await Promise.all(passages)),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all(lanes.map(({ server }) => closeServer(server)));
    },
  };
  for (const lane of lanes) {
    lane.gatePort = await listen(lane.server);
    gate.brokers.push(`127.0.0.1:${lane.gatePort}`);
  }
  const rewrite = (frame: Buffer) => {
    for (const { host, port, gatePort } of lanes) replacePort(frame, { host, port, gatePort });
  };
  for (const { server, host, port } of lanes)
    server.on('connection', (client) => {
      const upstream = connect({ host, port });
      for (const socket of [client, upstream]) {
        sockets.add(socket);
        socket.setNoDelay(true);
        socket.on('error', () => {});
        socket.once('close', () => sockets.delete(socket));
      }
      const passage = pass({ client, upstream, rewrite, gate });
      passages.add(passage);
      void passage.then(() => passages.delete(passage));
    });
  return gate;
}

interface Connection {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly gate: KafkaGate;
  rewrite(frame: Buffer): void;
}

/** A response that takes longer is a fetch that waits for records. */
const RESPONSE_MAX_MS = 2_000;

/** Passes both directions of one connection. A held request is sent when the hold ends, even if the process is dead. */
async function pass({ client, upstream, rewrite, gate }: Connection): Promise<void> {
  const requested: number[] = [];
  let onResponse = () => {};
  const isCommit = (api: number | undefined) =>
    api === (gate.watch.of === 'transactions' ? END_TRANSACTION : OFFSET_COMMIT);
  const forward = async () => {
    for await (const frame of framesOf(client)) {
      const api = frame.readInt16BE(SIZE_BYTES);
      if (isCommit(api)) await gate.watch.arrived?.(frame.toString('latin1'));
      requested.push(api);
      upstream.write(frame);
    }
  };
  const backward = async () => {
    for await (const frame of framesOf(upstream)) {
      const api = requested[0];
      if (isCommit(api)) await gate.watch.answered?.();
      if (api === METADATA || api === FIND_COORDINATOR) rewrite(frame);
      requested.shift();
      onResponse();
      if (!client.destroyed) client.write(frame);
    }
  };
  const forwardDone = forward().catch(() => {});
  const backwardDone = backward()
    .catch(() => {})
    .finally(() => client.destroy());
  await forwardDone;
  // If the connection ends first, the broker may not read the request.
  const answered = new Promise<void>((resolve) => {
    onResponse = () => (requested.some(isCommit) ? undefined : resolve());
    onResponse();
  });
  await Promise.race([answered, backwardDone, delay(RESPONSE_MAX_MS)]);
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

/** A broker sends its address as a host followed by a 4-byte port. Replaces the port with the gate's port. */
function replacePort(frame: Buffer, { host, port, gatePort }: { host: string; port: number; gatePort: number }): void {
  const name = Buffer.from(host);
  for (let at = frame.indexOf(name); at >= 0; at = frame.indexOf(name, at + 1)) {
    const end = at + name.length;
    if (end + 4 <= frame.length && frame.readInt32BE(end) === port) frame.writeInt32BE(gatePort, end);
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
