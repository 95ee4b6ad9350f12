import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVICES } from '@playline/infra/local';
import { parseConfig } from '@playline/runtime';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAuthority } from '../../infra/local/certificates.ts';
import { createSignerKeys, signerPublicKeyOf } from '../../infra/local/secrets.ts';
import { type Helm, KUBERNETES, type Manifest, openHelm, openSchemas } from './helm.ts';
import { describeProcesses, readAllSettings } from './processes.ts';

// Renders the chart with Helm, without a cluster. The first run builds Helm.

const SETS = {
  small: ['-f', 'values/small.yaml'],
  production: ['-f', 'values/production.yaml'],
  cluster: ['-f', 'values/production.yaml', '-f', 'values/cluster.yaml'],
  scaled: ['-f', 'values/production.yaml', '-f', 'values/scaled.yaml'],
} as const;
type SetName = keyof typeof SETS;
const setNames = Object.keys(SETS) as SetName[];
const BUILD_MAX_MS = 40 * 60_000;

let opened: ReturnType<typeof openHelm>;
const folder = mkdtempSync(join(tmpdir(), 'helm-'));
const authority = createAuthority(folder, 'helm');
beforeAll(() => {
  opened = openHelm();
  if (opened.helm === null) console.warn(`${opened.reason}: the chart was not rendered`);
}, BUILD_MAX_MS);
beforeEach((context) => context.skip(opened.helm === null, 'Helm cannot be built'));
afterAll(() => rmSync(folder, { recursive: true }));

const helm = () => opened.helm as Helm;
const render = (name: SetName) => helm().render(SETS[name]);

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { name: string; key: string; optional?: boolean } };
}

/** Returns the processes among the objects: the pods of Deployments and Jobs. */
function podsOf(manifests: readonly Manifest[]) {
  return manifests.flatMap(({ kind, spec }) => {
    if (kind !== 'Deployment' && kind !== 'Job') return [];
    const { metadata, spec: pod } = spec.template;
    const [container] = pod.containers;
    const component: string = metadata.labels['app.kubernetes.io/component'];
    const variables: readonly Variable[] = container.env;
    // `identity` runs an operator command.
    return [{ component, process: component === 'identity' ? 'operator' : component, kind, pod, container, variables }];
  });
}

/** The content of the Secrets, without the keys that the settings of `small.yaml` do not need. */
function createSecrets(name: SetName): Record<string, string> {
  const secret = 'ab'.repeat(32);
  const signerKeys = createSignerKeys();
  const accounts = ['WRITER', 'READER', 'PORTAL', 'OPERATOR'].map((account) => [
    `CLICKHOUSE_${account}_PASSWORD`,
    secret,
  ]);
  const small = {
    ...Object.fromEntries(accounts),
    IDENTITY_PEPPER: secret,
    PORTAL_SECRET: secret,
    REDIS_URL: 'redis://:password@redis.stores.svc:6379',
  };
  if (name === 'small') return small;
  return {
    ...small,
    REDIS_URL: 'rediss://:password@redis.example.com:6379',
    KAFKA_SASL_PASSWORD: secret,
    SCHEMA_REGISTRY_PASSWORD: secret,
    CURSOR_KEYS: `1=${secret}`,
    SIGNER_KEYS: signerKeys,
    SIGNER_PUBLIC_KEY: signerPublicKeyOf({ signerKeys }),
    CHAIN_NODES: '[{"name":"mainnet","id":"eip155:1","urls":["https://node.example.com/key"]}]',
  };
}

/** Returns the environment that Kubernetes passes to the process. Certificate files are in the test's folder. */
function toEnvironment(variables: readonly Variable[], secrets: Record<string, string>): Record<string, string> {
  const entries = variables.flatMap(({ name, value, valueFrom }): [string, string][] => {
    if (value !== undefined) return [[name, name.endsWith('_FILE') ? authority.certificate : value]];
    const { key, optional = false } = valueFrom?.secretKeyRef ?? { key: '' };
    const secret = secrets[key];
    if (secret === undefined && !optional) throw new Error(`the pod does not start: no Secret has the key ${key}`);
    return secret === undefined ? [] : [[name, secret]];
  });
  return Object.fromEntries(entries);
}

