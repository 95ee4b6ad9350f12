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
   * Batches are due at this rate. A message's own time is the moment at which it was due, even if no connection was
   * free. Absent: each connection posts its next batch as soon as it has an answer.
   */
  messagesPerSecond?: number;
}

export interface Posted {
  /** When the first batch was due, by the wall clock. */
  startMs: number;
  seconds: number;
}

/** Enough to keep a server busy. The gateway's figure uses as many for batches of 20. */
const CONNECTIONS_BUSY = 32;
/**
 * With a rate, each connection is used every half second. So a due batch rarely waits for one, and none is idle long
 * enough for the server to close it.
 */
const CONNECTION_TURN_S = 0.5;
const CONNECTIONS_MIN = 4;

interface Due {
  request: Buffer;
  atMs: number;
}

/** Prepares batches ahead, so that during the measurement the processor works for the servers alone. */
function prepare(posting: Posting): () => Due {
  const now = new Date();
  const requests = Array.from({ length: batchesOf(posting) }, (_, n) => createRequest(posting, n, now));
  let next = 0;
  return () => ({ request: requests[next++] as Buffer, atMs: 0 });
}

/** Creates each batch at the moment it is due, which is also the time of its messages. */
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
