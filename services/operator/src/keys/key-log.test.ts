import { accessKeyCodec } from '@playline/contracts';
import { UnregisteredSchemaFault } from '@playline/stream';
import { describe, expect, it } from 'vitest';
import { UnreachableError } from '../command.ts';
import { type KeyLogSource, openKeyLog } from './key-log.ts';

const nothing = () => {
  throw new Error('nothing is read or sent');
};

function createSource(idOf: KeyLogSource['schemas']['idOf']) {
  const state = { closed: 0 };
  const producer: KeyLogSource['producer'] = {
    bytesHeld: 0,
    send: nothing,
    sendPlaced: nothing,
    ready: async () => true,
    close: async () => void state.closed++,
  };
  const source: KeyLogSource = { producer, topic: 't', schemas: { idOf, schemaOf: nothing }, read: nothing };
  return { source, state };
}

describe('the key log of a command', () => {
  it('fails at once when the schema of keys is not registered, instead of waiting for the registry', async () => {
    const { source, state } = createSource(async () => {
      throw new UnregisteredSchemaFault('t-value: deploy first');
    });
    const fault = await openKeyLog(source).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(UnreachableError);
    expect((fault as Error).message).toBe('t-value: deploy first');
    expect(state.closed).toBe(1);
  });

  it('requests the id of the schema that its records are written with', async () => {
    const asked: unknown[] = [];
    const { source } = createSource(async (...text) => {
      asked.push(text);
      return 7;
    });
    await (await openKeyLog(source)).close();
    expect(new Set(asked.map((text) => JSON.stringify(text)))).toEqual(
      new Set([JSON.stringify(['t-value', accessKeyCodec.schema])]),
    );
  });
});
