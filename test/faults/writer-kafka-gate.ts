import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Callbacks for commits. A returned promise delays the commit and everything after it on the connection. */
export interface CommitWatch {
  /** Which commits to watch: of transactions, or of offsets when absent. */
  readonly of?: 'transactions';
  /** A commit has reached the gate but not the broker. `text` contains the metadata of the offsets. */
  arrived?(text: string): Promise<void> | void;
  /** The broker has answered a commit, and the process does not know it yet. */
  answered?(): Promise<void> | void;
}

/** A proxy of the brokers for one process. It can delay commits of offsets or transactions. */
export interface KafkaGate {
  /** The addresses that the process uses instead of the brokers'. */
  readonly brokers: string[];
  watch: CommitWatch;
  /** Resolves when the process has ended and every commit that it sent is answered or can no longer be. */
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
    return { host: broker.slice(0, cut), port: Number(broker.slice(cut + 1)), own: 0, server: createServer() };
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
    lane.own = await listen(lane.server);
    gate.brokers.push(`127.0.0.1:${lane.own}`);
  }
  const rewrite = (frame: Buffer) => {
    for (const { host, port, own } of lanes) replacePort(frame, { host, port, own });
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

/** An answer that takes longer is a fetch that waits for records. */
const ANSWER_MAX_MS = 2_000;

/** Passes both directions of one connection. A held request is sent when the hold ends, even if the process is dead. */
async function pass({ client, upstream, rewrite, gate }: Connection): Promise<void> {
  const requested: number[] = [];
  let onAnswer = () => {};
  const isCommit = (api: number | undefined) =>
    api === (gate.watch.of === 'transactions' ? END_TRANSACTION : OFFSET_COMMIT);
  const there = async () => {
    for await (const frame of framesOf(client)) {
      const api = frame.readInt16BE(SIZE_BYTES);
      if (isCommit(api)) await gate.watch.arrived?.(frame.toString('latin1'));
      requested.push(api);
      upstream.write(frame);
    }
  };
  const back = async () => {
    for await (const frame of framesOf(upstream)) {
      const api = requested[0];
      if (isCommit(api)) await gate.watch.answered?.();
      if (api === METADATA || api === FIND_COORDINATOR) rewrite(frame);
      requested.shift();
      onAnswer();
      if (!client.destroyed) client.write(frame);
    }
  };
  const thereDone = there().catch(() => {});
  const backDone = back()
    .catch(() => {})
    .finally(() => client.destroy());
  await thereDone;
  // If a broker sees the end of the connection first, it may leave the request unread.
  const answered = new Promise<void>((resolve) => {
    onAnswer = () => (requested.some(isCommit) ? undefined : resolve());
    onAnswer();
  });
  await Promise.race([answered, backDone, delay(ANSWER_MAX_MS)]);
  upstream.destroy();
  await backDone;
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

/** A broker states its address as a host followed by a port of four bytes. This replaces the port by the gate's. */
function replacePort(frame: Buffer, { host, port, own }: { host: string; port: number; own: number }): void {
  const name = Buffer.from(host);
  for (let at = frame.indexOf(name); at >= 0; at = frame.indexOf(name, at + 1)) {
    const end = at + name.length;
    if (end + 4 <= frame.length && frame.readInt32BE(end) === port) frame.writeInt32BE(own, end);
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
