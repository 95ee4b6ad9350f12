import { EventEmitter } from 'node:events';
import type { Base, Broker } from '@platformatic/kafka';
import { expect, it } from 'vitest';
import { guardConnections } from './open-admin.ts';

type Callback = (fault: Error | null) => void;

function createPool(fault: Error | null) {
  const attempts = { count: 0 };
  const get = (_: unknown, callback: Callback) => {
    attempts.count++;
    callback(fault);
  };
  const firstTried: string[] = [];
  const getFirstAvailable = ([first]: Broker[], done: Callback) => {
    firstTried.push(first!.host);
    done(null);
  };
  return { attempts, firstTried, pool: Object.assign(new EventEmitter(), { get, getFirstAvailable }) };
}

it('a guarded connection reports every error without crashing, and stops its timers when it is closed', () => {
  const { pool } = createPool(null);
  const faults: unknown[] = [];
  guardConnections({ connections: pool } as unknown as Base, (fault) => faults.push(fault));
  let closed = 0;
  const connection = Object.assign(new EventEmitter(), { close: () => closed++ });
  pool.emit('connecting', { connection, broker: { host: 'broker', port: 9092 } });
  for (const text of ['refused', 'broke']) connection.emit('error', new Error(text));
  connection.emit('close');
  expect(faults.map(String)).toEqual(['Error: refused', 'Error: broke']);
  expect(closed).toBe(1);
});

it.each([
  ['refuses the connection', 'one connection attempt', 'CERT_UNTRUSTED', 1],
  ['is unavailable', 'an attempt per call', 'ECONNREFUSED', 20],
])('a broker that %s gets %s', async (_, __, code, count) => {
  const fault = Object.assign(new Error('no connection'), { code });
  const { pool, attempts } = createPool(fault);
  guardConnections({ connections: pool } as unknown as Base);
  const connect = () => new Promise<Error | null>((resolve) => pool.get({ host: 'broker', port: 9092 }, resolve));
  for (let i = 0; i < 20; i++) expect(await connect()).toBe(fault);
  expect(attempts.count).toBe(count);
});

it('a metadata request is sent first to the broker whose connection was lost the longest time ago', () => {
  const { pool, firstTried } = createPool(null);
  guardConnections({ connections: pool } as unknown as Base);
  const brokers = ['one', 'two'].map((host) => ({ host, port: 9092 }));
  const lose = (broker: Broker, event: string) => {
    const connection = Object.assign(new EventEmitter(), { close: () => {} });
    pool.emit('connecting', { connection, broker });
    connection.emit(event, new Error('lost'));
    pool.getFirstAvailable(brokers, () => {});
  };
  pool.getFirstAvailable(brokers, () => {});
  lose(brokers[0]!, 'close');
  lose(brokers[1]!, 'error');
  expect(firstTried).toEqual(['one', 'two', 'one']);
});
