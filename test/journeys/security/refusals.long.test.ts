import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applySql } from '@playline/infra/clickhouse';
import { applyTopics } from '@playline/infra/kafka';
import {
  type CertificateFiles,
  createAuthority,
  createStackFetch,
  freePorts,
  type Stack,
  securitySettings,
  setScramPassword,
  startStack,
} from '@playline/infra/local';
import { testStackFolder } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { openServiceProcess, type ServiceName, type ServiceProcess } from '../../faults/world/service-process.ts';
import { checkRecovery, checkRefusal, type Refusal, type Settings, type Store } from './check-refusal.ts';
import { openTlsProxy, type TlsProxy } from './tls-proxy.ts';

/** The user for whom tests send a wrong password. */
const TENANT = 'tenant';
const folder = testStackFolder('refusals');
const authority = createAuthority(join(folder, 'tls'), 'authority of a Playline stack');
const unrelatedAuthority = createAuthority(join(folder, 'stranger'), 'an unrelated authority');
const HOSTS = ['localhost', '127.0.0.1'];
const validCertificate = authority.issue('server', HOSTS);
const invalidCertificates: Record<'authority' | 'host', CertificateFiles> = {
  authority: unrelatedAuthority.issue('server', HOSTS),
  host: authority.issue('elsewhere', ['elsewhere.example']),
};

let stack: Stack;
const proxies = {} as Record<Store, TlsProxy>;
let base: Settings;
const proxied = {} as Record<Store, Settings>;

function toProxyUrl(address: string, store: Store, login?: { user: string; password: string }): string {
  const url = new URL(address);
  url.port = String(proxies[store].port);
  if (login !== undefined) [url.username, url.password] = [login.user, login.password];
  return url.href.replace(/\/$/, '');
}

beforeAll(async () => {
  for (const store of ['Kafka', 'Redis', 'ClickHouse', 'the schema registry'] as const)
    proxies[store] = await openTlsProxy(validCertificate);
  const frontPorts = { kafkaFrontPort: proxies.Kafka.port };
  stack = await startStack({ directory: folder, services: [], security: true, ...frontPorts });
  const { kafka, redis, registry, clickhouse, security } = stack.file;
  const caFile = authority.certificate;
  const portOf = (address: string) => Number(new URL(address).port);
  proxies.Kafka.forwardTo({ port: stack.kafkaFront!, caFile });
  proxies.Redis.forwardTo({ port: portOf(redis), caFile });
  proxies.ClickHouse.forwardTo({ port: portOf(clickhouse.url), caFile });
  proxies['the schema registry'].forwardTo({ port: portOf(registry), caFile });
  const ca = readFileSync(caFile, 'utf8');
  const sasl = { mechanism: 'SCRAM-SHA-512', ...security!.kafka } as const;
  await applyTopics({
    brokers: kafka,
    security: { tls: { ca }, sasl },
    registry,
    fetch: createStackFetch(caFile, security!.registry),
    prefix: '',
    partitions: 1,
  });
  await applySql({ ...clickhouse, tls: { ca } });
  base = {
    ...securitySettings(security!),
    LOG_LEVEL: 'debug',
    IDENTITY_PEPPER: 'ab'.repeat(32),
    KAFKA_BROKERS: kafka.join(),
    REDIS_URL: redis,
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_USER: 'writer',
    CLICKHOUSE_PASSWORD: JSON.parse(readFileSync(join(folder, 'secrets.json'), 'utf8')).writerPassword,
    CLICKHOUSE_DATABASE: clickhouse.database,
    SCHEMA_REGISTRY_URL: registry,
  };
  proxied.Kafka = { KAFKA_BROKERS: `localhost:${proxies.Kafka.port}` };
  proxied.Redis = { REDIS_URL: toProxyUrl(redis, 'Redis') };
  proxied.ClickHouse = { CLICKHOUSE_URL: toProxyUrl(clickhouse.url, 'ClickHouse') };
  proxied['the schema registry'] = { SCHEMA_REGISTRY_URL: toProxyUrl(registry, 'the schema registry') };
}, 240_000);

afterAll(async () => {
  await stack?.stop();
  await Promise.all(Object.values(proxies).map((proxy) => proxy.close()));
  rmSync(folder, { recursive: true, force: true });
});

async function start(service: ServiceName, settings: Settings): Promise<ServiceProcess> {
  const [http = 0, admin = 0] = await freePorts(2);
  const name = `${service}-${randomUUID().slice(0, 8)}`;
  const group: Settings = service === 'gateway' ? {} : { CONSUMER_GROUP: name };
  const environment = { ...base, ...group, ...settings };
  const logFile = join(folder, 'logs', `${name}.log`);
  return openServiceProcess({ service, name, environment, logFile, ports: { http, admin } });
}

async function withServices(
  { store, services, settings = {} }: Pick<Refusal, 'store' | 'services'> & { settings?: Settings },
  check: (processes: readonly ServiceProcess[]) => Promise<void>,
): Promise<void> {
  const processes = await Promise.all(services.map((service) => start(service, { ...proxied[store], ...settings })));
  try {
    await check(processes);
  } finally {
    await Promise.all(processes.map((service) => service.close()));
    proxies[store].useCertificate(validCertificate);
  }
}

const PREFIX = { Kafka: 'KAFKA', Redis: 'REDIS', ClickHouse: 'CLICKHOUSE', 'the schema registry': 'SCHEMA_REGISTRY' };

/** Tests for a store share a proxy, so they run sequentially. The Kafka tests run in parallel with all other tests. */
const parallel = { concurrent: true } as const;
const sequential = { concurrent: false } as const;

