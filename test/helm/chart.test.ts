import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { describeProcesses, readAllSettings } from './processes.ts';

// Checks the chart without Helm. render.long.test.ts renders it. After a change of a service's settings, run
// `npx vitest run test/helm/chart.test.ts -u`.

const read = (path: string) => readFileSync(new URL(`../../infra/helm/${path}`, import.meta.url), 'utf8');

interface Values {
  readonly settings: Record<string, string>;
  readonly services: Record<string, { replicas: number; settings?: Record<string, string> }>;
}
const chart = parse(read('playline/Chart.yaml')) as Record<string, string>;
const defaults = parse(read('playline/values.yaml'), { merge: true }) as Values;
const small = parse(read('values/small.yaml')) as Values;
const production = parse(read('values/production.yaml')) as Values;
const cluster = parse(read('values/cluster.yaml')) as Values;

/** Merges values as Helm does: maps recursively, everything else as a whole. */
function mergeValues(base: unknown, values: unknown): unknown {
  const isMap = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMap(base) || !isMap(values)) return values === undefined ? base : values;
  const [left, right] = [base as Record<string, unknown>, values as Record<string, unknown>];
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  return Object.fromEntries(keys.map((key) => [key, mergeValues(left[key], right[key])]));
}

it('the Helm chart lists every process with the command, topics and settings of the code', async () => {
  const head = '# Generated from the code by test/helm/chart.test.ts.\n';
  const text = head + stringify(await describeProcesses(), { aliasDuplicateObjects: false, lineWidth: 0 });
  await expect(text).toMatchFileSnapshot('../../infra/helm/playline/services.yaml');
});

it('the Helm chart installs the version of this release', () => {
  const { version } = JSON.parse(read('../../package.json')) as { version: string };
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
});

it('the Helm chart has values for every service', async () => {
  const processes = Object.entries(await describeProcesses()).filter(([, { main }]) => main.startsWith('services/'));
  const services = processes.map(([name]) => name).filter((name) => name !== 'operator');
  expect(Object.keys(defaults.services).sort()).toEqual(services.sort());
});

it('the settings of clusters reach every process that connects to their nodes', async () => {
  const processes = await describeProcesses();
  const { settings } = mergeValues(defaults, cluster) as Values;
  const receiversOf = (...names: readonly string[]) => {
    expect(Object.keys(settings)).toEqual(expect.arrayContaining([...names]));
    const receivers = Object.entries(processes).filter(([, each]) =>
      names.every((name) => each.settings.optional.includes(name)),
    );
    return receivers.map(([name]) => name);
  };
  const withRedis = Object.entries(processes).filter(([, { secrets }]) =>
    [...secrets.required, ...secrets.optional].includes('REDIS_URL'),
  );
  expect(receiversOf('REDIS_CLUSTER', 'IDENTITY_CELLS')).toEqual(withRedis.map(([name]) => name));
  expect(receiversOf('CLICKHOUSE_CLUSTER', 'CLICKHOUSE_SHARD_URLS').sort()).toEqual([
    'eraser',
    'event-writer',
    'operator',
    'portal',
    'tables',
  ]);
});

const SETS = {
  small: [small],
  production: [production],
  cluster: [production, cluster],
  scaled: [production, parse(read('values/scaled.yaml'))],
};

it.each(Object.entries(SETS))('the schema of the Helm chart accepts the values "%s"', (_, sets) => {
  const validate = new Ajv({ allErrors: true, strict: false }).compile(JSON.parse(read('playline/values.schema.json')));
  validate(sets.reduce<unknown>(mergeValues, defaults));
  expect(validate.errors).toBeNull();
});

it.each([
  ['small', small],
  ['production', production],
  ['cluster', mergeValues(production, cluster) as Values],
])('the values "%s" contain valid settings and no unknown ones', async (_, set) => {
  const schemas = await readAllSettings();
  const { settings, services } = mergeValues(defaults, set) as Values;
  const common = Object.entries(settings).map(([name, value]) => ({ name, value, schemas: [...schemas.values()] }));
  const own = Object.entries(services).flatMap(([service, { settings = {} }]) =>
    Object.entries(settings).map(([name, value]) => ({ name, value, schemas: [schemas.get(service)] })),
  );
  for (const { name, value, schemas } of [...common, ...own]) {
    const known = schemas.flatMap((schema) => (schema && name in schema.shape ? [schema] : []));
    expect(known.length, `services with the setting ${name}`).toBeGreaterThan(0);
    if (name.endsWith('_FILE')) continue;
    for (const { shape } of known) expect(shape[name]?.safeParse(value)).toMatchObject({ success: true });
  }
});
