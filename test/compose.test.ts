// Compares docker-compose.yml with the Compose specification and the local stack, without a container engine.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSignerPublicKey } from '@playline/access-keys';
import { parseSignerKeys } from '@playline/access-keys/signer';
import { TOPICS } from '@playline/contracts';
import { REDIS_CLUSTER_NODES, SERVICES, type ServiceEntry } from '@playline/infra/local';
import { parseConfig } from '@playline/runtime';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { nodeNames } from '../infra/local/node-names.ts';
import { createSignerKeys, signerPublicKeyOf } from '../infra/local/secrets.ts';
import { topicSettingsOf } from '../infra/local/stack-options.ts';
import { readSettings } from './service-settings.ts';

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const exists = (path: string) => existsSync(new URL(`../${path}`, import.meta.url));

const healthcheckSchema = z.strictObject({
  test: z.tuple([z.enum(['CMD', 'CMD-SHELL'])], z.string()),
  interval: z.string(),
  timeout: z.string(),
  retries: z.number(),
  start_period: z.string(),
});
const conditionSchema = z.strictObject({
  condition: z.enum(['service_healthy', 'service_completed_successfully']),
  required: z.literal(false).optional(),
});
const serviceSchema = z.strictObject({
  image: z.string(),
  pull_policy: z.literal('never').optional(),
  build: z
    .strictObject({ context: z.string(), dockerfile: z.string(), args: z.record(z.string(), z.string()) })
    .optional(),
  profiles: z.array(z.string()).optional(),
  scale: z.string().optional(),
  networks: z.strictObject({ default: z.strictObject({ aliases: z.tuple([z.string()]) }) }).optional(),
  command: z.array(z.string()).optional(),
  entrypoint: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  depends_on: z.record(z.string(), conditionSchema).default({}),
  healthcheck: healthcheckSchema.optional(),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  tmpfs: z.array(z.string()).optional(),
  logging: z.strictObject({ driver: z.string(), options: z.record(z.string(), z.string()) }),
  restart: z.enum(['unless-stopped', 'on-failure:5']).optional(),
  mem_limit: z.string().regex(/^\d+[mg]$/),
  stop_grace_period: z.string().optional(),
  init: z.boolean().optional(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
  user: z.string().optional(),
  extra_hosts: z.array(z.string()).optional(),
});
const fileSchema = z.looseObject({
  name: z.string(),
  services: z.record(z.string(), serviceSchema),
  volumes: z.record(z.string(), z.null()),
});

const { version } = JSON.parse(read('package.json')) as { version: string };
const compose = fileSchema.parse(parse(read('docker-compose.yml'), { merge: true, maxAliasCount: -1 }));
const containers = Object.entries(compose.services);
const longRunning = containers.filter(([, container]) => container.restart === 'unless-stopped');
const processes = containers.flatMap(([name, container]) => {
  const [program, ...args] = container.command ?? container.entrypoint ?? [];
  const file = args.find((arg) => !arg.startsWith('--')) ?? '';
  const nodeOptions = args.slice(0, args.indexOf(file));
  return program === 'node' ? [{ name, file, nodeOptions, container }] : [];
});
const configured = processes.filter(({ file }) => file.startsWith('services/'));
const services = configured.filter(
  ({ file, container }) => !file.startsWith('services/operator/') && container.profiles === undefined,
);

function createSecretsScript() {
  const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  const script = join(folder, 'infra', 'docker', 'secrets.mjs');
  cpSync(new URL('../infra/docker/secrets.mjs', import.meta.url), script, { recursive: true });
  const run = (...args: string[]) => execFileSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  const readEnv = () => readFileSync(join(folder, '.env'), 'utf8');
  return { folder, run, readEnv };
}

const findService = (name: string): ServiceEntry | undefined => SERVICES.find((service) => service.name === name);

describe('docker-compose.yml', () => {
  it('uses only keys of the Compose specification', () => {
    const unknown = Object.keys(compose).filter(
      (key) => !['name', 'services', 'volumes'].includes(key) && !key.startsWith('x-'),
    );
    expect(unknown).toEqual([]);
  });

  it.each(containers)('pins the image version of %s', (_, { image }) => {
    expect(image).toMatch(/^[a-z0-9/-]+:v?\d+(\.\d+)+[A-Za-z0-9.-]*$/);
  });

  it.each(containers)('exposes %s only on the loopback interface', (_, { ports }) => {
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\$\{[A-Z\d_]+:-\d+\}:\d+$/);
  });

  it.each(longRunning)('has a health check with a start period for %s', (_, { healthcheck }) => {
    expect(healthcheck).toMatchObject({ start_period: expect.stringMatching(/^\d+s$/) });
  });

  it('waits only for container states that can occur', () => {
    for (const [name, { depends_on }] of containers) {
      for (const [other, { condition }] of Object.entries(depends_on)) {
        const target = compose.services[other];
        const isReachable =
          condition === 'service_healthy' ? target?.healthcheck !== undefined : target?.restart === 'on-failure:5';
        expect(isReachable, `${name} waits for ${other}: ${condition}`).toBe(true);
      }
    }
  });

  it('contains no secrets, and reports the command that creates a missing secret', () => {
    for (const [name, { environment }] of containers) {
      for (const [variable, value] of Object.entries(environment)) {
        if (!/PASSWORD|PEPPER|CURSOR_KEYS|SIGNER|REDIS_URL/.test(variable)) continue;
        expect(value, `${name}: ${variable}`).toMatch(/\$\{[A-Z_]+:\?run node infra\/docker\/secrets\.mjs\}/);
      }
    }
  });

  it('requires only secrets that infra/docker/secrets.mjs creates', () => {
    const required = [...read('docker-compose.yml').matchAll(/\$\{([A-Z_]+):\?/g)].map((match) => match[1]);
    const created = [...read('infra/docker/secrets.mjs').matchAll(/^ {2}'([A-Z_]+)',$/gm)].map((match) => match[1]);
    expect([...new Set(required)].sort()).toEqual([...created, 'SIGNER_KEYS', 'SIGNER_PUBLIC_KEY'].sort());
  });

  it('passes the signer’s private key only to the minter, and derives a missing public key', () => {
    const signers = containers.filter(([, { environment }]) => 'SIGNER_KEYS' in environment).map(([name]) => name);
    expect(signers).toEqual(['minter']);
    const signing: readonly ServiceEntry[] = SERVICES;
    expect(signing.filter(({ canSign }) => canSign === true).map(({ name }) => name)).toEqual(['minter']);
    expect(read('infra/local/services.ts')).not.toContain('signerKeys');
    const { run, readEnv, folder } = createSecretsScript();
    run();
    const readSetting = (name: string) => new RegExp(`^${name}=(.+)$`, 'm').exec(readEnv())?.[1] ?? '';
    const [signerKeys, publicKey] = [readSetting('SIGNER_KEYS'), readSetting('SIGNER_PUBLIC_KEY')];
    expect(signerPublicKeyOf({ signerKeys })).toBe(publicKey);
    expect(parseSignerKeys(signerKeys)[0]?.publicKey).toEqual(parseSignerPublicKey(publicKey));
    // A missing public key is derived from the private key.
    writeFileSync(join(folder, '.env'), readEnv().replace(/^SIGNER_PUBLIC_KEY=.*\n/m, ''));
    run();
    expect([readSetting('SIGNER_KEYS'), readSetting('SIGNER_PUBLIC_KEY')]).toEqual([signerKeys, publicKey]);
    rmSync(folder, { recursive: true });
  });

  it('uses secrets that are created once, and that are added to an existing .env', () => {
    const { run, readEnv, folder } = createSecretsScript();
    run();
    const complete = readEnv();
    expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600);
    expect(run()).toContain('already contains all secrets');
    expect(readEnv()).toBe(complete);
    // The last line has no line break, because some editors omit it.
    const older = complete.replace(/^CURSOR_SECRET=.*\n/m, '').trimEnd();
    writeFileSync(join(folder, '.env'), older);
    expect(run()).toContain('CURSOR_SECRET written');
    expect(readEnv()).toMatch(new RegExp(`^${older}\\nCURSOR_SECRET=[0-9a-f]{64}\\n$`));
    rmSync(folder, { recursive: true });
  });

  it('declares all mounted volumes and mounts only existing files', () => {
    for (const volume of containers.flatMap(([, { volumes }]) => volumes)) {
      const [source = ''] = volume.split(':');
      expect(source.startsWith('./') ? exists(source.slice(2)) : source in compose.volumes, volume).toBe(true);
    }
  });

  it.each(processes)('runs an existing file of the common image in $name without privileges', ({ file, container }) => {
    expect(exists(file), file).toBe(true);
    expect(container).toMatchObject({
      image: `playline:${version}`,
      pull_policy: 'never',
      init: true,
      read_only: true,
      cap_drop: ['ALL'],
    });
  });
});

