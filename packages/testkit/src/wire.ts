import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * - open: everything passes
 * - hangs: connections are taken, and what comes is swallowed in both directions
 * - mute: what clients send reaches the store, and what the store says is swallowed
 * - cut: connections are ended, those that stand and those that come
 */
export type WireMode = 'open' | 'hangs' | 'mute' | 'cut';

/** A wire between a process and a store on this machine. */
export interface Wire {
  /** Where the process connects. */
  readonly port: number;
  mode: WireMode;
  /** Becomes mute when a client sends these words: what it asked before is still answered. */
  muteAt(words: string): void;
  close(): Promise<void>;
}

/** Tells whether words have passed, be it in two pieces. */
function createTracker() {
  let passed = '';
  return (bytes: Buffer, words: string): boolean => {
    passed = passed.slice(-words.length) + bytes.toString('latin1');
    return passed.includes(words);
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
    const sees = createTracker();
    near.on('data', (bytes) => {
      if (awaited !== null && sees(bytes, awaited)) [mode, awaited] = ['mute', null];
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
      // What was swallowed cannot be made good: a connection that hung or was mute ends with that.
      if (next === 'open' || next === 'cut') cutAll();
      mode = next;
    },
    muteAt(words) {
      awaited = words;
    },
    close: async () => {
      cutAll();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Longest time that is sent what should be refused. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 25;

/** Requests with one key, sent one after the other until one is refused. */
export interface RefusedLoad {
  /** When a request with it was last answered 200, by `performance.now`; 0 before the first. */
  takenAt(): number;
  /** Resolves when one is refused. Rejects when there was any other answer, or no refusal within a minute. */
  readonly refused: Promise<void>;
}

/**
 * Sends requests at an even pace of at most 40 a second, so that a key stays cached while it is revoked.
 * @param send gives the status of one request
 * @param refusal the status of a refused one
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
    const seen = [...statuses].join(', ');
    if (seen !== `200, ${refusal}`) throw new Error(`answers were ${seen}, not 200 until the refusal by ${refusal}`);
  };
  return { takenAt: () => takenAt, refused: run() };
}
