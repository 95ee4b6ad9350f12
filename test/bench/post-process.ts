/** A process that posts messages, each once, and sends its parent when it began and how long it took. */
import { setTimeout as delay } from 'node:timers/promises';
import { driveClients, toRequest } from './load-client.ts';
import { createBody } from './messages.ts';

export interface Posting {
  port: number;
  path: string;
  headers: Record<string, string>;
  messages: number;
  batchSize: number;
  /**
   * Batches are due at this rate, and the time of a message is the moment at which it was due. Absent: each connection
   * posts its next batch as soon as it has an answer.
   */
  messagesPerSecond?: number;
}

export interface Posted {
  /** When the first batch was due, by the wall clock. */
  startMs: number;
  seconds: number;
}

const CONNECTIONS_BUSY = 32;
/** With a rate, a due batch rarely waits for a connection, and none is idle long enough for the server to close it. */
const CONNECTION_TURN_S = 0.5;
const CONNECTIONS_MIN = 4;

async function run({ port, path, headers, messages, batchSize, messagesPerSecond }: Posting): Promise<Posted> {
  const batches = Math.ceil(messages / batchSize);
  const createRequest = (n: number, time: Date) => toRequest(path, headers, createBody(n * batchSize, batchSize, time));
  // Without a rate, batches are prepared, so that during the measurement the processor works for the servers alone.
  const now = new Date();
  const prepared =
    messagesPerSecond === undefined ? Array.from({ length: batches }, (_, n) => createRequest(n, now)) : null;
  const perTurn = Math.ceil(((messagesPerSecond ?? 0) / batchSize) * CONNECTION_TURN_S);
  const connections = prepared === null ? Math.max(CONNECTIONS_MIN, perTurn) : CONNECTIONS_BUSY;
  const timestampMs = Date.now();
  const startMs = performance.now();
  let next = 0;
  await driveClients(port, connections, async (client) => {
    while (next < batches) {
      const n = next++;
      const sinceMs = (n * batchSize * 1_000) / (messagesPerSecond ?? 1);
      const request = prepared?.[n] ?? createRequest(n, new Date(timestampMs + sinceMs));
      const early = prepared === null ? startMs + sinceMs - performance.now() : 0;
      if (early > 0) await delay(early);
      const status = await client.send(request);
      if (status !== 200) throw new Error(`a batch was answered with ${status}`);
    }
  });
  return { startMs: timestampMs, seconds: (performance.now() - startMs) / 1000 };
}

process.send?.(await run(JSON.parse(process.argv[2] ?? '{}') as Posting));
process.disconnect?.();