describe('the profile "monitoring" of docker-compose.yml', () => {
  const monitoring = containers.filter(([, { profiles }]) => profiles?.includes('monitoring'));

  it('contains Prometheus, Alertmanager and Grafana', () => {
    expect(monitoring.map(([name]) => name)).toEqual(['prometheus', 'alertmanager', 'grafana']);
  });

  it.each(monitoring)('runs %s without privileges and with a read-only file system', (_, container) => {
    expect(container).toMatchObject({
      user: expect.stringMatching(/^[1-9]\d*:\d+$/),
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    for (const volume of container.volumes) if (volume.startsWith('./')) expect(volume).toMatch(/:ro$/);
  });

  it('scrapes every service at the port of its metrics', () => {
    const { scrape_configs: jobs } = parse(read('infra/prometheus/prometheus.yml')) as {
      scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; port: number }[] }[];
    };
    expect(jobs.map(({ job_name: name }) => name)).toEqual(['playline']);
    const [{ names = [], port } = {}] = jobs[0]?.dns_sd_configs ?? [];
    expect(names.toSorted()).toEqual(services.map(({ name }) => name).sort());
    for (const { container } of services) expect(container.environment.ADMIN_PORT).toBe(String(port));
  });

  it('uses addresses and files that exist', () => {
    for (const [path, address] of [
      ['infra/prometheus/prometheus.yml', 'alertmanager:9093'],
      ['infra/dashboards/provisioning/datasources/prometheus.yml', 'http://prometheus:9090'],
      ['infra/dashboards/provisioning/dashboards/playline.yml', '/etc/playline'],
    ] as const)
      expect(read(path)).toContain(address);
    expect(compose.services.grafana?.volumes).toContain('./infra/dashboards:/etc/playline:ro');
    const home = compose.services.grafana?.environment.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH ?? '';
    expect(exists(home.replace('/etc/playline', 'infra/dashboards')), home).toBe(true);
    for (const name of ['prometheus', 'alertmanager']) expect(exists(`infra/prometheus/${name}.yml`), name).toBe(true);
  });
});

