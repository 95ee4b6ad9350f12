import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WrongCluster } from './cluster-check.ts';
import { createConnectGate, createConnectionFaults, createReconnectPace } from './connection-faults.ts';
import { explainConnection, type StoreName } from './explain-fault.ts';

const STORES: StoreName[] = ['Kafka', 'ClickHouse', 'Redis', 'the schema registry'];
const fault = (fields: object, cause?: unknown) => Object.assign(new Error('message from a client', { cause }), fields);
const network = fault({ code: 'PLT_KFK_NETWORK' });
const refused = Object.assign(new Error('refused'), { code: 'CERT_UNTRUSTED' });
const unavailable = Object.assign(new Error('down'), { code: 'ECONNREFUSED' });

it.each<[string, StoreName, unknown, RegExp]>([
  ['an unknown authority', 'Redis', fault({ code: 'SELF_SIGNED_CERT_IN_CHAIN' }), /set REDIS_TLS_CA_FILE/],
  [
    'an unknown authority as a cause',
    'Kafka',
    fault({}, fault({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })),
    /KAFKA_TLS_CA/,
  ],
  [
    'an unknown authority in a list of faults',
    'Kafka',
    { errors: [network, { code: 'CERT_UNTRUSTED' }] },
    /KAFKA_TLS_CA_FILE/,
  ],
  [
    'another host',
    'ClickHouse',
    { code: 'ERR_TLS_CERT_ALTNAME_INVALID', reason: 'Host: a.' },
    /\(Host: a\).*_SERVER_NAME/,
  ],
  ['an expired certificate', 'ClickHouse', { code: 'CERT_HAS_EXPIRED' }, /renew it at the store/],
  [
    'a port without TLS',
    'the schema registry',
    { code: 'ERR_SSL_WRONG_VERSION_NUMBER' },
    /correct SCHEMA_REGISTRY_URL/,
  ],
  ['a port that requires TLS', 'Kafka', { message: 'Broker requires TLS.' }, /set KAFKA_TLS to true/],
  ['a TLS alert', 'Kafka', { code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED' }, /KAFKA_TLS_CERT_FILE/],
  [
    'a wrong password reported by kafkajs',
    'Kafka',
    { name: 'KafkaJSSASLAuthenticationError', message: 'x' },
    /KAFKA_SASL_PASSWORD/,
  ],
  [
    'an unsupported mechanism reported by kafkajs',
    'Kafka',
    { message: 'SASL PLAIN mechanism is not supported by the server' },
    /_MECHANISM/,
  ],
  ['a wrong password', 'Kafka', fault({}, { apiId: 'SASL_AUTHENTICATION_FAILED' }), /KAFKA_SASL_PASSWORD/],
  ['an invalid server signature', 'Kafka', { code: 'PLT_KFK_AUTHENTICATION' }, /KAFKA_SASL_PASSWORD/],
  ['an unexpected login', 'Kafka', fault({}, { type: 'ILLEGAL_SASL_STATE' }), /remove KAFKA_SASL_MECHANISM/],
  ['a wrong password', 'Redis', { message: 'WRONGPASS invalid username-password pair' }, /password in REDIS_URL/],
  ['a missing password', 'Redis', { message: 'NOAUTH Authentication required.' }, /password in REDIS_URL/],
  ['a missing ACL permission', 'Redis', { message: 'NOPERM User x has no permissions' }, /extend the ACL rules/],
  ['a wrong password', 'ClickHouse', { code: '516' }, /CLICKHOUSE_PASSWORD/],
  ['a missing grant', 'ClickHouse', { code: '497' }, /grant this permission to CLICKHOUSE_USER/],
  ['a wrong password', 'the schema registry', { status: 401 }, /SCHEMA_REGISTRY_PASSWORD/],
])('explainConnection names the setting to correct for %s (%s)', (_, store, thrown, message) => {
  const explained = explainConnection(store, thrown);
  expect(explained.message).toMatch(message);
  expect(explained).toMatchObject({ isRefusal: true, message: expect.stringContaining(`${store} cannot be used: `) });
});

it.each<[string, unknown, RegExp]>([
  ['is full', { message: "OOM command not allowed when used memory > 'maxmemory'." }, /\(OOM\).*raise its maxmemory/],
  ['is full', fault({}, { message: 'OOM allow-oom flag is not set on the script' }), /\(OOM\)/],
  ['cannot write its file', { message: 'MISCONF Errors writing to the AOF file' }, /\(MISCONF\).*its disk/],
  ['is a replica', { message: "READONLY You can't write against a read only replica." }, /\(READONLY\).*REDIS_URL/],
  ['lost its replicas', { message: 'NOREPLICAS Not enough good replicas to write.' }, /\(NOREPLICAS\)/],
  ['was emptied', { name: 'MissingEpochFault', message: 'no epoch' }, /npm run rebuild/],
])('explainConnection names the fix when Redis is reachable but %s', (_, thrown, message) => {
  expect(explainConnection('Redis', thrown)).toMatchObject({
    isRefusal: true,
    message: expect.stringMatching(message),
  });
  expect(explainConnection('Kafka', thrown).isRefusal).toBe(false);
});

it('explainConnection names the setting that does not match the cluster of ClickHouse', () => {
  const message = 'CLICKHOUSE_CLUSTER is not set, but the tables belong to cluster playline_2';
  expect(explainConnection('ClickHouse', new WrongCluster(message))).toEqual({ message, isRefusal: true });
});

const loop = fault({});
loop.cause = loop;

it.each<[string, unknown]>([
  ['a refused connection', { code: 'ECONNREFUSED' }],
  ['a login during which the connection broke', { code: 'PLT_KFK_AUTHENTICATION', cause: network }],
  ['a missing fault', null],
  ['a fault that is its own cause', loop],
])('explainConnection reports %s as an unavailable store', (_, thrown) => {
  const explained = explainConnection('Kafka', thrown);
  expect(explained.isRefusal).toBe(false);
  expect(explained.message).toMatch(/^Kafka does not respond/);
});

it('an explanation contains no message from the client or the server', () => {
  const text = fc.stringMatching(/^[a-z]{12,20}$/);
  const code = fc.constantFrom('516', 'CERT_UNTRUSTED', 'ECONNRESET', 'PLT_KFK_AUTHENTICATION', '');
  fc.assert(
    fc.property(text, code, fc.constantFrom(...STORES), (secret, given, store) => {
      const cause = { message: secret, code: secret };
      const thrown = fault({ code: given, message: `WRONGPASS ${secret}`, user: secret }, cause);
      expect(explainConnection(store, thrown).message).not.toContain(secret);
    }),
  );
});

it('a refusal is logged at most once per minute with a count, and is listed as a reason for half a minute', () => {
  const lines: object[] = [];
  let now = 0;
  const faults = createConnectionFaults({ warn: (fields) => lines.push(fields) }, () => now);
  for (let i = 0; i < 100; i++) faults.listenerOf('Kafka')(refused);
  expect(lines).toEqual([{ store: 'Kafka', faults: 1 }]);
  expect(faults.reasons()).toEqual({ Kafka: expect.stringContaining('KAFKA_TLS_CA_FILE') });
  now = 60_000;
  expect(faults.reasons()).toEqual({});
  faults.listenerOf('Kafka')(refused);
  expect(lines).toEqual([
    { store: 'Kafka', faults: 1 },
    { store: 'Kafka', faults: 100 },
  ]);
});

it('an unavailable store is listed as a reason but is not logged', () => {
  const lines: object[] = [];
  const faults = createConnectionFaults({ warn: (fields) => lines.push(fields) });
  faults.listenerOf('Redis')(unavailable);
  expect(lines).toEqual([]);
  expect(faults.reasons()).toEqual({ Redis: 'Redis does not respond (ECONNREFUSED)' });
});

it("a successful check clears the store's reason but does not restart the logging of refusals", async () => {
  const lines: object[] = [];
  let isAvailable = false;
  const faults = createConnectionFaults({ warn: (fields) => lines.push(fields) });
  const ready = faults.clearingOnSuccess('ClickHouse', async () => isAvailable);
  for (const each of [unavailable, refused]) faults.listenerOf('ClickHouse')(each);
  faults.listenerOf('Redis')(unavailable);
  expect(await ready()).toBe(false);
  expect(Object.keys(faults.reasons())).toEqual(['ClickHouse', 'Redis']);
  isAvailable = true;
  expect(await ready()).toBe(true);
  expect(Object.keys(faults.reasons())).toEqual(['Redis']);
  faults.listenerOf('ClickHouse')(refused);
  expect(faults.reasons().ClickHouse).toContain('CLICKHOUSE_TLS_CA_FILE');
  expect(lines).toHaveLength(1);
});

it('a client reconnects quickly to an unavailable store, and at most every 5 s to a store that refuses it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), fc.boolean(), (attempt, isRefused) => {
      const pace = createReconnectPace('Redis', 500);
      pace.recordFault(isRefused ? { message: 'WRONGPASS' } : unavailable);
      const wait = pace.waitMs(attempt);
      expect(wait).toBeGreaterThanOrEqual(50);
      expect(wait).toBeLessThanOrEqual(isRefused ? 5_000 : 500);
      if (isRefused && attempt >= 7) expect(wait).toBe(5_000);
    }),
  );
});

it('a broker that refuses connections receives at most a few dozen attempts per minute', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 400 }), (pausesMs) => {
      let now = 0;
      const gate = createConnectGate('Kafka', () => now);
      let attempts = 0;
      for (const pauseMs of pausesMs) {
        now += pauseMs;
        if (gate.refusalOf('a:1') !== null) continue;
        attempts++;
        gate.settled('a:1', refused);
      }
      // Waits of 100, 200, 400 ms and so on, then of 5 s: seven attempts in the first thirteen seconds.
      expect(attempts).toBeLessThanOrEqual(8 + Math.ceil(now / 5_000));
    }),
  );
});

it('a refusal ends with the first successful attempt and applies only to the broker that refused', () => {
  const gate = createConnectGate('Kafka', () => 0);
  gate.settled('a:1', refused);
  expect(gate.refusalOf('a:1')).toBe(refused);
  expect(gate.refusalOf('b:1')).toBeNull();
  gate.settled('a:1', null);
  expect(gate.refusalOf('a:1')).toBeNull();
  gate.settled('a:1', unavailable);
  expect(gate.refusalOf('a:1')).toBeNull();
});
