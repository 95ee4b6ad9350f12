import { describe, expect, it } from 'vitest';
import { createRedisClientSetup } from './redis-client.ts';

const WAITS = { connectMaxMs: 2_000, reconnectMaxMs: 120 };

describe('what every client of Redis is told', () => {
  it('lets no command wait for a Redis that is away, nor be sent twice', () => {
    const { options } = createRedisClientSetup({}, WAITS);
    expect(options).toMatchObject({ enableOfflineQueue: false, maxRetriesPerRequest: 0, connectTimeout: 2_000 });
  });

  it('names TLS only where there is some: its mere presence turns TLS on', () => {
    expect(createRedisClientSetup({}, WAITS).options).not.toHaveProperty('tls');
    expect(createRedisClientSetup({ tls: { ca: 'pem' } }, WAITS).options.tls).toEqual({ ca: 'pem' });
  });

  it('has an outage end soon, and leaves a Redis that refuses it alone for longer', () => {
    const told: Error[] = [];
    const { options, onError } = createRedisClientSetup({ onFault: (fault) => told.push(fault) }, WAITS);
    onError(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
    expect([1, 2, 3, 100].map(options.retryStrategy)).toEqual([50, 100, 120, 120]);
    onError(Object.assign(new Error('WRONGPASS invalid username-password pair'), { name: 'ReplyError' }));
    expect(options.retryStrategy(100)).toBe(5_000);
    expect(told).toHaveLength(2);
  });
});