describe('the profile "cluster" of docker-compose.yml', () => {
  const { folder, run, readEnv } = createSecretsScript();
  afterAll(() => rmSync(folder, { recursive: true }));
  run('--cluster');
  const settings = Object.fromEntries(
    [...readEnv().matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  const added = containers.filter(([, { profiles }]) => profiles?.includes('cluster'));

  it('adds two brokers that differ from the first one only in their id, address and volume', () => {
    const { kafka } = compose.services;
    for (const id of ['2', '3']) {
      const name = `kafka-${id}`;
      const broker = compose.services[name];
      const { KAFKA_ADVERTISED_LISTENERS: listeners } = broker?.environment ?? {};
      expect(broker).toEqual({
        ...kafka,
        profiles: ['cluster'],
        ports: [expect.any(String)],
        volumes: [`${name}-data:/var/lib/kafka/data`],
        environment: { ...kafka?.environment, KAFKA_NODE_ID: id, KAFKA_ADVERTISED_LISTENERS: listeners },
      });
      expect(listeners).toMatch(new RegExp(`^INSIDE://${name}:9092,OUTSIDE://127\\.0\\.0\\.1:`));
      expect(settings.KAFKA_VOTERS).toContain(`${id}@${name}:9093`);
      expect(settings.KAFKA_BROKERS).toContain(`${name}:9092`);
    }
  });

  it('adds nodes of Redis and ClickHouse that differ from the first one only in their name, port and volume', () => {
    const nodes = nodeNames('redis', REDIS_CLUSTER_NODES);
    expect(settings.REDIS_NODES).toBe(nodes.map((name) => `${name}:6379`).join());
    expect(settings.IDENTITY_CELLS).toBe(String(TOPICS.identityLinks.partitions));
    expect(Object.keys(compose.services['redis-cluster']?.depends_on ?? {})).toEqual(nodes);
    expect(settings.CLICKHOUSE_SHARD_URLS).toBe('http://clickhouse:8123,http://clickhouse-2:8123');
    for (const name of [...nodes.slice(1), 'clickhouse-2']) {
      const [first = ''] = name.split('-');
      const node = compose.services[first];
      const [, ...files] = node?.volumes ?? [];
      expect(compose.services[name]).toEqual({
        ...node,
        profiles: ['cluster'],
        ports: expect.any(Array),
        volumes: [expect.stringMatching(`^${name}-data:`), ...files],
        environment: { ...node?.environment, [`${first.toUpperCase()}_NODE`]: name },
      });
    }
  });

  it('runs two processes of each service, which Prometheus finds under one name', () => {
    const scaled = services.filter(({ container }) => container.scale !== undefined).map(({ name }) => name);
    const second = added.flatMap(([name, { command }]) => (command?.[0] === 'node' ? [name] : []));
    expect([...scaled, ...second.map((name) => name.replace(/-2$/, ''))].sort()).toEqual(
      services.map(({ name }) => name).sort(),
    );
    for (const name of scaled) expect(compose.services[name]?.scale).toBe(`\${SERVICE_PROCESSES:-1}`);
    for (const name of second)
      expect(compose.services[name]?.networks?.default.aliases).toEqual([name.replace(/-2$/, '')]);
    expect(settings.SERVICE_PROCESSES).toBe('2');
  });

  it('uses every setting that infra/docker/secrets.mjs --cluster writes, and refuses an existing deployment', () => {
    const text = read('docker-compose.yml');
    const { COMPOSE_PROFILES: profile, ...others } = settings;
    expect(profile).toBe('cluster');
    for (const name of Object.keys(others)) expect(text).toMatch(new RegExp(`\\$\\{${name}:`));
    const single = createSecretsScript();
    single.run();
    expect(() => single.run('--cluster')).toThrow(/cannot become a cluster/);
    expect(single.readEnv()).not.toContain('KAFKA_VOTERS');
    rmSync(single.folder, { recursive: true });
  });

  it('replicates topics like the cluster of the local stack', () => {
    expect(settings).toMatchObject(topicSettingsOf({ cluster: true }));
    expect(settings).toMatchObject({ KAFKA_REPLICAS: '3', KAFKA_REPLICAS_IN_SYNC: '2' });
  });
});

describe('the service image', () => {
  it('is built once, with its version and commit', () => {
    const builds = containers.flatMap(([, { build }]) => (build === undefined ? [] : [build]));
    const args = { VERSION: version, COMMIT: expect.stringMatching(/^\$\{COMMIT:-unknown\}$/) };
    expect(builds).toEqual([{ context: '.', dockerfile: 'infra/docker/Dockerfile', args }]);
  });

  const dockerfile = read('infra/docker/Dockerfile');

  it('is based on a pinned Node version and runs as an unprivileged user', () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map((match) => match[1]);
    for (const base of bases) expect(base).toMatch(/^node:24\.\d+\.\d+-bookworm-slim$/);
    expect([...dockerfile.matchAll(/^USER (\S+)$/gm)].at(-1)?.[1]).toBe('node');
  });

  it('installs the dependencies of every service that a container runs', () => {
    for (const { file } of processes) {
      const workspace = file.startsWith('services/') ? file.split('/')[1] : 'infra';
      expect(dockerfile).toContain(`-w @playline/${workspace}`);
    }
  });
});

describe('docker-compose.yml', () => {
  it('runs the same services as the local stack', () => {
    const folders = readdirSync(new URL('../services/', import.meta.url)).filter((name) => name !== 'operator');
    for (const list of [services, SERVICES]) expect(list.map(({ name }) => name).sort()).toEqual(folders.sort());
  });

  it.each(configured)('sets only existing settings of $name, to valid values', async ({ file, container }) => {
    const service = file.split('/')[1] ?? '';
    const schema = await readSettings(service);
    const settings = { ...schema.shape, ...findService(service)?.environment };
    const unknown = Object.keys(container.environment).filter((variable) => !(variable in settings));
    expect(unknown, 'unknown settings').toEqual([]);
    expect(() => parseConfig(schema, fillIn(container.environment))).not.toThrow();
  });

  it('sets the number of proxies for every service that uses client addresses', async () => {
    const names: string[] = [];
    for (const { name, file, container } of services) {
      const { shape } = await readSettings(file.split('/')[1] ?? '');
      if (!('TRUSTED_PROXIES' in shape)) continue;
      names.push(name);
      expect(container.environment.TRUSTED_PROXIES, name).toMatch(/^\$\{TRUSTED_PROXIES:-0\}$/);
    }
    expect(names.sort()).toEqual(['chain-api', 'gateway', 'portal']);
  });
});

function fillIn(environment: Record<string, string>): Record<string, string> {
  const signerKey = signerPublicKeyOf({ signerKeys: createSignerKeys() });
  const fill = (value: string) =>
    value
      .replace(/\$\{[A-Z\d_]+:-([^}]*)\}/g, '$1')
      .replace(/\$\{SIGNER_PUBLIC_KEY:[^}]*\}/g, signerKey)
      .replace(/\$\{[^}]*\}/g, 'ab'.repeat(32));
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, fill(value)]));
}

