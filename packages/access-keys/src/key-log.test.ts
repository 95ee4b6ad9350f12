import { accessKeyCodec, frameRecord } from '@playline/contracts';
import { describe, expect, it } from 'vitest';
import { createKeyLog } from './key-log.ts';
import type { KeyRecord } from './key-store.ts';
import type { LoggedBytes } from './records/log-bytes.ts';

const record: KeyRecord = {
  keyId: 'k-1',
  projectId: 'p',
  environmentId: 'p-production',
  environment: 'production',
  kind: 'secret',
  hash: 'ab'.repeat(32),
  first4: 'abcd',
  last4: 'wxyz',
  createdAt: 1_000,
  revokedAt: null,
  name: '',
  text: null,
  changedBy: 'ada',
  requestId: 'r-1',
  origins: [],
  changedAt: 0,
};
const ended = { ...record, revokedAt: 2_000 };
const bytesOf = (value: KeyRecord) => ({
  key: Buffer.from(value.keyId),
  value: frameRecord(7, accessKeyCodec.encode(value)),
});
type KeyBytes = Pick<LoggedBytes, 'key' | 'value'>;

function open(bytes: readonly KeyBytes[] = []) {
  const sends: (readonly KeyBytes[])[] = [];
  const asked: number[] = [];
  const log = createKeyLog({
    schemaId: 7,
    schemaOf: async (id) => {
      asked.push(id);
      return accessKeyCodec.schema;
    },
    send: async (records) => void sends.push(records),
    read: async () => bytes.map((each, offset) => ({ partition: 0, offset, ...each })),
  });
  return { log, sends, asked };
}

describe('createKeyLog', () => {
  it('keys records by key id, frames them with the schema id, and sends those of one call at once', async () => {
    const { log, sends } = open();
    await log.append([ended, { ...record, keyId: 'k-2' }]);
    expect(sends).toEqual([[bytesOf(ended), bytesOf({ ...record, keyId: 'k-2' })]]);
  });

  it('takes the last record of each key, and asks for a schema once', async () => {
    const { log, asked } = open([bytesOf(record), bytesOf({ ...record, keyId: 'k-2' }), bytesOf(ended)]);
    expect(await log.readAll()).toEqual([ended, { ...record, keyId: 'k-2' }]);
    expect(asked).toEqual([7]);
  });

  it('lets no later record bring an ended key back to life', async () => {
    expect(await open([bytesOf(ended), bytesOf(record)]).log.readAll()).toEqual([ended]);
  });

  it('passes over an empty record and refuses one without a schema id', async () => {
    expect(await open([{ key: Buffer.from('k'), value: null }]).log.readAll()).toEqual([]);
    await expect(open([{ key: null, value: Buffer.from('text') }]).log.readAll()).rejects.toThrow('no schema id');
  });
});
