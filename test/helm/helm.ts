// Builds Helm and reads the schemas of Kubernetes and KEDA from their Go modules.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv, type ValidateFunction } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { findProgram } from '../../infra/local/command.ts';

const HELM = 'helm.sh/helm/v4/cmd/helm@v4.3.1';
/** The oldest version that the chart accepts, and the newest one. */
export const KUBERNETES = ['1.34.4', '1.37.2'] as const;
const KEDA = 'github.com/kedacore/keda/v2@v2.21.0';

const root = fileURLToPath(new URL('../..', import.meta.url));
const chart = join(root, 'infra/helm/playline');

/** @throws Error with the output of the command */
function runGo(args: readonly string[], environment: Record<string, string> = {}): string {
  const env = { ...process.env, ...environment };
  const { status, stdout, stderr } = spawnSync('go', args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`go ${args.join(' ')} failed:\n${stderr.trim()}`);
  return stdout;
}

/** Returns the path of Helm. The first call builds it, which takes several minutes of CPU time. */
function buildHelm(): string {
  const folder = join(root, '.playline', 'helm', HELM.split('@')[1] ?? '');
  const program = join(folder, 'helm');
  if (!existsSync(program)) runGo(['install', HELM], { GOBIN: folder });
  return program;
}

const download = (module: string) => (JSON.parse(runGo(['mod', 'download', '-json', module])) as { Dir: string }).Dir;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  // biome-ignore lint/suspicious/noExplicitAny: the schemas of Kubernetes check the structure.
  readonly spec: any;
}

export interface Helm {
  /** Returns the rendered objects. @throws Error with the message of Helm */
  render(args: readonly string[], kubernetes?: string): readonly Manifest[];
  /** @throws Error with the findings */
  lint(args: readonly string[]): void;
}

/** Returns the reason instead of Helm if Go is not installed. @throws Error if Helm cannot be downloaded or built */
export function openHelm(): { helm: Helm } | { helm: null; reason: string } {
  if (findProgram('go') === null)
    return { helm: null, reason: 'Helm cannot be built, because Go (1.26 or later) is not installed' };
  return { helm: createHelm(buildHelm()) };
}

function createHelm(program: string): Helm {
  const run = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd: join(root, 'infra/helm') });
    if (status !== 0) throw new Error(`${stdout}${stderr}`);
    return stdout;
  };
  return {
    render: (args, kubernetes = KUBERNETES[1]) => {
      const text = run('template', 'playline', chart, '--namespace', 'games', '--kube-version', kubernetes, ...args);
      return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
    },
    lint: (args) => {
      run('lint', chart, '--strict', ...args);
    },
  };
}

type Schema = Record<string, unknown>;

/**
 * Converts a schema of Kubernetes to JSON Schema: rejects unknown members, as the API server does when it validates
 * strictly, and accepts numbers for `int-or-string`.
 */
function toStrict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toStrict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { format, ...members } = schema as Schema;
  if (format === 'int-or-string' || members['x-kubernetes-int-or-string'] === true) return {};
  const isOpen = members['x-kubernetes-preserve-unknown-fields'] === true || 'additionalProperties' in members;
  const strict = Object.fromEntries(Object.entries(members).map(([name, value]) => [name, toStrict(value)]));
  return 'properties' in members && !isOpen ? { ...strict, additionalProperties: false } : strict;
}

interface Definition {
  'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

/** Returns a function that lists how a manifest violates the schema of its kind. */
export function openSchemas(kubernetes: string): (manifest: Manifest) => readonly string[] {
  const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
  const swagger = join(download(`k8s.io/kubernetes@v${kubernetes}`), 'api/openapi-spec/swagger.json');
  const { definitions } = JSON.parse(readFileSync(swagger, 'utf8')) as { definitions: Record<string, Definition> };
  ajv.addSchema({ $id: 'kubernetes', definitions: toStrict(definitions) as Schema });
  const validators = new Map<string, () => ValidateFunction>();
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of Object.entries(definitions)) {
    for (const { group, version, kind } of kinds)
      validators.set(`${group === '' ? '' : `${group}/`}${version} ${kind}`, () =>
        ajv.compile({ $ref: `kubernetes#/definitions/${name}` }),
      );
  }
  const crds = join(download(KEDA), 'config/crd/bases');
  for (const file of ['keda.sh_scaledobjects.yaml', 'keda.sh_triggerauthentications.yaml']) {
    const { spec } = parse(readFileSync(join(crds, file), 'utf8'));
    const [{ name, schema }] = spec.versions;
    const { metadata, ...properties } = schema.openAPIV3Schema.properties;
    const strict = toStrict({ ...schema.openAPIV3Schema, properties }) as { properties: Schema };
    validators.set(`${spec.group}/${name} ${spec.names.kind}`, () =>
      ajv.compile({ ...strict, properties: { ...strict.properties, metadata } }),
    );
  }
  return (manifest) => {
    const kind = `${manifest.apiVersion} ${manifest.kind}`;
    const validate = validators.get(kind)?.();
    if (validate === undefined) return [`Kubernetes ${kubernetes} has no kind ${kind}`];
    validate(manifest);
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${kind} ${manifest.metadata.name}${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
}
