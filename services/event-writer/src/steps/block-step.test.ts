import { RetryableFault } from '@playline/stream';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { createBlockReaders, UnreadableSchemaError } from './block-step.ts';

function createSource(answers: (() => string | null)[]) {
  const asked: number[] = [];
  return {
    asked,
    idOf: async (_subject: string, schema: string) => (schema === 'ours' ? 7 : 8),
    schemaOf: async (id: number) => {
      asked.push(id);
      const answer = answers.shift();
      if (answer === undefined) throw new Error('asked once too often');
      return answer();
    },
  };
}
const fail = (error: Error) => () => {
  throw error;
};
const createReader = (schema: string) => schema.toUpperCase();

describe('createBlockReaders', () => {
  it('defers a record with an unknown schema id until the registry has answered, and asks once', async () => {
    const source = createSource([() => 'schema']);
    const readers = createBlockReaders({ registry: source, createReader });
    expect(() => readers.readerOf(7)).toThrow(RetryableFault);
    expect(() => readers.readerOf(7)).toThrow(RetryableFault);
    expect(await until('the reader', () => readers.readerOf(7))).toBe('SCHEMA');
    expect(source.asked).toEqual([7]);
  });

  it('waits while the registry is not reachable, and makes no dead letter', async () => {
    const source = createSource([fail(new Error('ECONNREFUSED')), fail(new Error('timeout')), () => 'schema']);
    const readers = createBlockReaders({ registry: source, createReader });
    expect(() => readers.readerOf(7)).toThrow(RetryableFault);
    expect(await until('the reader', () => readers.readerOf(7))).toBe('SCHEMA');
    expect(source.asked).toEqual([7, 7, 7]);
  });

  it('refuses a schema id that the registry does not know', async () => {
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

  it('knows the schema of its release before the first record, and survives a registry that is down', async () => {
    const readers = createBlockReaders({ registry: createSource([() => 'schema']), createReader });
    await readers.prefetch('subject', 'ours');
    expect(readers.readerOf(7)).toBe('SCHEMA');
    const down = { idOf: async () => Promise.reject(new Error('down')), schemaOf: async () => '' };
    await createBlockReaders({ registry: down, createReader }).prefetch('subject', 'ours');
  });
});
