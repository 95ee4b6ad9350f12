import { setTimeout as delay } from 'node:timers/promises';
import { type LoadClient, openLoadClient } from './load-client.ts';
import { createBody } from './messages.ts';

/** Messages to post, each once. */
export interface Posting {
  port: number;
  path: string;
  headers: Record<string, string>;
  messages: number;
  batchSize: number;
  /**
   * Batches are due at this rate, and a message's own time is the moment it was due, whether a connection was free or
   * not. Absent: each connection posts its next batch when it has the answer to the last.
   */
  messagesPerSecond?: number;
}

export interface Posted {
  /** When the first batch was due, by the clock of the machine. */
  startMs: number;
  seconds: number;
}

/** Keeps a server busy; the same as for batches of 20 in the figure of the gateway. */
const CONNECTIONS_BUSY = 32;
/**
 * At a rate a connection is free again after half a second, so that hardly a batch that is due must wait for one, and
 * none is idle so long that the server closes it.
 */
const CONNECTION_TURN_S = 0.5;
const CONNECTIONS_MIN = 4;

interface Due {
  request: Buffer;
  atMs: number;
}

/** Batches made ahead, so that the processor works for the servers alone while they are measured. */
function prepare(posting: Posting): () => Due {
  const now = new Date();
  const requests = Array.from({ length: batchesOf(posting) }, (_, n) => createRequest(posting, n, now));
  let next = 0;
  return () => ({ request: requests[next++] as Buffer, atMs: 0 });
}

/** Batches that are made at the moment they are due; it is also the time of their messages. */
function schedule(posting: Posting, startMs: number): () => Due {
  const { messagesPerSecond = 1, batchSize } = posting;
  let next = 0;
  return () => {
    const n = next++;
    const atMs = startMs + (n * batchSize * 1_000) / messagesPerSecond;
    return { request: createRequest(posting, n, new Date(atMs)), atMs };
  };
}

const batchesOf = ({ messages, batchSize }: Posting) => Math.ceil(messages / batchSize);

function createRequest({ path, headers, batchSize }: Posting, n: number, at: Date): Buffer {
  const body = createBody(n * batchSize, batchSize, at);
  const fields = Object.entries({
    host: '127.0.0.1',
    ...headers,
    'content-type': 'application/json',
    'content-length': body.length,
  });
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines}\r\n`), body]);
}

async function run(posting: Posting): Promise<Posted> {
  const { messagesPerSecond, batchSize } = posting;
  const isBusy = messagesPerSecond === undefined;
  const due = Math.ceil(((messagesPerSecond ?? 0) / batchSize) * CONNECTION_TURN_S);
  const count = isBusy ? CONNECTIONS_BUSY : Math.max(CONNECTIONS_MIN, due);
  const clients = await Promise.all(Array.from({ length: count }, () => openLoadClient(posting.port)));
  const startMs = Date.now();
  const next = isBusy ? prepare(posting) : schedule(posting, startMs);
  const start = performance.now();
  let left = batchesOf(posting);
  const post = async (client: LoadClient) => {
    while (left > 0) {
      left -= 1;
      const { request, atMs } = next();
      if (atMs > Date.now()) await delay(atMs - Date.now());
      const status = await client.send(request);
      if (status !== 200) throw new Error(`a batch was answered with ${status}`);
    }
  };
  await Promise.all(clients.map(post));
  for (const client of clients) client.close();
  return { startMs, seconds: (performance.now() - start) / 1000 };
}

process.send?.(await run(JSON.parse(process.argv[2] ?? '{}') as Posting));
process.disconnect?.();
