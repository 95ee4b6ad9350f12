import {
  createSignableKey,
  disableSignableKey,
  enableSignableKey,
  type SignableKeyName,
  type SignableKeyRecord,
  type SignerPublicKey,
  toShownSignableKey,
} from '@playline/access-keys';
import { type Terminal, UsageError } from '../command.ts';
import { type EnvironmentOptions, environmentOf } from '../keys/subcommands.ts';
import { type EnvironmentName, type ProjectSources, requireEnvironment } from '../projects/environments.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

/** What the actions work with. */
export interface SignableKeyWork {
  readonly sources: RecordSources<SignableKeyRecord>;
  readonly projects: ProjectSources;
  /** SIGNER_PUBLIC_KEY. @throws UsageError or UnreachableError when it is not configured */
  readonly signerKey: () => SignerPublicKey;
  readonly terminal: Terminal;
}

interface SignableKeyOptions extends EnvironmentOptions {
  readonly name?: string | undefined;
  readonly json?: boolean | undefined;
}

export async function create(work: SignableKeyWork, options: SignableKeyOptions): Promise<void> {
  const { sources, terminal } = work;
  const [wanted, name] = [environmentOf(options), nameOf(options)];
  // Before anything is opened: without it nothing can be sealed.
  const signerKey = work.signerKey();
  const { project, environment } = await requireEnvironment(work.projects, wanted);
  const key = { projectId: project.id, environmentId: environment.id, name };
  const made = await withRecords(sources, (store) => createSignableKey({ store, signerKey }, key));
  terminal.result(toLine(made, options));
}

export async function list({ sources, terminal }: SignableKeyWork, options: SignableKeyOptions): Promise<void> {
  const { project } = options;
  const wanted = options.environment === undefined ? null : environmentOf(options);
  const records = await withRecords(sources, (store) => store.readAll());
  for (const record of records.toSorted((a, b) => a.createdAt - b.createdAt))
    if (record.projectId === project && (wanted === null || isIn(record, wanted)))
      terminal.result(toLine(record, options));
}

/** Works for archived projects too: a key that must not sign any more can always be disabled. */
export async function disable(work: SignableKeyWork, options: SignableKeyOptions): Promise<void> {
  const { sources, terminal } = work;
  const [wanted, key] = [environmentOf(options), nameOf(options)];
  const records = await withRecords(sources, (store) => store.readAll());
  const known = records.find((record) => record.projectId === wanted.project && isIn(record, wanted));
  const owner = known ?? (await ownerOf(work, wanted));
  const disabled = await withRecords(sources, (store) => disableSignableKey({ store }, toName(owner, key)));
  terminal.result(toLine(disabled, options));
}

export async function enable(work: SignableKeyWork, options: SignableKeyOptions): Promise<void> {
  const { sources, terminal } = work;
  const [wanted, key] = [environmentOf(options), nameOf(options)];
  const owner = await ownerOf(work, wanted);
  const enabled = await withRecords(sources, (store) => enableSignableKey({ store }, toName(owner, key)));
  terminal.result(toLine(enabled, options));
}

type Owner = Pick<SignableKeyName, 'projectId' | 'environmentId'>;

const toName = ({ projectId, environmentId }: Owner, key: string): SignableKeyName => ({
  projectId,
  environmentId,
  key,
});

async function ownerOf({ projects }: SignableKeyWork, wanted: EnvironmentName): Promise<Owner> {
  const { project, environment } = await requireEnvironment(projects, wanted);
  return { projectId: project.id, environmentId: environment.id };
}

function isIn({ environmentId }: SignableKeyRecord, { project, environment }: EnvironmentName): boolean {
  return environmentId === environment || environmentId === `${project}-${environment}`;
}

function nameOf({ name }: SignableKeyOptions): string {
  if (name === undefined) throw new UsageError('--name: expected what the key is called');
  return name;
}

function toLine(record: SignableKeyRecord, options: SignableKeyOptions): string {
  const shown = toShownSignableKey(record);
  if (options.json === true) return JSON.stringify({ ...shown, kind: 'signable' });
  const { address, environmentId, name, state, createdAt } = shown;
  return `${address}  ${environmentId}  ${name}  ${state}  created ${new Date(createdAt).toISOString()}`;
}
