import { RetryableFault, UnknownSchemaFault } from '@playline/stream';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { createSchemaReaders, UnreadableSchemaError } from './schema-readers.ts';

function createSource(answers: (() => string)[]) {
  const asked: number[] = [];
  return {
    asked,
    idOf: async () => 7,
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

describe('SchemaReaders', () => {
  it('hands a record of an unknown id back until the registry has answered, and asks once', async () => {
    const source = createSource([() => 'schema']);
    const readers = createSchemaReaders({ source, createReader });
    expect(() => readers.readerOf(7)).toThrow(RetryableFault);
    expect(() => readers.readerOf(7)).toThrow(RetryableFault);
    expect(await until('the reader', () => readers.readerOf(7))).toBe('SCHEMA');
    expect(source.asked).toEqual([7]);
  });

  it('waits while the registry is not reachable: a record is no dead letter for that', async () => {
    const source = createSource([fail(new Error('ECONNREFUSED')), fail(new Error('timeout')), () => 'schema']);
    const readers = createSchemaReaders({ source, createReader });
    expect(() => readers.readerOf(7)).toThrow(RetryableFault);
    expect(await until('the reader', () => readers.readerOf(7))).toBe('SCHEMA');
    expect(source.asked).toEqual([7, 7, 7]);
  });

  it('refuses an id that the registry does not know, and asks again a minute later', async () => {
    let nowMs = 0;
    const source = createSource([fail(new UnknownSchemaFault('schema 7')), () => 'schema']);
    const readers = createSchemaReaders({ source, createReader, nowMs: () => nowMs });
    const refusal = () => {
      try {
        return readers.readerOf(7);
      } catch (error) {
        return error instanceof UnreadableSchemaError && error;
      }
    };
    expect(await until('the refusal', refusal)).toBeInstanceOf(UnreadableSchemaError);
    nowMs = 59_999;
    expect(refusal()).toBeInstanceOf(UnreadableSchemaError);
    nowMs = 60_000;
    expect(() => readers.readerOf(7)).toThrow(RetryableFault);
    expect(await until('the reader', () => readers.readerOf(7))).toBe('SCHEMA');
  });

  it('refuses a schema that no reader can be made of', async () => {
    const readers = createSchemaReaders({ source: createSource([() => 'x']), createReader: fail(new Error('no')) });
    await readers.prefetch('subject');
    expect(() => readers.readerOf(7)).toThrow(UnreadableSchemaError);
  });

  it('knows the latest schema before the first record when it was asked for it, and survives a registry that is down', async () => {
    const readers = createSchemaReaders({ source: createSource([() => 'schema']), createReader });
    await readers.prefetch('subject');
    expect(readers.readerOf(7)).toBe('SCHEMA');
    const down = { idOf: async () => Promise.reject(new Error('down')), schemaOf: async () => '' };
    await createSchemaReaders({ source: down, createReader }).prefetch('subject');
  });
});
