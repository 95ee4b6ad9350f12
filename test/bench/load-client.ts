import { connect, type Socket } from 'node:net';

/** A connection that sends one request at a time and waits for its answer. */
export interface LoadClient {
  /** Sends a whole HTTP/1.1 request. @returns the answer's status */
  send(request: Buffer): Promise<number>;
  close(): void;
}

/** Opens a keep-alive connection to loopback. It parses only the two headers that say where an answer ends. */
export async function openLoadClient(port: number): Promise<LoadClient> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  let answer = '';
  let waiting: { resolve: (status: number) => void; reject: (error: Error) => void } | null = null;
  socket.on('error', (error) => waiting?.reject(error));
  socket.on('close', () => waiting?.reject(new Error('the server closed the connection')));
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1');
    if (!isWhole(answer)) return;
    const status = Number(answer.slice(9, 12));
    answer = '';
    waiting?.resolve(status);
  });
  return {
    send: (request) =>
      send(socket, request, (callbacks) => {
        waiting = callbacks;
      }),
    close: () => socket.destroy(),
  };
}

type Callbacks = { resolve: (status: number) => void; reject: (error: Error) => void };

function send(socket: Socket, request: Buffer, wait: (callbacks: Callbacks) => void): Promise<number> {
  return new Promise((resolve, reject) => {
    wait({ resolve, reject });
    socket.write(request);
  });
}

/** Only one request is in flight, so an answer is complete when the received bytes end where it ends. */
function isWhole(answer: string): boolean {
  const head = answer.indexOf('\r\n\r\n');
  if (head === -1) return false;
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(answer.slice(0, head + 2)) ?? [];
  return length === undefined ? answer.endsWith('0\r\n\r\n') : answer.length >= head + 4 + Number(length);
}
