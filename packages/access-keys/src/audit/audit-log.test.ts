import { auditEntryCodec, FRAME_BYTES, schemaIdOf } from '@playline/contracts';
import { describe, expect, it } from 'vitest';
import { type AuditEntry, createAuditLog } from './audit-log.ts';

const entry: AuditEntry = {
  actor: 'ada',
  action: 'session.create',
  projectId: 'demo',
  environmentId: '',
  object: 'account-1',
  address: '192.0.2.7',
  requestId: 'request-1',
  detail: { method: 'passkey', attempts: 2 },
};

describe('the audit log', () => {
  it('sends each entry with the project id as key, and a unique id and a timestamp unless the entry has its own', async () => {
    const sent: { key: Buffer; value: Buffer }[] = [];
    const log = createAuditLog({ schemaId: 7, send: async (record) => sent.push(record), wallClockMs: () => 5_000 });
    await log.append(entry);
    await log.append(entry);
    const read = sent.map(({ value }) => auditEntryCodec.decode(value.subarray(FRAME_BYTES)));
    expect(sent.map(({ key, value }) => [key.toString(), schemaIdOf(value)])).toEqual([
      ['demo', 7],
      ['demo', 7],
    ]);
    expect(read[0]).toMatchObject({ ...entry, happenedAt: 5_000, detail: '{"method":"passkey","attempts":2}' });
    expect(read[0]!.entryId).not.toBe(read[1]!.entryId);
    const identity = { entryId: 'its own id', happenedAt: 4_000 };
    await log.append({ ...entry, identity });
    expect(auditEntryCodec.decode(sent[2]!.value.subarray(FRAME_BYTES))).toMatchObject(identity);
  });

  it('fails unless the broker confirms the entry', async () => {
    const send = async () => Promise.reject(new Error('no broker'));
    await expect(createAuditLog({ schemaId: 7, send }).append(entry)).rejects.toThrow('no broker');
  });

  it.each([
    ['detail', { detail: { text: 'x'.repeat(5_000) } }],
    ['object', { object: 'x'.repeat(201) }],
  ])('rejects an entry whose %s is too long, without quoting the value', async (name, changes) => {
    const sent: unknown[] = [];
    const log = createAuditLog({ schemaId: 7, send: async (record) => sent.push(record) });
    await expect(log.append({ ...entry, ...changes })).rejects.toThrow(`the ${name} of the audit entry is too long`);
    expect(sent).toEqual([]);
  });
});
