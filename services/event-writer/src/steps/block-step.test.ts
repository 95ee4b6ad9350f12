import { RetryableFault } from '@playline/stream';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createBlockReaders, UnreadableSchemaError } from './block-step.ts';

function createSource(answers: (() => string | null)[]) {
  const requested: number[] = [];
  return {
    requested,
    idOf: async (_subject: string, schema: string) => (schema === 'current' ? 7 : 8),
    schemaOf: async (id: number) => {
      requested.push(id);
      const answer = answers.shift();
      if (answer === undefined) throw new Error('one request too many');
      return answer();
    },
  };
}
const fail = (error: Error) => () => {
  throw error;
};
const createReader = (schema: string) => schema.toUpperCase();

it('a record with an unknown schema id is deferred until the registry has answered, which is queried once', async () => {
  const source = createSource([() => 'schema']);
  const readers = createBlockReaders({ registry: source, createReader });
  expect(() => readers.readerOf(7)).toThrow(RetryableFault);
  expect(() => readers.readerOf(7)).toThrow(RetryableFault);
  expect(await until('the reader', () => readers.readerOf(7))).toBe('SCHEMA');
  expect(source.requested).toEqual([7]);
});

it('records are deferred while the registry is not reachable, and do not become dead letters', async () => {
  const source = createSource([fail(new Error('ECONNREFUSED')), fail(new Error('timeout')), () => 'schema']);
  const readers = createBlockReaders({ registry: source, createReader });
  expect(() => readers.readerOf(7)).toThrow(RetryableFault);
  expect(await until('the reader', () => readers.readerOf(7))).toBe('SCHEMA');
  expect(source.requested).toEqual([7, 7, 7]);
});

it('a schema id that the registry does not know is refused', async () => {
  const readers = createBlockReaders({ registry: createSource([() => null]), createReader });
  const refusal = () => {
    try {
      return readers.readerOf(7);
    } catch (error) {
      return error instanceof UnreadableSchemaError && error;
    }
  };
  expect(await until('the refusal', refusal)).toMatchObject({ message: 'schema not in the registry: 7' });
});

it('the schema of the release is requested before the first record, also from a registry that is down', async () => {
  const readers = createBlockReaders({ registry: createSource([() => 'schema']), createReader });
  await readers.prefetch('subject', 'current');
  expect(readers.readerOf(7)).toBe('SCHEMA');
  const down = { idOf: async () => Promise.reject(new Error('down')), schemaOf: async () => '' };
  await createBlockReaders({ registry: down, createReader }).prefetch('subject', 'current');
});
