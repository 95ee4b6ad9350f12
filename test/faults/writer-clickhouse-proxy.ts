import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { closeServer, listen } from './writer-kafka-proxy.ts';

/** Callbacks for inserts. A pending promise delays the insert or the response. */
export interface InsertWatch {
  /** Called with the block's token when the proxy has received the whole insert, before the insert is forwarded. */
  onRequest?(token: string): Promise<void> | void;
  /** Called when the whole insert has been forwarded. Return true to break the connection to ClickHouse. */
  onSent?(): Promise<boolean> | boolean | undefined;
  /** Called with ClickHouse's error code; 0 for success. Return true to break the connection instead of responding. */
  onResponse?(code: number): Promise<boolean> | boolean | undefined;
}

export interface ClickHouseProxy {
  readonly url: string;
  watch: InsertWatch;
  insertSettings: Readonly<Record<string, string>>;
  down: boolean;
  /** Number of received inserts without a response. */
  readonly inFlight: number;
  settled(): Promise<void>;
  close(): Promise<void>;
}

export async function openClickHouseProxy(target: string): Promise<ClickHouseProxy> {
  const sockets = new Set<Socket>();
  const pending = new Set<Promise<unknown>>();
  const server = createServer((incoming, outgoing) => {
    const isInsert = tokenOf(incoming) !== null;
    if (isInsert) inFlight++;
    const forwarding = forward({ incoming, outgoing }, target, proxy).catch(() => outgoing.destroy());
    pending.add(forwarding);
    void forwarding.then(() => {
      pending.delete(forwarding);
      if (isInsert) inFlight--;
    });
  });
  const port = await listen(server);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    if (isDown) socket.destroy();
  });
  let isDown = false;
  let inFlight = 0;
  const proxy: ClickHouseProxy = {
    url: `http://127.0.0.1:${port}`,
    watch: {},
    insertSettings: {},
    get inFlight() {
      return inFlight;
    },
    get down() {
      return isDown;
    },
    set down(value) {
      isDown = value;
      if (value) for (const socket of sockets) socket.destroy();
    },
    settled: async () => void (await Promise.all(pending)),
    close: async () => {
      const closed = closeServer(server);
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  return proxy;
}

/** Returns an insert's block token; null for other requests. */
function tokenOf({ url }: IncomingMessage): string | null {
  return new URL(url ?? '/', 'http://proxy').searchParams.get('insert_deduplication_token');
}

interface Exchange {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
}

async function forward({ incoming, outgoing }: Exchange, target: string, proxy: ClickHouseProxy): Promise<void> {
  const body = await readAll(incoming);
  const token = tokenOf(incoming);
  const watch = token !== null ? proxy.watch : {};
  await watch.onRequest?.(token ?? '');
  const settings = new URLSearchParams(token === null ? {} : proxy.insertSettings).toString();
  const path = (incoming.url ?? '/') + (settings === '' ? '' : `&${settings}`);
  const response = await sendTo(new URL(target), { incoming, path, body, onSent: watch.onSent });
  if (await watch.onResponse?.(Number(response.headers['x-clickhouse-exception-code'] ?? 0))) {
    outgoing.destroy();
    return;
  }
  outgoing.writeHead(response.status, response.headers);
  outgoing.end(response.body);
}

interface ForwardedRequest {
  incoming: IncomingMessage;
  path: string;
  body: Buffer;
  onSent: InsertWatch['onSent'] | undefined;
}

/** Sends a request to ClickHouse and reads the whole response, so that the proxy can delay the response. */
function sendTo(target: URL, { incoming, path, body, onSent }: ForwardedRequest) {
  const { 'transfer-encoding': _, connection: __, ...headersToForward } = incoming.headers;
  const headers = { ...headersToForward, 'content-length': String(body.length) };
  return new Promise<{ status: number; headers: Record<string, string>; body: Buffer }>((resolve, reject) => {
    const { hostname, port } = target;
    const outgoing = request({ hostname, port, method: incoming.method, path, headers, agent: false });
    outgoing.on('error', reject);
    outgoing.on('response', (response) => {
      const { 'transfer-encoding': _chunked, connection: _kept, ...rest } = response.headers;
      const status = response.statusCode ?? 502;
      readAll(response).then((responseBody) => {
        resolve({ status, headers: rest as Record<string, string>, body: responseBody });
      }, reject);
    });
    outgoing.end(body, async () => {
      if (await onSent?.()) outgoing.destroy(new Error('connection broken by the proxy'));
    });
  });
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
