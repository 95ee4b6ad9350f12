import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * - open: everything passes
 * - hangs: connections are accepted, and bytes are dropped in both directions
 * - mute: bytes from clients pass, and bytes from the store are dropped
 * - cut: existing and new connections are closed
 */
export type WireMode = 'open' | 'hangs' | 'mute' | 'cut';

/** A TCP proxy between a process and a store. */
export interface Wire {
  /** Port for the process. */
  readonly port: number;
  mode: WireMode;
  /** Becomes mute when a client sends this text; earlier requests are still answered. */
  muteAt(text: string): void;
  close(): Promise<void>;
}

/** Finds a text in a stream, even across chunks. */
function createTracker() {
  let passed = '';
  return (bytes: Buffer, text: string): boolean => {
    passed = passed.slice(-text.length) + bytes.toString('latin1');
    return passed.includes(text);
  };
}

/** @param target port on this machine */
export async function openWire(target: number): Promise<Wire> {
  const sockets = new Set<Socket>();
  let mode: WireMode = 'open';
  let awaited: string | null = null;
  const server = createServer((near) => {
    if (mode === 'cut') return near.destroy();
    const far = connect(target, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        near.destroy();
        far.destroy();
        sockets.delete(socket);
      });
    }
    const contains = createTracker();
    near.on('data', (bytes) => {
      if (awaited !== null && contains(bytes, awaited)) [mode, awaited] = ['mute', null];
      if (mode !== 'hangs') far.write(bytes);
    });
    far.on('data', (bytes) => mode === 'open' && near.write(bytes));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get mode() {
      return mode;
    },
    set mode(next) {
      // Connections that lost bytes cannot continue.
      if (next === 'open' || next === 'cut') cutAll();
      mode = next;
    },
    muteAt(text) {
      awaited = text;
    },
    close: async () => {
      cutAll();
      server.close();
      await once(server, 'close');
    },
  };
}

const PATIENCE_MS = 60_000;
const PAUSE_MS = 25;

/** Requests with one key, sent in sequence until one is refused. */
export interface RefusedLoad {
  /** Time of the last 200 by `performance.now`; 0 before the first. */
  takenAt(): number;
  /** Resolves on a refusal. Rejects on any other status, or without a refusal within a minute. */
  readonly refused: Promise<void>;
}

/**
 * Sends at most 40 requests a second, so that a key stays cached while it is revoked.
 * @param send sends a request and returns its status @param refusal status of a refusal
 */
export function sendUntilRefused(send: () => Promise<number>, refusal: number): RefusedLoad {
  let takenAt = 0;
  const statuses = new Set<number>();
  const run = async () => {
    const end = performance.now() + PATIENCE_MS;
    do {
      const status = await send();
      statuses.add(status);
      if (status === 200) takenAt = performance.now();
      if (status === refusal) break;
      await delay(PAUSE_MS);
    } while (performance.now() < end);
    const received = [...statuses].join(', ');
    if (received !== `200, ${refusal}`) throw new Error(`expected 200 until ${refusal}, received ${received}`);
  };
  return { takenAt: () => takenAt, refused: run() };
}
