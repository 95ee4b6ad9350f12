import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import type { z } from 'zod';
import { configSchema as activityWriter } from '../../services/activity-writer/src/config.ts';
import { configSchema as chainApi } from '../../services/chain-api/src/config.ts';
import { configSchema as chainIndexer } from '../../services/chain-indexer/src/config.ts';
import { configSchema as eraser } from '../../services/eraser/src/config.ts';
import { configSchema as eventWriter } from '../../services/event-writer/src/config.ts';
import { configSchema as gateway } from '../../services/gateway/src/config.ts';
import { configSchema as identityLinker } from '../../services/identity-linker/src/config.ts';
import { configSchema as minter } from '../../services/minter/src/config.ts';
import { configSchema as operator } from '../../services/operator/src/config.ts';
import { configSchema as portal } from '../../services/portal/src/config.ts';
import { isNode, type Node, nodesIn, parseSources, type SourceFile } from '../house/syntax.ts';
import { readTree } from '../house/tree.ts';

// To regenerate infra/SETTINGS.md and infra/METRICS.md, run `npx vitest run test/docs/reference.test.ts -u`.

const SERVICES: Record<string, z.ZodObject> = {
  gateway,
  'identity-linker': identityLinker,
  'event-writer': eventWriter,
  'activity-writer': activityWriter,
  eraser,
  'chain-indexer': chainIndexer,
  'chain-api': chainApi,
  minter,
  portal,
  operator,
};

const tree = readTree(fileURLToPath(new URL('../..', import.meta.url)));
const product = [...tree].filter(
  ([path]) => /^(services|packages)\/.*\.ts$/.test(path) && !/\.(test|bench)\.ts$|\/test\//.test(path),
);

const TLS_MEANINGS: readonly [RegExp, string][] = [
  [/_TLS_CA_FILE$/, 'CA certificate that signed the server certificate'],
  [/_TLS_CERT_FILE$/, 'Client certificate, if the store requires one'],
  [/_TLS_KEY_FILE$/, 'Private key for the client certificate'],
  [/_TLS_SERVER_NAME$/, 'Server name in the certificate, if different from the host'],
];

/** Returns the first sentence of the comment above each setting, keyed by setting name. */
function readMeanings(): Map<string, string> {
  const meanings = new Map<string, string>();
  for (const [path, text] of product) {
    if (!/(config|settings)\.ts$/.test(path)) continue;
    for (const [, comment = '', name = ''] of text.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*([A-Z][A-Z0-9_]+):/g)) {
      const sentence =
        comment
          .replace(/\s*\n\s*\* ?/g, ' ')
          .trim()
          .split(/(?<=\.)\s/)[0] ?? '';
      meanings.set(name, sentence.replace(/\.$/, '').replaceAll('|', '\\|'));
    }
  }
  return meanings;
}

const UNITS: readonly [RegExp, string][] = [
  [/_MS$/, 'ms'],
  [/BYTES/, 'bytes'],
  [/_PER_S(ECOND)?$/, '/s'],
  [/_PER_MINUTE$/, '/min'],
  [/_PER_HOUR$/, '/h'],
  [/_(S|SECONDS)$/, 's'],
  [/_FILE$/, 'path'],
  [/_(URL|ORIGIN)$/, 'URL'],
  [/PORT$/, 'port'],
  [/HEX$|PEPPER$/, 'hexadecimal'],
];

/** Returns the default value, or `required` if the service does not start without the setting. */
function toDefault(schema: z.ZodType): string {
  const { type, defaultValue, in: input } = schema.def as { type: string; defaultValue?: unknown; in?: z.ZodType };
  if (type === 'pipe' && input !== undefined) return toDefault(input);
  if (type !== 'default' && type !== 'prefault') return schema.safeParse(undefined).success ? '' : 'required';
  return typeof defaultValue === 'object' || defaultValue === '' ? '' : `\`${defaultValue}\``;
}

it('infra/SETTINGS.md lists every setting with its default, unit, services and meaning', async () => {
  const meanings = readMeanings();
  const byName = new Map<string, { services: string[]; defaults: Set<string> }>();
  for (const [service, { shape }] of Object.entries(SERVICES)) {
    for (const [name, schema] of Object.entries(shape)) {
      const row = byName.get(name) ?? { services: [], defaults: new Set() };
      row.services.push(service);
      row.defaults.add(toDefault(schema as z.ZodType));
      byName.set(name, row);
    }
  }
  const rows = [...byName]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, { services, defaults }]) => {
      const unit = UNITS.find(([pattern]) => pattern.test(name))?.[1] ?? '';
      const meaning = meanings.get(name) ?? TLS_MEANINGS.find(([pattern]) => pattern.test(name))?.[1];
      expect(meaning, `a comment above ${name}`).toBeDefined();
      const missing = Object.keys(SERVICES).filter((service) => !services.includes(service));
      const usedBy =
        missing.length < 3 ? (missing.length === 0 ? 'all' : `all but ${missing.join(', ')}`) : services.join(', ');
      return `| \`${name}\` | ${[...defaults].filter(Boolean).join(', ')} | ${unit} | ${usedBy} | ${meaning} |`;
    });
  const head = `# Settings

Generated from the code. Every setting is an environment variable; an empty value is treated as unset. If a setting is missing or invalid, the service does not start and lists all such settings by name, without their values.

| name | default | unit | services | meaning |
|---|---|---|---|---|`;
  await expect(`${[head, ...rows].join('\n')}\n`).toMatchFileSnapshot('../../infra/SETTINGS.md');
});

