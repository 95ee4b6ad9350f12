/** Implements the subcommands of `keys` for signable keys. */
import {
  createSignableKey,
  disableSignableKey,
  enableSignableKey,
  type SignableKeyRecord,
  type SignerPublicKey,
  toShownSignableKey,
} from '@playline/access-keys';
import { type JsonOption, printResult, type Terminal, UsageError } from '../command.ts';
import { type EnvironmentOptions, environmentOf } from '../keys/subcommands.ts';
import { type EnvironmentName, type ProjectSources, requireEnvironment } from '../projects/environments.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

export interface SignableKeyDeps {
  readonly sources: RecordSources<SignableKeyRecord>;
  readonly projects: ProjectSources;
  /** @throws UsageError or UnreachableError without SIGNER_PUBLIC_KEY */
  readonly signerKey: () => SignerPublicKey;
  readonly terminal: Terminal;
}

interface SignableKeyOptions extends EnvironmentOptions, JsonOption {
  readonly name?: string | undefined;
}

export async function create(deps: SignableKeyDeps, options: SignableKeyOptions): Promise<void> {
  const { sources, terminal } = deps;
  const [wanted, name] = [environmentOf(options), nameOf(options)];
  // Read first, to fail before stores are opened.
  const signerKey = deps.signerKey();
  const key = { ...(await ownerOf(deps, wanted)), name };
  print(await withRecords(sources, (store) => createSignableKey({ store, signerKey }, key)), options, terminal);
}

export async function list({ sources, terminal }: SignableKeyDeps, options: SignableKeyOptions): Promise<void> {
  const { project } = options;
  const wanted = options.environment === undefined ? null : environmentOf(options);
  const records = await withRecords(sources, (store) => store.readAll());
  for (const record of records.toSorted((a, b) => a.createdAt - b.createdAt))
    if (record.projectId === project && (wanted === null || isIn(record, wanted))) print(record, options, terminal);
}

/** Also accepts archived projects, so that a key can always be disabled. */
export async function disable(deps: SignableKeyDeps, options: SignableKeyOptions): Promise<void> {
  const { sources, terminal } = deps;
  const [wanted, key] = [environmentOf(options), nameOf(options)];
  const records = await withRecords(sources, (store) => store.readAll());
  const existing = records.find((record) => record.projectId === wanted.project && isIn(record, wanted));
  const { projectId, environmentId } = existing ?? (await ownerOf(deps, wanted));
  const name = { projectId, environmentId, key };
  print(await withRecords(sources, (store) => disableSignableKey({ store }, name)), options, terminal);
}

export async function enable(deps: SignableKeyDeps, options: SignableKeyOptions): Promise<void> {
  const { sources, terminal } = deps;
  const [wanted, key] = [environmentOf(options), nameOf(options)];
  const name = { ...(await ownerOf(deps, wanted)), key };
  print(await withRecords(sources, (store) => enableSignableKey({ store }, name)), options, terminal);
}

async function ownerOf({ projects }: SignableKeyDeps, wanted: EnvironmentName) {
  const { project, environment } = await requireEnvironment(projects, wanted);
  return { projectId: project.id, environmentId: environment.id };
}

function isIn({ environmentId }: SignableKeyRecord, { project, environment }: EnvironmentName): boolean {
  return environmentId === environment || environmentId === `${project}-${environment}`;
}

function nameOf({ name }: SignableKeyOptions): string {
  if (name === undefined) throw new UsageError('--name: expected the key name');
  return name;
}

function print(record: SignableKeyRecord, options: JsonOption, terminal: Terminal): void {
  const shown = toShownSignableKey(record);
  const { address, environmentId, name, state, createdAt } = shown;
  const text = `${address}  ${environmentId}  ${name}  ${state}  created ${new Date(createdAt).toISOString()}`;
  printResult(terminal, options, { ...shown, kind: 'signable' }, text);
}
