import { connect } from 'node:net';

export const MESSAGES_PATH = '/v1/audience/messages';

export function toRequest(path: string, headers: Readonly<Record<string, string>>, body: Buffer): Buffer {
  const fields = { host: '127.0.0.1', ...headers, 'content-type': 'application/json', 'content-length': body.length };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), body]);
}

export interface LoadClient {
  send(request: Buffer): Promise<number>;
  close(): void;
}

/** Opens a keep-alive connection to loopback. The client parses only enough to find the end of a response. */
export async function openLoadClient(port: number): Promise<LoadClient> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  let response = '';
  let waiting: { resolve: (status: number) => void; reject: (error: Error) => void } | null = null;
  socket.on('error', (error) => waiting?.reject(error));
  socket.on('close', () => waiting?.reject(new Error('the server closed the connection')));
  socket.on('data', (chunk) => {
    response += chunk.toString('latin1');
    if (!isComplete(response)) return;
    const status = Number(response.slice(9, 12));
    response = '';
    waiting?.resolve(status);
  });
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(request);
      }),
    close: () => socket.destroy(),
  };
}

/** Only one request is in flight, so all received bytes belong to its response. */
function isComplete(response: string): boolean {
  const head = response.indexOf('\r\n\r\n');
  if (head === -1) return false;
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(response.slice(0, head + 2)) ?? [];
  return length === undefined ? response.endsWith('0\r\n\r\n') : response.length >= head + 4 + Number(length);
}

export async function driveClients(port: number, connections: number, drive: (client: LoadClient) => Promise<void>) {
  const clients = await Promise.all(Array.from({ length: connections }, () => openLoadClient(port)));
  try {
    await Promise.all(clients.map(drive));
  } finally {
    for (const client of clients) client.close();
  }
}

/** Sends all requests over several connections and waits for the responses. @throws Error on an unexpected status */
export async function sendAll(
  port: number,
  requests: readonly Buffer[],
  { connections, expected }: { connections: number; expected: number },
): Promise<void> {
  let next = 0;
  await driveClients(port, connections, async (client) => {
    for (let request = requests[next++]; request !== undefined; request = requests[next++]) {
      const status = await client.send(request);
      if (status !== expected) throw new Error(`a request failed with status ${status}`);
    }
  });
}
