import { RetryableFault } from '@playline/stream';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createBlockReaders, UnreadableSchemaError } from './block-step.ts';

function createRegistry(responses: (() => string | null)[]) {
  const requested: number[] = [];
  return {
    requested,
    idOf: async (_subject: string, schema: string) => (schema === 'current' ? 7 : 8),
    schemaOf: async (id: number) => {
      requested.push(id);
      const respond = responses.shift();
      if (respond === undefined) throw new Error('unexpected request');
      return respond();
    },
  };
}
const fail = (error: Error) => () => {
  throw error;
};
const createReader = (schema: string) => schema.toUpperCase();

it('a record with an unknown schema id is deferred until the registry responds to a single request', async () => {
  const registry = createRegistry([() => 'schema']);
  const readers = createBlockReaders({ registry, createReader });
  expect(() => readers.readerOf(7)).toThrow(RetryableFault);
  expect(() => readers.readerOf(7)).toThrow(RetryableFault);
  expect(await until('the reader is available', () => readers.readerOf(7))).toBe('SCHEMA');
  expect(registry.requested).toEqual([7]);
});

it('records are deferred while the registry is unreachable and do not become dead letters', async () => {
  const registry = createRegistry([fail(new Error('ECONNREFUSED')), fail(new Error('timeout')), () => 'schema']);
  const readers = createBlockReaders({ registry, createReader });
  expect(() => readers.readerOf(7)).toThrow(RetryableFault);
  expect(await until('the reader is available', () => readers.readerOf(7))).toBe('SCHEMA');
  expect(registry.requested).toEqual([7, 7, 7]);
});

it('a schema id that is missing from the registry is refused', async () => {
  const readers = createBlockReaders({ registry: createRegistry([() => null]), createReader });
  const findRefusal = () => {
    try {
      return readers.readerOf(7);
    } catch (error) {
      return error instanceof UnreadableSchemaError && error;
    }
  };
  expect(await until('the schema is refused', findRefusal)).toMatchObject({ message: 'schema not in the registry: 7' });
});

it('prefetch requests the schema of the release before the first record, and ignores an unavailable registry', async () => {
  const readers = createBlockReaders({ registry: createRegistry([() => 'schema']), createReader });
  await readers.prefetch('subject', 'current');
  expect(readers.readerOf(7)).toBe('SCHEMA');
  const down = { idOf: async () => Promise.reject(new Error('down')), schemaOf: async () => '' };
  await createBlockReaders({ registry: down, createReader }).prefetch('subject', 'current');
});