it.each(KUBERNETES)('Helm renders every set of values to objects that Kubernetes %s accepts', (version) => {
  const findProblems = openSchemas(version);
  for (const name of setNames) {
    helm().lint(SETS[name]);
    const manifests = helm().render(SETS[name], version);
    expect(manifests.flatMap(findProblems), name).toEqual([]);
    const kinds = new Set(manifests.map(({ kind }) => kind));
    expect(['Ingress', 'HorizontalPodAutoscaler'].filter((kind) => kinds.has(kind)).length).toBe(
      name === 'small' ? 0 : 2,
    );
    expect(kinds.has('ScaledObject')).toBe(name === 'scaled');
  }
  const [deployment] = render('small').filter(({ kind }) => kind === 'Deployment');
  deployment?.spec.template.spec.containers.push({ name: 'mistyped', resorces: {} });
  expect([deployment].flatMap((manifest) => (manifest ? findProblems(manifest) : []))).toEqual([
    expect.stringContaining('resorces'),
  ]);
});

it.each(setNames)('every process of the values "%s" accepts its settings and has no others', async (name) => {
  const [schemas, processes] = [await readAllSettings(), await describeProcesses()];
  const secrets = createSecrets(name);
  const pods = podsOf(render(name));
  for (const { component, process, variables, container } of pods) {
    const schema = schemas.get(process);
    if (schema === undefined) throw new Error(`${component}: no settings`);
    const known = { ...schema.shape, ...processes[process]?.environment };
    expect(
      variables.flatMap((variable) => (variable.name in known ? [] : [variable.name])),
      `unknown settings of ${component}`,
    ).toEqual([]);
    const parsed = parseConfig(schema, toEnvironment(variables, secrets));
    if ('ADMIN_HOST' in schema.shape) expect(parsed).toMatchObject({ ADMIN_HOST: '0.0.0.0', ADMIN_PORT: 9464 });
    const file = container.command.find((argument: string) => argument.endsWith('.ts'));
    if (component !== 'operator') expect(existsSync(new URL(`../../${file}`, import.meta.url)), file).toBe(true);
  }
  const services = pods.filter(({ kind, component }) => kind === 'Deployment' && component !== 'operator');
  const expected = SERVICES.filter(
    (service) => name !== 'small' || !['chain-api', 'chain-indexer', 'minter'].includes(service.name),
  );
  expect(services.map(({ component }) => component).sort()).toEqual(expected.map((service) => service.name).sort());
});

describe('Helm refuses', () => {
  it.each([
    ['a setting that no service has', 'settings.KAFKA_BROKER=a:9092', 'no service has the setting KAFKA_BROKER'],
    [
      'a setting that the service does not have',
      'services.gateway.settings.SCRUB_AT=01:00',
      'gateway has no setting SCRUB_AT',
    ],
    ['to omit a required setting', 'settings.KAFKA_BROKERS=', 'requires the setting KAFKA_BROKERS'],
    ['a secret among the settings', 'settings.REDIS_URL=redis://a:6379', 'REDIS_URL must be in the Secret'],
    ['a setting that the chart derives', 'settings.ADMIN_HOST=a', 'the chart sets ADMIN_HOST'],
    ['one consumer group for all services', 'settings.CONSUMER_GROUP=a', 'share one consumer group'],
    ['an Ingress without the number of proxies', 'ingress.className=nginx', 'TRUSTED_PROXIES is required'],
    ['to scale a consumer without KEDA', 'services.event-writer.maxReplicas=4', 'requires keda.enabled'],
    [
      'a broker whose port the network policy blocks',
      'settings.KAFKA_BROKERS=a:9094',
      'ports does not contain port 9094',
    ],
    ['an unknown value', 'keda.enable=true', "'enable' not allowed"],
    ['an unknown service', 'services.writer.replicas=1', "'writer' not allowed"],
  ])('%s', (_, value, message) => {
    expect(() => helm().render([...SETS.small, '--set', value])).toThrow(message);
  });
});

