import { setTimeout as delay } from 'node:timers/promises';
import { createKeyText } from '@playline/access-keys';
import { Redis } from 'ioredis';
import { atMost, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { driveClients, MESSAGES_PATH, toRequest } from '../load-client.ts';
import { createBody } from '../messages.ts';
import { ACCESS_KEY_PREFIX } from '../open-bench.ts';
import { withOpened } from '../opened.ts';
import { quantileOf } from '../quantile.ts';
import { type Server, startGateway } from '../services.ts';

const BATCH = 20;
const ALLOWED_PER_S = 1_000;
const OFFERED_PER_S = 10 * ALLOWED_PER_S;
const UNKNOWN_KEYS_PER_S = 20;
const WINDOW_MS = 10_000;
const WARM_UP_MS = 3_000;
const CONNECTIONS = 64;

/** Latency of refusals during a flood: 429 for most of the flood, 401 and 500 for unknown keys. */
export const refusals: Figure = {
  name: 'refusals',
  measure: (bench) =>
    withOpened(async (keep) => {
      const limits = { RATE_LIMIT_MESSAGES_PER_S: String(ALLOWED_PER_S), RATE_LIMIT_BURST: String(ALLOWED_PER_S) };
      // All requests come from one address. By default, the gateway would limit failed keys per address.
      const gateway = keep(await startGateway(bench, { ...limits, RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '1000000' }));
      await flood(gateway, bench, WARM_UP_MS);
      const withKeys = await flood(gateway, bench, WINDOW_MS);
      const noKeys = await withoutKeys(bench, () => flood(gateway, bench, WINDOW_MS));
      return [toRefusal(429, withKeys, withKeys), toRefusal(401, withKeys, withKeys), toRefusal(500, noKeys, withKeys)];
    }),
};

type Latencies = Map<number, number[]>;

// If Redis has lost its keys, an unknown key may be valid, so the gateway responds with 500 instead of 401.
async function withoutKeys<T>(bench: Bench, run: () => Promise<T>): Promise<T> {
  const redis = new Redis(bench.environment.REDIS_URL ?? '');
  const offset = await redis.hget('access:keys:places', '0');
  const complete = await redis.get('access:keys:complete');
  try {
    // The gateway cannot restore the keys if the stored offset is beyond the end of the log.
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
  const latencies: Latencies = new Map();
  const newKey = () => createKeyText(ACCESS_KEY_PREFIX, { kind: 'publishable', environment: 'development' });
  const offer = { windowMs, latencies };
  await Promise.all([
    offerLoad(gateway, { ...offer, perSecond: OFFERED_PER_S / BATCH }, () => createBatch(bench.publishableKey, BATCH)),
    offerLoad(gateway, { ...offer, perSecond: UNKNOWN_KEYS_PER_S }, () => createBatch(newKey(), 1)),
  ]);
  return latencies;
}

let messages = 0;

function createBatch(key: string, count: number): Buffer {
  const body = createBody(messages, count, new Date());
  messages += count;
  return toRequest(MESSAGES_PATH, { 'x-service-publishable-key': key }, body);
}

/** Sends requests at a constant rate. Latency counts from the scheduled time. */
async function offerLoad(
  { port }: Server,
  { perSecond, windowMs, latencies }: { perSecond: number; windowMs: number; latencies: Latencies },
  next: () => Buffer,
): Promise<void> {
  const count = Math.ceil((perSecond * windowMs) / 1000);
  let sent = 0;
  let startMs: number | null = null;
  await driveClients(port, CONNECTIONS, async (client) => {
    startMs ??= performance.now();
    while (sent < count) {
      const dueMs = startMs + (sent++ * 1000) / perSecond;
      const request = next();
      await delay(Math.max(0, dueMs - performance.now()));
      // A timer may fire up to 1 ms early.
      const fromMs = Math.min(dueMs, performance.now());
      const status = await client.send(request);
      const found = latencies.get(status) ?? [];
      latencies.set(status, found);
      found.push(performance.now() - fromMs);
    }
  });
}

function toRefusal(status: number, refused: Latencies, accepted: Latencies): Row {
  const [own, peer] = [refused.get(status) ?? [], accepted.get(200) ?? []];
  return toRow({
    case: `${status} while 9 of 10 messages are refused`,
    unit: 'p99 ms',
    peer: '200 in the same flood',
    value: quantileOf(own, 0.99),
    peerValue: quantileOf(peer, 0.99),
    bars: [atMost('value', 20)],
    notes: `${own.length} responses, p50 ${quantileOf(own, 0.5).toFixed(1)} ms; 200: ${peer.length}`,
  });
}
