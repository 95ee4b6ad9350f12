import { EventEmitter } from 'node:events';
import type { Base } from '@platformatic/kafka';
import { expect, it } from 'vitest';
import { guardConnections } from './open-admin.ts';

type Callback = (fault: Error | null) => void;

/** A pool with the client's interface. The test sets its answer; it counts how often it was asked. */
function createPool(fault: Error | null) {
  const asked = { times: 0 };
  const get = (_: unknown, callback: Callback) => {
    asked.times++;
    callback(fault);
  };
  return { asked, pool: Object.assign(new EventEmitter(), { get }) };
}

const ask = (pool: { get(broker: unknown, callback: Callback): void }) =>
  new Promise<Error | null>((resolve) => pool.get({ host: 'broker', port: 9092 }, resolve));

it('listens to every error of a connection, so that a second one does not end the process, and stops the timers of a closed one', () => {
  const { pool } = createPool(null);
  const faults: unknown[] = [];
  guardConnections({ connections: pool } as unknown as Base, (fault) => faults.push(fault));
  let closed = 0;
  const connection = Object.assign(new EventEmitter(), { close: () => closed++ });
  pool.emit('connecting', { connection });
  for (const word of ['refused', 'broke']) connection.emit('error', new Error(word));
  connection.emit('close');
  expect(faults.map(String)).toEqual(['Error: refused', 'Error: broke']);
  expect(closed).toBe(1);
});

it('leaves a broker that refuses us alone for a while, and answers everybody with its refusal meanwhile', async () => {
  const refusal = Object.assign(new Error('refused'), { code: 'CERT_UNTRUSTED' });
  const { pool, asked } = createPool(refusal);
  guardConnections({ connections: pool } as unknown as Base);
  for (let i = 0; i < 100; i++) expect(await ask(pool)).toBe(refusal);
  expect(asked.times).toBe(1);
});

it('asks a broker that is away as often as somebody asks', async () => {
  const { pool, asked } = createPool(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
  guardConnections({ connections: pool } as unknown as Base);
  for (let i = 0; i < 5; i++) await ask(pool);
  expect(asked.times).toBe(5);
});
