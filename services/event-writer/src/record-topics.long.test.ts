import { randomBytes } from 'node:crypto';
import {
  type ConsentRecord,
  consentCodec,
  frameRecord,
  type RejectionRecord,
  rejectionCodec,
  TOPICS,
} from '@playline/contracts';
import { testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';

const RECEIVED_MS = 1_790_000_000_000;
const ENVIRONMENT = 'test-records';

const rejectionOf = (over: Partial<RejectionRecord> = {}): RejectionRecord => ({
  environmentId: ENVIRONMENT,
  code: 'INVALID_FORMAT',
  field: 'messageId',
  surface: 'unity',
  library: 'playline-unity',
  libraryVersion: '2.0.1',
  receivedAt: Date.now(),
  traceId: randomBytes(16).toString('hex'),
  ...over,
});

describe('the event writer on consents and rejections', () => {
  let stores: RealStores;
  let consents: string;
  let rejections: string;

  beforeAll(async () => {
    stores = await openRealStores([TOPICS.consents.name, TOPICS.rejections.name]);
    consents = stores.prefix + TOPICS.consents.name;
    rejections = stores.prefix + TOPICS.rejections.name;
    for (const table of ['consent_log', 'message_rejections']) await stores.query(`SYSTEM STOP MERGES ${table}`);
  });
  afterEach(() => stores.killWriters());
  afterAll(() => stores.close());

  const consentRecord = (identityKey: Buffer, status: ConsentRecord['status'], source = 'banner') => {
    const record = {
      environmentId: ENVIRONMENT,
      identityKey,
      status,
      source,
      receivedAt: RECEIVED_MS,
      traceId: 'trace',
    };
    return {
      topic: consents,
      key: Buffer.concat([Buffer.from(ENVIRONMENT), identityKey]),
      value: frameRecord(stores.schemaIdOf(consents), consentCodec.encode(record)),
    };
  };
  const rejectionRecord = (record: RejectionRecord) => ({
    topic: rejections,
    key: Buffer.from(record.environmentId),
    value: frameRecord(stores.schemaIdOf(rejections), rejectionCodec.encode(record)),
  });
  const statusesOf = (key: Buffer, table: string) =>
    stores.rowsOf<{ status: string }>(
      `SELECT status FROM ${table} WHERE environment_id = '${ENVIRONMENT}' AND identity_key = unhex('${key.toString('hex')}')` +
        (table === 'consent_log' ? ' ORDER BY kafka_offset' : ''),
    );

  it('keeps every change of a consent, shows the latest, and has the time of the log, not of the producer', async () => {
    const writer = await stores.startWriter('consents');
    const [identity, other] = [randomBytes(16), randomBytes(16)];
    await stores.publish([consentRecord(identity, 'full'), consentRecord(other, 'anonymous')]);
    await until('two consents', async () => (await stores.rowsOf('SELECT 1 FROM consents_current')).length === 2);
    // A producer whose clock shows 1970.
    const kafka = new Kafka({ clientId: 'test', brokers: testStores().kafka, logLevel: logLevel.NOTHING });
    const producer = kafka.producer();
    await producer.connect();
    const before = Date.now();
    const { key, value } = consentRecord(identity, 'none', 'settings');
    await producer.send({ topic: consents, messages: [{ key, value, timestamp: '1000' }] });
    await producer.disconnect();
    await until('the change', async () => (await statusesOf(identity, 'consent_log')).length === 2);
    expect(await statusesOf(identity, 'consent_log')).toEqual([{ status: 'full' }, { status: 'none' }]);
    expect(await statusesOf(other, 'consents_current')).toEqual([{ status: 'anonymous' }]);
    const [latest] = await stores.rowsOf<Record<string, string>>(
      'SELECT status, source, toString(toUnixTimestamp64Milli(received_at)) AS received, trace_id, ' +
        'toString(toUnixTimestamp64Milli(logged_at)) AS logged FROM consents_current ' +
        `WHERE environment_id = '${ENVIRONMENT}' AND identity_key = unhex('${identity.toString('hex')}')`,
    );
    expect(latest).toMatchObject({
      status: 'none',
      source: 'settings',
      received: String(RECEIVED_MS),
      trace_id: 'trace',
    });
    // The broker uses this machine's clock; one second covers the resolution of the clocks.
    expect(Number(latest?.logged)).toBeGreaterThan(before - 1_000);
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
  });

  it('makes rejections searchable, and keeps invalid records as dead letters of the topic', async () => {
    const writer = await stores.startWriter('rejections');
    const rejection = rejectionOf();
    const broken = { topic: rejections, key: null, value: Buffer.from('no frame') };
    await stores.publish([rejectionRecord(rejection), broken]);
    const rows = await until('the rejection', async () => {
      const found = await stores.rowsOf(
        'SELECT environment_id, code, field, surface, library, library_version FROM message_rejections ' +
          `WHERE trace_id = '${rejection.traceId}'`,
      );
      return found.length > 0 && found;
    });
    expect(rows).toEqual([
      {
        environment_id: ENVIRONMENT,
        code: 'INVALID_FORMAT',
        field: 'messageId',
        surface: 'unity',
        library: 'playline-unity',
        library_version: '2.0.1',
      },
    ]);
    const admin = new Kafka({ clientId: 'test', brokers: testStores().kafka, logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    await until('the dead letter', async () => {
      const offsets = await admin.fetchTopicOffsets(`${rejections}.dead`);
      return offsets.reduce((sum, { high }) => sum + Number(high), 0) === 1;
    });
    await admin.disconnect();
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
  });

  it('loses and duplicates no consent or rejection when it is killed while they come in', async () => {
    const settings = { BLOCK_ROWS_MAX: '50', BLOCK_AGE_MAX_MS: '20' };
    const [batches, size] = [20, 100];
    let published = 0;
    const publishing = (async () => {
      for (let batch = 0; batch < batches; batch++) {
        const changes = Array.from({ length: size }, () => consentRecord(randomBytes(16), 'full', 'killed'));
        const errors = Array.from({ length: size }, () => rejectionRecord(rejectionOf({ code: 'KILLED' })));
        await stores.publish([...changes, ...errors]);
        published += size;
      }
    })();
    const countOf = async (table: string, where: string) => {
      const places = 'toUInt32(uniqExact(kafka_partition, kafka_offset)) AS places';
      const query = `SELECT toUInt32(count()) AS rows, ${places} FROM ${table} WHERE ${where}`;
      return (await stores.rowsOf<{ rows: number; places: number }>(query))[0]!;
    };
    const consentCount = () => countOf('consent_log', "source = 'killed'");
    const rejectionCount = () => countOf('message_rejections', "code = 'KILLED'");
    for (let kill = 0; kill < 2; kill++) {
      const writer = await stores.startWriter('killed', settings);
      const before = (await consentCount()).rows;
      await until('rows come', async () => (await consentCount()).rows > before || before === published);
      await stores.stop(writer, 'SIGKILL');
    }
    await publishing;
    const writer = await stores.startWriter('killed', settings);
    const all = batches * size;
    await until('every consent', async () => (await consentCount()).places === all, 60_000);
    await until('every rejection', async () => (await rejectionCount()).places === all, 60_000);
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
    expect(await consentCount()).toEqual({ rows: all, places: all });
    expect(await rejectionCount()).toEqual({ rows: all, places: all });
    // Three starts and two session timeouts take long on a busy machine.
  }, 180_000);
});
