import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const waitForEventOrClose = (socket: Socket, event: string) =>
  Promise.race([once(socket, event), once(socket, 'close')]).catch(() => {});

export async function openSockets(url: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const opened = Array.from({ length: count }, async () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    await waitForEventOrClose(socket, 'connect');
    return socket;
  });
  return Promise.all(opened);
}

/** Writes as fast as possible until the connection is closed or `untilMs` is reached. @returns bytes written */
export async function writeSlices(socket: Socket, slices: Iterable<string>, untilMs: number): Promise<number> {
  let written = 0;
  for (const slice of slices) {
    if (socket.destroyed || performance.now() > untilMs) break;
    written += slice.length;
    const timeoutMs = Math.max(0, untilMs - performance.now());
    if (!socket.write(slice)) await Promise.race([waitForEventOrClose(socket, 'drain'), delay(timeoutMs)]);
  }
  return written;
}
