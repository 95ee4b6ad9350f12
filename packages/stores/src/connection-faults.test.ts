import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createConnectionFaults, createReconnectPace } from './connection-faults.ts';
import { explainConnection, type StoreName } from './explain-fault.ts';

const STORES: StoreName[] = ['Kafka', 'ClickHouse', 'Redis', 'the schema registry'];
const fault = (fields: object, cause?: unknown) => Object.assign(new Error('words of a client', { cause }), fields);
const network = fault({ code: 'PLT_KFK_NETWORK' });

describe('explainConnection', () => {
  it.each<[string, StoreName, unknown, RegExp]>([
    ['an unknown authority', 'Redis', fault({ code: 'SELF_SIGNED_CERT_IN_CHAIN' }), /set REDIS_TLS_CA_FILE/],
    ['it below other faults', 'Kafka', fault({}, fault({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })), /KAFKA_TLS_CA/],
    ['it in a list of faults', 'Kafka', { errors: [network, { code: 'CERT_UNTRUSTED' }] }, /KAFKA_TLS_CA_FILE/],
    [
      'another host',
      'ClickHouse',
      { code: 'ERR_TLS_CERT_ALTNAME_INVALID', reason: 'Host: a.' },
      /\(Host: a\).*_SERVER_NAME/,
    ],
    ['an expired certificate', 'ClickHouse', { code: 'CERT_HAS_EXPIRED' }, /renew it at the store/],
    [
      'a port in the clear',
      'the schema registry',
      { code: 'ERR_SSL_WRONG_VERSION_NUMBER' },
      /correct SCHEMA_REGISTRY_URL/,
    ],
    ['a port that wants TLS', 'Kafka', { message: 'Broker requires TLS.' }, /set KAFKA_TLS to true/],
    ['an alert', 'Kafka', { code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED' }, /KAFKA_TLS_CERT_FILE/],
    ['a password by kafkajs', 'Kafka', { name: 'KafkaJSSASLAuthenticationError', message: 'x' }, /KAFKA_SASL_PASSWORD/],
    [
      'a mechanism by kafkajs',
      'Kafka',
      { message: 'SASL PLAIN mechanism is not supported by the server' },
      /_MECHANISM/,
    ],
    ['a password', 'Kafka', fault({}, { apiId: 'SASL_AUTHENTICATION_FAILED' }), /KAFKA_SASL_PASSWORD/],
    ['a forged server', 'Kafka', { code: 'PLT_KFK_AUTHENTICATION' }, /KAFKA_SASL_PASSWORD/],
    ['no login wanted', 'Kafka', fault({}, { type: 'ILLEGAL_SASL_STATE' }), /remove KAFKA_SASL_MECHANISM/],
    ['a password', 'Redis', { message: 'WRONGPASS invalid username-password pair' }, /password in REDIS_URL/],
    ['no password', 'Redis', { message: 'NOAUTH Authentication required.' }, /password in REDIS_URL/],
    ['too narrow an ACL', 'Redis', { message: 'NOPERM User x has no permissions' }, /widen what its ACL allows/],
    ['a password', 'ClickHouse', { code: '516' }, /CLICKHOUSE_PASSWORD/],
    ['a missing grant', 'ClickHouse', { code: '497' }, /grant it to CLICKHOUSE_USER/],
    ['a password', 'the schema registry', { status: 401 }, /SCHEMA_REGISTRY_PASSWORD/],
  ])('tells of %s at %s which setting mends it', (_, store, given, sentence) => {
    const explained = explainConnection(store, given);
    expect(explained.message).toMatch(sentence);
    expect(explained).toMatchObject({
      isRefusal: true,
      sentence: expect.stringContaining(`${store} cannot be used: `),
    });
  });

  it.each<[string, unknown, RegExp]>([
    ['is full', { message: "OOM command not allowed when used memory > 'maxmemory'." }, /\(OOM\).*raise its maxmemory/],
    ['is full', fault({}, { message: 'OOM allow-oom flag is not set on the script' }), /\(OOM\)/],
    ['cannot write its file', { message: 'MISCONF Errors writing to the AOF file' }, /\(MISCONF\).*its disk/],
    ['is a replica', { message: "READONLY You can't write against a read only replica." }, /\(READONLY\).*REDIS_URL/],
    ['lost its replicas', { message: 'NOREPLICAS Not enough good replicas to write.' }, /\(NOREPLICAS\)/],
    ['was emptied', { name: 'MissingEpochFault', message: 'no epoch' }, /npm run rebuild/],
  ])('tells of a Redis that answers and %s what mends it', (_, given, sentence) => {
    expect(explainConnection('Redis', given)).toMatchObject({
      isRefusal: true,
      sentence: expect.stringMatching(sentence),
    });
    expect(explainConnection('Kafka', given).isRefusal).toBe(false);
  });

  it.each<[string, unknown]>([
    ['a refused connection', { code: 'ECONNREFUSED' }],
    ['a login during which the connection broke', { code: 'PLT_KFK_AUTHENTICATION', cause: network }],
    ['nothing at all', null],
    ['a fault that is its own cause', Object.assign(fault({}), { cause: network })],
  ])('takes %s for a store that is away', (_, given) => {
    const explained = explainConnection('Kafka', given);
    expect(explained.isRefusal).toBe(false);
    expect(explained.message).toMatch(/^Kafka does not answer/);
  });

  it('ends with a fault that is its own cause', () => {
    const loop = fault({});
    loop.cause = loop;
    expect(explainConnection('Redis', loop).isRefusal).toBe(false);
  });

  it('never repeats what a client or a server said, whatever it said', () => {
    const words = fc.stringMatching(/^[a-z]{12,20}$/);
    const code = fc.constantFrom('516', 'CERT_UNTRUSTED', 'ECONNRESET', 'PLT_KFK_AUTHENTICATION', '');
    fc.assert(
      fc.property(words, code, fc.constantFrom(...STORES), (secret, given, store) => {
        const told = fault(
          { code: given, message: `WRONGPASS ${secret}`, user: secret },
          { message: secret, code: secret },
        );
        expect(explainConnection(store, told).message).not.toContain(secret);
      }),
    );
  });
});

describe('the faults of a service', () => {
  const refusal = { code: 'CERT_UNTRUSTED' };

  it('are logged as one sentence a minute and counted meanwhile, and tell the reason for half a minute', () => {
    const lines: object[] = [];
    let now = 0;
    const faults = createConnectionFaults({ warn: (fields) => lines.push(fields) }, () => now);
    for (let i = 0; i < 100; i++) faults.listenerOf('Kafka')(refusal);
    expect(lines).toEqual([{ store: 'Kafka', faults: 1 }]);
    expect(faults.reasons()).toEqual({ Kafka: expect.stringContaining('KAFKA_TLS_CA_FILE') });
    now = 60_000;
    expect(faults.reasons()).toEqual({});
    faults.listenerOf('Kafka')(refusal);
    expect(lines).toEqual([
      { store: 'Kafka', faults: 1 },
      { store: 'Kafka', faults: 100 },
    ]);
  });

  it('of a store that is away are no line of the log, and a reason all the same', () => {
    const lines: object[] = [];
    const faults = createConnectionFaults({ warn: (fields) => lines.push(fields) });
    faults.listenerOf('Redis')({ code: 'ECONNREFUSED' });
    expect(lines).toEqual([]);
    expect(faults.reasons()).toEqual({ Redis: 'Redis does not answer (ECONNREFUSED)' });
  });

  it('are no reason any more once the store has answered, which makes no refusal be logged again', async () => {
    const lines: object[] = [];
    let isThere = false;
    const faults = createConnectionFaults({ warn: (fields) => lines.push(fields) });
    const ready = faults.clearingOnSuccess('ClickHouse', async () => isThere);
    faults.listenerOf('ClickHouse')({ code: 'ECONNREFUSED' });
    faults.listenerOf('ClickHouse')(refusal);
    faults.listenerOf('Redis')({ code: 'ECONNREFUSED' });
    expect(await ready()).toBe(false);
    expect(Object.keys(faults.reasons())).toEqual(['ClickHouse', 'Redis']);
    isThere = true;
    expect(await ready()).toBe(true);
    expect(Object.keys(faults.reasons())).toEqual(['Redis']);
    faults.listenerOf('ClickHouse')(refusal);
    expect(faults.reasons().ClickHouse).toContain('CLICKHOUSE_TLS_CA_FILE');
    expect(lines).toHaveLength(1);
  });
});

describe('the pace of reconnecting', () => {
  it('is quick while a store is away, and never slower than 5 s while it refuses', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), fc.boolean(), (attempt, isRefused) => {
        const pace = createReconnectPace('Redis', 500);
        pace.failed(isRefused ? { message: 'WRONGPASS' } : { code: 'ECONNREFUSED' });
        const wait = pace.waitMs(attempt);
        expect(wait).toBeGreaterThanOrEqual(50);
        expect(wait).toBeLessThanOrEqual(isRefused ? 5_000 : 500);
        if (isRefused && attempt >= 7) expect(wait).toBe(5_000);
      }),
    );
  });
});