function certificateTest(store: Store, services: readonly ServiceName[]): void {
  const prefix = `${store} cannot be used: .*`;
  const messages = {
    authority: `^.*${prefix}not signed by an authority.*${PREFIX[store]}_TLS_CA_FILE`,
    host: `${prefix}another host name.*${PREFIX[store]}_TLS`,
  };
  it(
    `services report in one line that the certificate of ${store} is untrusted or for another host, and recover once it is valid`,
    sequential,
    async () => {
      proxies[store].useCertificate(invalidCertificates.authority);
      await withServices({ store, services }, async (processes) => {
        for (const flaw of ['authority', 'host'] as const) {
          proxies[store].useCertificate(invalidCertificates[flaw]);
          await checkRefusal({ store, services, message: new RegExp(messages[flaw]) }, processes, proxies[store]);
        }
        proxies[store].useCertificate(validCertificate);
        await checkRecovery(processes);
      });
    },
  );
}

interface LoginTest extends Pick<Refusal, 'store' | 'services' | 'message'> {
  login?: string;
  settings(wrong: string): Settings;
  /** Makes the wrong password the correct one. If absent, the test does not wait for recovery. */
  accept?(wrong: string): Promise<void> | void;
}

function loginTest({ store, services, message, login = 'login', settings, accept }: LoginTest): void {
  const end = accept === undefined ? '' : ', and recover once the password is accepted';
  it(`services report a wrong ${login} for ${store} in one line${end}`, sequential, async () => {
    const wrong = `wrong-${randomUUID()}`;
    const secrets = [wrong, Buffer.from(wrong).toString('base64'), Buffer.from(`playline:${wrong}`).toString('base64')];
    await withServices({ store, services, settings: settings(wrong) }, async (processes) => {
      await checkRefusal({ store, services, message, secrets }, processes, proxies[store]);
      if (accept === undefined) return;
      await accept(wrong);
      await checkRecovery(processes, secrets);
    });
  });
}

describe('Kafka', parallel, () => {
  certificateTest('Kafka', ['gateway', 'event-writer']);

  const kafkaLogin = {
    store: 'Kafka',
    services: ['gateway', 'event-writer'],
    message: /Kafka cannot be used: it refuses the login .*KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD/,
  } as const;
  const setPassword = (password: string) => setScramPassword(stack.plaintext.kafka[0]!, { username: TENANT, password });

  beforeAll(() => setPassword(`right-${randomUUID()}`));
  loginTest({
    ...kafkaLogin,
    login: 'SCRAM-SHA-512 login',
    settings: (wrong) => ({ KAFKA_SASL_USERNAME: TENANT, KAFKA_SASL_PASSWORD: wrong }),
    accept: setPassword,
  });

  // PLAIN users are part of the broker's settings, so their passwords cannot be changed here.
  loginTest({
    ...kafkaLogin,
    login: 'PLAIN login',
    settings: (wrong) => ({ KAFKA_SASL_MECHANISM: 'PLAIN', KAFKA_SASL_PASSWORD: wrong }),
  });
});

describe('other stores', parallel, () => {
  describe('Redis', sequential, () => {
    certificateTest('Redis', ['gateway']);

    const setPassword = async (password: string) => {
      const admin = new Redis(stack.file.redis, { tls: { ca: readFileSync(authority.certificate) } });
      await admin.call('ACL', 'SETUSER', TENANT, 'on', 'resetpass', `>${password}`, '~*', '&*', '+@all');
      admin.disconnect();
    };
    beforeAll(() => setPassword(`right-${randomUUID()}`));
    loginTest({
      store: 'Redis',
      services: ['gateway'],
      message: /Redis cannot be used: it refuses the login \(WRONGPASS\): correct user and password in REDIS_URL/,
      settings: (password) => ({ REDIS_URL: toProxyUrl(stack.file.redis, 'Redis', { user: TENANT, password }) }),
      accept: setPassword,
    });
  });

  describe('ClickHouse', sequential, () => {
    certificateTest('ClickHouse', ['event-writer']);

    loginTest({
      store: 'ClickHouse',
      services: ['event-writer'],
      message:
        /ClickHouse cannot be used: it refuses the login \(516\): correct CLICKHOUSE_USER and CLICKHOUSE_PASSWORD/,
      settings: (wrong) => ({ CLICKHOUSE_USER: TENANT, CLICKHOUSE_PASSWORD: wrong }),
      accept: (wrong) => {
        // ClickHouse reads its users at startup, and the stack restarts a killed ClickHouse.
        const tenant = `<password>${wrong}</password><networks><ip>::/0</ip></networks><profile>service</profile><quota>default</quota><grants><query>GRANT ALL ON playline*.*</query></grants>`;
        const users = join(folder, 'etc', 'clickhouse', 'users.d', 'tenant.xml');
        writeFileSync(users, `<clickhouse><users><${TENANT}>${tenant}</${TENANT}></users></clickhouse>`);
        process.kill(stack.file.processes.clickhouse!, 'SIGKILL');
      },
    });
  });

  describe('the schema registry', sequential, () => {
    certificateTest('the schema registry', ['gateway']);
  });
});

// Runs last, because no other service can use the registry after the password is changed.
describe('the schema registry with a changed password', sequential, () => {
  loginTest({
    store: 'the schema registry',
    services: ['gateway'],
    message: /the schema registry cannot be used: it refuses the login \(HTTP 401\): correct SCHEMA_REGISTRY_USERNAME/,
    settings: (wrong) => ({ SCHEMA_REGISTRY_PASSWORD: wrong }),
    accept: (password) => {
      const path = join(folder, 'etc', 'registry-relay.json');
      const settings = JSON.parse(readFileSync(path, 'utf8'));
      writeFileSync(path, JSON.stringify({ ...settings, login: { ...settings.login, password } }));
      process.kill(stack.file.processes['registry-relay']!, 'SIGKILL');
    },
  });
});