it('pods contain no secrets but references, and only the minter refers to the signer’s keys', async () => {
  const processes = await describeProcesses();
  const pods = podsOf(render('production'));
  for (const { process, variables } of pods) {
    const { required = [], optional = [] } = processes[process]?.secrets ?? {};
    const references = variables.filter(({ valueFrom }) => valueFrom !== undefined).map(({ name }) => name);
    expect(references.sort()).toEqual([...required, ...optional].sort());
  }
  const signers = pods.filter(({ variables }) =>
    variables.some(({ valueFrom }) => valueFrom?.secretKeyRef.name === 'playline-signer'),
  );
  expect(signers.map(({ component }) => component)).toEqual(['minter']);
  expect(render('production').filter(({ kind }) => kind === 'Secret')).toEqual([]);
});

it('the Jobs create topics, then tables, then the epoch, before every installation and upgrade', () => {
  const jobs = render('production').filter(({ kind }) => kind === 'Job');
  const weights = jobs.map(({ metadata: { name, annotations = {} } }) => {
    expect(annotations['helm.sh/hook']).toBe('pre-install,pre-upgrade');
    return [Number(annotations['helm.sh/hook-weight']), name];
  });
  expect(weights.sort()).toEqual([
    [0, 'playline-topics'],
    [1, 'playline-tables'],
    [2, 'playline-identity'],
  ]);
});

it('every pod is unprivileged, and every service has probes, a disruption budget and a network policy', () => {
  const manifests = render('production');
  const has = (kind: string, name: string) =>
    manifests.some((manifest) => manifest.kind === kind && manifest.metadata.name === `playline-${name}`);
  for (const { component, kind, pod, container } of podsOf(manifests)) {
    expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } });
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    expect(has('NetworkPolicy', component), component).toBe(true);
    if (kind === 'Job' || component === 'operator') continue;
    expect(container).toMatchObject({
      livenessProbe: { httpGet: { path: '/livez', port: 'admin' } },
      readinessProbe: { httpGet: { path: '/readyz', port: 'admin' } },
      ports: expect.arrayContaining([{ name: 'admin', containerPort: 9464 }]),
    });
    expect(has('PodDisruptionBudget', component), component).toBe(true);
    // A service takes up to 25 s to stop, after `preStop`.
    const pauseS = container.lifecycle?.preStop.sleep.seconds ?? 0;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(25 + pauseS);
  }
});

it('a process may connect only to the stores whose addresses it has', () => {
  const policies = render('small').filter(({ kind }) => kind === 'NetworkPolicy');
  const portsOf = (component: string) => {
    const policy = policies.find(({ metadata }) => metadata.name === `playline-${component}`);
    const egress: readonly { ports: readonly { port: number }[] }[] = policy?.spec.egress ?? [];
    return [...new Set(egress.flatMap(({ ports }) => ports.map(({ port }) => port)))].sort((a, b) => a - b);
  };
  const [dns, nodes, redis, registry, clickhouse, kafka] = [53, 443, 6379, 8081, 8123, 9092];
  const smtp = [465, 587];
  expect(portsOf('event-writer')).toEqual([dns, registry, clickhouse, kafka]);
  expect(portsOf('gateway')).toEqual([dns, redis, registry, kafka]);
  expect(portsOf('identity-linker')).toEqual([dns, redis, registry, kafka]);
  expect(portsOf('portal')).toEqual([dns, nodes, ...smtp, redis, registry, clickhouse, kafka]);
  expect(portsOf('tables')).toEqual([dns, clickhouse]);
  expect(portsOf('topics')).toEqual([dns, registry, kafka]);
});

it('consumers scale by the lag of their own group on the topics that they read', () => {
  const scaled = helm().render([...SETS.scaled, '--set', 'settings.TOPIC_PREFIX=eu.']);
  const objects = scaled.filter(({ kind }) => kind === 'ScaledObject');
  for (const service of SERVICES.filter(({ name }) => /writer|linker/.test(name))) {
    const object = objects.find(({ metadata }) => metadata.name === `playline-${service.name}`);
    const triggers: readonly { metadata: Record<string, string> }[] = object?.spec.triggers ?? [];
    const topics = 'reads' in service ? service.reads.map(({ name }) => `eu.${name}`) : [];
    expect(triggers.map(({ metadata }) => metadata.topic)).toEqual(topics);
    for (const { metadata } of triggers)
      expect(metadata).toMatchObject({ consumerGroup: service.name, tls: 'enable', sasl: 'scram_sha512' });
  }
});
