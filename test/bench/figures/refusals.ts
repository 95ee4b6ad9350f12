import { setTimeout as delay } from 'node:timers/promises';
import { createKeyText } from '@playline/access-keys';
import { Redis } from 'ioredis';
import type { Bar, Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { openGateway, type Server } from '../gateway-servers.ts';
import { type LoadClient, openLoadClient } from '../load-client.ts';
import { createBody } from '../messages.ts';
import { quantileOf } from '../quantile.ts';

const BATCH = 20;
/** Messages per second that the key may send. The flood sends ten times as many. */
const ALLOWED_PER_S = 1_000;
const OFFERED_PER_S = 10 * ALLOWED_PER_S;
/** Requests per second with an unknown key, during the flood. */
const STRANGERS_PER_S = 20;
const WINDOW_MS = 10_000;
/** By then, code is compiled and the bucket is empty. */
const WARM_UP_MS = 3_000;
/** Enough that a due request rarely waits for a free connection. */
const CONNECTIONS = 64;
const P99: Bar = { of: 'ours', bound: 'at most', must: 20 };

/** Latency of refusals while the limiter refuses most of a flood: 429 for the flood, 401 and 500 for unknown keys. */
export const refusals: Figure = {
  name: 'refusals',
  async measure(bench) {
    const limits = { RATE_LIMIT_MESSAGES_PER_S: String(ALLOWED_PER_S), RATE_LIMIT_BURST: String(ALLOWED_PER_S) };
    // The gateway limits guesses of keys per address, and here all come from one address. Only the 401 is of interest.
    const gateway = await openGateway(bench, { ...limits, RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '1000000' });
    try {
      await flood(gateway, bench, WARM_UP_MS);
      const known = await flood(gateway, bench, WINDOW_MS);
      const lost = await withoutKeys(bench, () => flood(gateway, bench, WINDOW_MS));
      return [toRefusal(429, known, known), toRefusal(401, known, known), toRefusal(500, lost, known)];
    } finally {
      await gateway.close();
    }
  },
};

/** Latencies in milliseconds by status. */
type Latencies = ReadonlyMap<number, readonly number[]>;

/**
 * While Redis says that it has lost its keys, an unknown key may still be valid. So the gateway answers 500, not 401.
 */
async function withoutKeys<T>(bench: Bench, run: () => Promise<T>): Promise<T> {
  const redis = new Redis(bench.environment.REDIS_URL ?? '');
  const offset = await redis.hget('access:keys:places', '0');
  const complete = await redis.get('access:keys:complete');
  try {
    // An offset behind the end of the log keeps the gateway from restoring the keys.
    await redis.hset('access:keys:places', '0', Number.MAX_SAFE_INTEGER);
    await redis.del('access:keys:complete');
    return await run();
  } finally {
    await redis.hset('access:keys:places', '0', offset ?? 0);
    if (complete !== null) await redis.set('access:keys:complete', complete);
    redis.disconnect();
  }
}

async function flood(gateway: Server, bench: Bench, windowMs: number): Promise<Latencies> {
  const latencies = new Map<number, number[]>();
  const strangers = () => toRequest(createKeyText('svcapik', { kind: 'publishable', environment: 'development' }), 1);
  await Promise.all([
    offer(gateway, { perSecond: OFFERED_PER_S / BATCH, windowMs, latencies }, () => toRequest(bench.accessKey, BATCH)),
    offer(gateway, { perSecond: STRANGERS_PER_S, windowMs, latencies }, strangers),
  ]);
  return latencies;
}

let messages = 0;

function toRequest(key: string, count: number): Buffer {
  const body = createBody(messages, count, new Date());
  messages += count;
  const head = `POST /v1/audience/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-service-publishable-key: ${key}\r\n`;
  return Buffer.concat([
    Buffer.from(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`),
    body,
  ]);
}

interface Offer {
  perSecond: number;
  windowMs: number;
  latencies: Map<number, number[]>;
}

/** Sends at a rate, whether answers come or not. A latency counts from when its request was due. */
async function offer({ port }: Server, { perSecond, windowMs, latencies }: Offer, next: () => Buffer): Promise<void> {
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => openLoadClient(port)));
  const count = Math.ceil((perSecond * windowMs) / 1000);
  const start = performance.now();
  let sent = 0;
  const drive = async (client: LoadClient) => {
    while (sent < count) {
      const dueMs = start + (sent++ * 1000) / perSecond;
      const request = next();
      await delay(Math.max(0, dueMs - performance.now()));
      // A timer may fire a millisecond early.
      const fromMs = Math.min(dueMs, performance.now());
      const status = await client.send(request);
      const found = latencies.get(status) ?? [];
      latencies.set(status, found);
      found.push(performance.now() - fromMs);
    }
  };
  await Promise.all(clients.map(drive));
  for (const client of clients) client.close();
}

/** The latency of a refusal, beside that of accepted requests of the same flood, which wait for the brokers. */
function toRefusal(status: number, refused: Latencies, accepted: Latencies): Row {
  const [ours, theirs] = [refused.get(status) ?? [], accepted.get(200) ?? []];
  return toRow({
    ...{
      figure: 'refusals',
      case: `${status} while 9 of 10 are refused`,
      unit: 'p99 ms',
      beside: '200 in the same flood',
    },
    ours: quantileOf(ours, 0.99),
    theirs: quantileOf(theirs, 0.99),
    bars: [P99],
    also: `${ours.length} answers, p50 ${quantileOf(ours, 0.5).toFixed(1)} ms; 200: ${theirs.length}`,
  });
}