describe('docker-compose.yml and the local stack', () => {
  it('use the same settings for ClickHouse and Redis', () => {
    const [, copied = ''] = /for name in ([a-z -]+); do/.exec(read('infra/docker/clickhouse-entrypoint.sh')) ?? [];
    const [, local = ''] =
      /for \(const name of \[([^\]]+)\]\)\n.*'config\.d'/.exec(read('infra/local/clickhouse.ts')) ?? [];
    const files = [...local.matchAll(/'([a-z-]+)\.xml'/g)].map(([, name]) => name);
    expect(files.length).toBeGreaterThan(2);
    // The local stack writes the log of its process instead of a log file.
    expect(copied.split(' ').sort()).toEqual([...files, 'server-log'].sort());
    for (const name of files) expect(exists(`infra/clickhouse/${name}.xml`)).toBe(true);
    expect(compose.services.redis?.volumes).toContain('./infra/redis:/playline/redis:ro');
  });

  it.each(services)('start $name with the same Node and allocator options', (service) => {
    const { nodeOptions = [], environment = {} } = findService(service.name) ?? {};
    expect(service.nodeOptions).toEqual(nodeOptions);
    expect(service.container.environment).toMatchObject(environment);
  });

  it('prepare the stores with the same commands', () => {
    const local = [...read('infra/local/deployment.ts').matchAll(/main: '([^']+)'/g)].map((match) => match[1]);
    expect(local.length).toBeGreaterThan(1);
    expect(processes.map(({ file }) => file)).toEqual(expect.arrayContaining(local));
  });

  it.each(configured)('pass the same settings to $name', async ({ file, container }) => {
    const { shape } = await readSettings(file.split('/')[1] ?? '');
    const local = [...read('infra/local/stack.ts').matchAll(/^ +([A-Z]+_[A-Z_]+): /gm)].map((match) => match[1] ?? '');
    expect(local.length).toBeGreaterThan(4);
    expect(Object.keys(container.environment)).toEqual(expect.arrayContaining(local.filter((name) => name in shape)));
  });

  it('use the same database and accounts', () => {
    const [, database] = /DATABASE = '(\w+)'/.exec(read('infra/local/clickhouse.ts')) ?? [];
    for (const { name, container } of services) {
      if (!('CLICKHOUSE_USER' in container.environment)) continue;
      const account = { CLICKHOUSE_DATABASE: database, CLICKHOUSE_USER: findService(name)?.account ?? 'writer' };
      expect(container.environment, name).toMatchObject(account);
    }
    expect(compose.services['chain-api']?.environment).toMatchObject({ CLICKHOUSE_USER: 'reader' });
    expect(compose.services.tables?.environment).toMatchObject({ CLICKHOUSE_DATABASE: database });
  });

  it('configure Kafka identically', () => {
    const local = new Map(
      [...read('infra/local/kafka.ts').matchAll(/^ {4}'([a-z.]+)': (.+),$/gm)].map((match) => [match[1], match[2]]),
    );
    expect(local.size).toBeGreaterThan(10);
    for (const [variable, value] of Object.entries(fillIn(compose.services.kafka?.environment ?? {}))) {
      const setting = variable.replace('KAFKA_', '').toLowerCase().replaceAll('_', '.');
      const localValue = local.get(setting);
      // Addresses and folders must differ. In the local stack, they are templates.
      if (localValue === undefined || !/^[\d *]+$|^(true|false)$/.test(localValue)) continue;
      const product = String(localValue.split('*').reduce((total, factor) => total * Number(factor), 1));
      expect(value, setting).toBe(/^[\d *]+$/.test(localValue) ? product : localValue);
    }
  });

  it('use the same versions of Kafka and ClickHouse', () => {
    const [, kafka] = /<kafka\.version>([\d.]+)</.exec(read('infra/local/jars/pom.xml')) ?? [];
    const [, clickhouse] = /"@chdb\/lib-linux-x64-gnu": "(\d+\.\d+)/.exec(read('infra/package.json')) ?? [];
    expect(compose.services.kafka?.image).toBe(`apache/kafka:${kafka}`);
    expect(compose.services.clickhouse?.image).toBe(`clickhouse/clickhouse-server:${clickhouse}`);
  });
});