const METRIC_TYPES: Record<string, string> = {
  counter: 'counter',
  histogram: 'histogram',
  gauge: 'gauge',
  collectedGauge: 'gauge',
};

/** Returns the node and all its descendants. */
const nodesBelow = (node: Node): Node[] => [
  node,
  ...Object.values(node).flatMap((field) => nodesIn(field).flatMap(nodesBelow)),
];
const literals = (node: Node) =>
  nodesBelow(node).flatMap(({ type, value }) => (type === 'Literal' ? [String(value)] : []));
const labelsIn = (node: Node) =>
  nodesBelow(node)
    .filter(({ type }) => type === 'ArrayExpression')
    .flatMap(literals)
    .filter((text) => /^[a-z_]+$/.test(text));

function toMetric(call: Node, { nodes }: SourceFile): string[] | null {
  const callee = call.callee as Node;
  const method = String(((callee.property ?? callee) as Node).name);
  const [name, help, ...rest] = nodesIn(call.arguments);
  if (METRIC_TYPES[method] === undefined || !String(name?.value).startsWith('playline_')) return null;
  const declares = (node: Node, id: unknown) =>
    node.type === 'VariableDeclarator' && isNode(node.id) && node.id.name === id;
  const text =
    help?.type === 'Identifier' ? nodes.findLast((node) => declares(node, help.name) && node.start < call.start) : help;
  // Metrics created through a local helper have the labels that the helper sets.
  const helper = nodes.findLast((node) => declares(node, callee.name) && node.start < call.start);
  const labels = [...rest, ...(callee.type === 'Identifier' && helper ? [helper] : [])].flatMap(labelsIn);
  const meaning = (text && literals(text)[0]) ?? '';
  return [String(name!.value), METRIC_TYPES[method], [...new Set(labels)].join(', '), meaning];
}

it('infra/METRICS.md lists every metric with its type, labels, source and meaning', async () => {
  const rows = parseSources(new Map(product.filter(([, text]) => text.includes("'playline_")))).flatMap((file) => {
    const source = file.path.split('/').slice(0, 2).join('/').replace('services/', '');
    return file.nodes.flatMap((node) => {
      const metric = node.type === 'CallExpression' || node.type === 'NewExpression' ? toMetric(node, file) : null;
      if (metric === null) return [];
      const [name, type, labels, help] = metric;
      return [`| \`${name}\` | ${type} | ${labels} | ${source} | ${help} |`];
    });
  });
  const declared = new Set(product.flatMap(([, text]) => text.match(/(?<=')playline_[a-z_]+(?=')/g) ?? []));
  const listed = rows.map((row) => /`(\w+)`/.exec(row)?.[1]);
  expect([...declared].filter((name) => !listed.includes(name) && name !== 'playline_build_info')).toEqual([]);
  const misnamed = rows.filter((row) => {
    const [name = '', type = ''] = row
      .split('|')
      .slice(1)
      .map((cell) => cell.replaceAll('`', '').trim());
    return (
      (type === 'counter') !== name.endsWith('_total') || (type === 'histogram' && !/_(seconds|bytes)$/.test(name))
    );
  });
  expect(misnamed, 'counters end in _total, histograms in a unit').toEqual([]);
  const head = `# Metrics

Generated from the code. Every service exposes \`/metrics\` on its admin port, and every metric has the label \`service\`. Node.js and process metrics have the default prom-client names (\`nodejs_…\`, \`process_…\`). \`playline_build_info{version}\` contains the release.

\`route\` is the declared path of an operation or page, never the requested path. \`environment\` has at most 100 values per process; further environments are counted as \`other\`. For the stores, use their own metrics: the Prometheus endpoint of ClickHouse, redis_exporter, and the JMX exporter for Kafka.

| name | type | labels | source | meaning |
|---|---|---|---|---|`;
  await expect(`${[head, ...rows.sort()].join('\n')}\n`).toMatchFileSnapshot('../../infra/METRICS.md');
});
