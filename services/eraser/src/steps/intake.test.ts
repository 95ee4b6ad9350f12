import { randomBytes } from 'node:crypto';
import { type ErasureRequestRecord, erasureRequestCodec, frameRecord } from '@playline/contracts';
import type { ErasureReceipt } from '@playline/erasure';
import { openMemoryErasureRecords } from '@playline/erasure/memory';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger, openTracing, type Tracing } from '@playline/runtime';
import { type BatchPosition, type OutgoingRecord, RetryableFault, type StreamRecord } from '@playline/stream';
import { useTraceReceiver } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { createIntake } from '../pipeline.ts';

const T = Date.UTC(2026, 5, 15);
const SCHEMA_ID = 7;
const POSITION = {} as BatchPosition;

const createRequest = (fields: Partial<ErasureRequestRecord> = {}): ErasureRequestRecord => ({
  erasureId: randomBytes(16),
  environmentId: 'env',
  subjectKeys: [randomBytes(16)],
  memberKeys: [randomBytes(16)],
  cutoffAt: T,
  requestedAt: T - 2_000,
  traceId: 'a'.repeat(32),
  ...fields,
});

const toRecord = (value: Buffer | null, offset = 0, headers: StreamRecord['headers'] = {}): StreamRecord => ({
  topic: 'erasures',
  partition: 0,
  offset,
  timestampMs: T,
  key: Buffer.from('env'),
  value,
  headers,
});
const frame = (request: ErasureRequestRecord) => frameRecord(SCHEMA_ID, erasureRequestCodec.encode(request));

function openBench({ tracing = null }: { tracing?: Tracing | null } = {}) {
  const [people, records] = [openMemoryPeople(), openMemoryErasureRecords(() => T)];
  const deadLetters: OutgoingRecord[] = [];
  let wakes = 0;
  const producer = {
    send: (sent: readonly OutgoingRecord[], done: (fault: Error | null) => void) => {
      deadLetters.push(...sent);
      done(null);
    },
  };
  const onBatch = createIntake({
    people,
    records,
    schemaOf: async (id: number) => (id === SCHEMA_ID ? erasureRequestCodec.schema : null),
    logger: createLogger({ service: 'test', level: 'silent' }),
    onRequests: () => wakes++,
    tracing,
    producer: producer as never,
  });
  const intake = (...values: (Buffer | null)[]) =>
    onBatch(
      values.map((value, at) => toRecord(value, at)),
      POSITION,
    );
  return { onBatch, people, records, deadLetters, intake, countWakes: () => wakes };
}

describe('the intake', () => {
  it('the intake continues the trace of a recorded request until its receipt', async () => {
    const { endpoint } = await useTraceReceiver();
    const logger = createLogger({ service: 'test', level: 'silent' });
    const config = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: 1 };
    const tracing = (await openTracing(async (_, open) => open(), { service: 'eraser', config, logger }))!;
    const [recorded, other] = ['a', 'b'].map((digit) => createRequest({ traceId: digit.repeat(32) }));
    const headerOf = ({ traceId }: ErasureRequestRecord, flags: string) => `00-${traceId}-00f067aa0ba902b7-${flags}`;
    const { onBatch } = openBench({ tracing });
    await onBatch(
      [
        toRecord(frame(recorded!), 0, { traceparent: headerOf(recorded!, '01') }),
        toRecord(frame(other!), 1, { traceparent: headerOf(other!, '00') }),
      ],
      POSITION,
    );
    expect(tracing.find(recorded!.traceId)).not.toBeNull();
    expect(tracing.find(other!.traceId)).toBeNull();
    await tracing.close();
  });

  it("the intake holds a request's identities, stores the request and wakes the eraser", async () => {
    const { people, records, intake, countWakes } = openBench();
    const request = createRequest();
    await intake(frame(request));
    for (const key of [...request.subjectKeys, ...request.memberKeys]) expect(people.holdOf('env', key)).toBe(T);
    expect(await records.readUnfinished()).toEqual([request]);
    expect(await people.guards.listHolds('env')).toMatchObject([{ lapsesAtMs: null }]);
    expect(countWakes()).toBe(1);
  });

  it('a redelivered request keeps its extended hold and closure', async () => {
    const { people, records, intake } = openBench();
    const request = createRequest();
    const { environmentId, erasureId, cutoffAt: cutoffMs } = request;
    await intake(frame(request));
    const found = randomBytes(16);
    await people.guards.extendHold({ environmentId, erasureId, keys: [found], cutoffMs, lapsesAtMs: null });
    await records.putRequests([{ ...request, memberKeys: [found] }]);
    await intake(frame(request));
    expect(people.holdOf('env', found)).toBe(T);
    expect(await records.readUnfinished()).toMatchObject([{ memberKeys: [found] }]);
  });

  it('a request that is redelivered after its receipt leaves no hold', async () => {
    const { people, records, intake } = openBench();
    const request = createRequest();
    await records.putRequests([request]);
    await records.putReceipts([
      { ...request, physicallyErasedAt: null, logExpiredAt: null } as unknown as ErasureReceipt,
    ]);
    await intake(frame(request));
    expect(await people.guards.listHolds('env')).toEqual([]);
    expect(await records.readUnfinished()).toEqual([]);
  });

  it.each([
    ['not a record', null, 'no schema id'],
    [
      'not Avro',
      Buffer.concat([Buffer.from([0, 0, 0, 0, SCHEMA_ID]), Buffer.from('rubbish')]),
      'not a record of its schema: 7',
    ],
    ['encoded with an unregistered schema', frameRecord(9, Buffer.alloc(3)), 'schema not in the registry: 9'],
    ['without a valid environment', frame(createRequest({ environmentId: 'Env!' })), 'not an environment id'],
    ['without a subject', frame(createRequest({ subjectKeys: [] })), 'not identity keys'],
    ['for the zero key', frame(createRequest({ memberKeys: [Buffer.alloc(16)] })), 'not identity keys'],
    ['outside the time range', frame(createRequest({ cutoffAt: 2 ** 50 })), 'time out of range'],
  ])('a record that is %s becomes a dead letter, and other records are accepted', async (_, value, reason) => {
    const { records, deadLetters, intake } = openBench();
    const request = createRequest();
    await intake(value, frame(request));
    expect(deadLetters).toHaveLength(1);
    expect(deadLetters[0]).toMatchObject({ topic: 'erasures.dead', value: value ?? Buffer.alloc(0) });
    expect(String(deadLetters[0]!.headers!.reason)).toContain(reason);
    expect(await records.readUnfinished()).toEqual([request]);
  });

  it('a request is retried while a store is unavailable and is never dropped', async () => {
    const { records, intake } = openBench();
    const { addRequests } = records;
    records.addRequests = async () => {
      throw new Error('ClickHouse is unavailable');
    };
    const request = createRequest();
    await expect(intake(frame(request))).rejects.toThrow(RetryableFault);
    records.addRequests = addRequests;
    await intake(frame(request));
    expect(await records.readUnfinished()).toEqual([request]);
  });
});
