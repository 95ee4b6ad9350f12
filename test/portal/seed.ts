import { createHash, randomUUID } from 'node:crypto';
import {
  type AccountRecord,
  addEnvironment,
  type Content,
  createKey,
  createProject,
  DEFAULT_ENVIRONMENTS,
  type KeyEnvironment,
  type ProjectRecord,
  ROLES,
  type Role,
  refreshKey,
  setRates,
} from '@playline/access-keys';
import type { AlertStore } from '@playline/alerts';
import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { type SeededPortal, seedActivities, seedRows, seedTimeline } from './seeded-portal.ts';

/** A project with a different string in every field that users or clients can set. */
export type Seed = Awaited<ReturnType<typeof seedProject>>;

/** Returns the string for a field. */
export type ToText = (field: string) => string;

export interface SeedOptions {
  readonly id: string;
  readonly toText: ToText;
  readonly environment?: string;
}

export const AUTHOR = { changedBy: 'a test', requestId: 'r' };

/** Values that occur nowhere else, so that tests can find them. */
const CAP = { perSecond: 73_331, burst: 733_317 };
const LIMIT = { perSecond: 71_113, burst: 711_131 };

/** Creates a project with every type of object that can belong to a project, and sets every field. */
export async function seedProject(portal: SeededPortal, { id, toText, environment = 'lab' }: SeedOptions) {
  const { projects } = portal.parts;
  const store = projects.storeFor(AUTHOR);
  await createProject({ store }, { id, name: 'A game', environments: DEFAULT_ENVIRONMENTS });
  await addEnvironment({ store }, { project: id, name: environment, kind: 'development' });
  const environmentId = `${id}-${environment}`;
  const created = await setRates({ store }, { project: id, environment: environmentId }, { cap: CAP, limit: LIMIT });
  // Written directly to the store, because forms reject some of these strings.
  const targets = { alertWebhook: toText('webhook'), alertEmails: [toText('e-mail address')] };
  const project = (await store.change(() => ({ ...created, ...targets, name: toText('project name') }))) ?? created;
  const scope = { projectId: id, environmentId };
  await seedAlert(portal, scope, toText);
  await seedKeys(portal, { ...scope, environment: 'development' }, toText);
  const erasureId = randomUUID();
  seedRows(portal, { ...scope, erasureId }, toText);
  const contractAddress = await seedCollection(portal, scope, toText);
  seedActivities(portal, contractAddress, toText);
  const signableKey = { ...scope, state: 'live' as const };
  const address = await seedSignableKey(portal, signableKey, toText('signable key name'));
  portal.rows.mintSigners[environmentId] = [
    {
      chain: 'demo-chain',
      contractAddress,
      signerAddress: address,
      roleProvenMs: Date.now() - 3_600_000,
      waiting: 2,
      waitingSinceMs: Date.now() - 60_000,
      reason: toText('collection wait reason'),
    },
  ];
  const people = await seedPeople(portal, id, toText);
  const owner = { accountId: people.members.developer, projectId: id, name: toText('credentials name') };
  return {
    id,
    project,
    /** ClickHouse account of the developer. */
    credentials: (await portal.parts.analysts!.create({ owner, rawIds: true })).account,
    /** Name of the environment that contains all data, as used in paths. */
    environment,
    environmentId,
    ...people,
    rateLimitKeyId: await seedRateLimitKey(portal, toText),
    contractAddress,
    address,
    disabledAddress: await seedSignableKey(portal, { ...scope, state: 'disabled' }, toText('disabled key name')),
    erasureId,
    /** Hexadecimal person key of the person who sent the messages. */
    personKey: seedPerson(portal, environmentId, toText),
    /** Code of the link that creates the first administrator. It does not belong to a project. */
    firstCode: await portal.parts.oneTimeTokens.issue({ purpose: 'first-administrator', value: '', lifetimeS: 900 }),
  };
}

/** Returns the same fields as `seedProject`, with ids that do not exist. */
export function createMissingSeed(id: string, environment = 'nil'): Seed {
  const environments = [{ id: `${id}-${environment}`, name: environment, kind: 'development' as const, cap: null }];
  const project = { id, name: 'no such project', environments: environments.map((each) => ({ ...each, limit: null })) };
  return {
    id,
    environment,
    environmentId: `${id}-${environment}`,
    project: project as unknown as ProjectRecord,
    members: {
      owner: '0f0e0d0c-0000-4000-8000-000000000001',
      developer: '0f0e0d0c-0000-4000-8000-000000000002',
      analyst: '0f0e0d0c-0000-4000-8000-000000000003',
    },
    invitedId: '0f0e0d0c-0000-4000-8000-000000000004',
    invitationCode: 'no-such-code',
    disabledId: '0f0e0d0c-0000-4000-8000-000000000006',
    disabledLogin: 'no such login',
    passkeyId: 'no-such-passkey',
    sessionId: 'no-such-session',
    firstCode: 'no-such-code',
    rateLimitKeyId: '0f0e0d0c-0000-4000-8000-000000000005',
    erasureId: '0f0e0d0c-0000-4000-8000-000000000007',
    personKey: 'ef'.repeat(16),
    contractAddress: `0x${'e'.repeat(40)}`,
    address: `0x${'f'.repeat(40)}`,
    credentials: 'analyst_none',
    disabledAddress: `0x${'d'.repeat(40)}`,
  };
}

/** Adds a firing alert to the store of the portal. */
async function seedAlert({ parts }: TestPortal, scope: EnvironmentScope, toText: ToText): Promise<void> {
  const text = toText('alert text');
  const alert = { rule: 'NoMessages', ...scope, value: 73, text, firedAt: Date.now() - 60_000, contrary: 0 } as const;
  const store = parts.alerts.store as AlertStore;
  await store.write('a test', { changed: [alert], removed: [], changes: [] }, Date.now());
}

interface EnvironmentScope {
  readonly projectId: string;
  readonly environmentId: string;
}

type KeyScope = EnvironmentScope & { readonly environment: KeyEnvironment };

async function seedKeys(portal: TestPortal, scope: KeyScope, toText: ToText): Promise<void> {
  const { keys, settings } = portal.parts;
  const context = { store: keys.storeFor(AUTHOR), prefix: settings.keyPrefix };
  await createKey(context, { ...scope, kind: 'publishable', name: toText('old key name') });
  await refreshKey(context, { ...scope, kind: 'publishable', name: toText('publishable key name') });
  await createKey(context, { ...scope, kind: 'secret', name: toText('secret key name') });
}

async function seedPeople(portal: TestPortal, projectId: string, toText: ToText) {
  const members = await seedMembers(portal, projectId, toText);
  const { sessions } = portal.parts;
  const { session } = await sessions.create({
    accountId: members.owner,
    userAgent: toText('owner browser'),
    address: toText('session address'),
  });
  const invitationCode = `invitation-code-${projectId}`;
  const hash = createHash('sha256').update(invitationCode).digest('hex');
  const roles = [{ projectId, role: 'developer' as const }];
  const disabledLogin = toText('disabled account login');
  return {
    members,
    invitationCode,
    disabledLogin,
    passkeyId: toPasskeyId(projectId),
    sessionId: session.id,
    invitedId: await seedAccount(portal, {
      name: toText('invited account name'),
      login: '',
      state: 'invited',
      roles,
      invitation: { hash, expiresAt: Date.now() + 3_600_000, takenBy: null },
    }),
    disabledId: await seedAccount(portal, {
      name: toText('disabled account name'),
      login: disabledLogin,
      state: 'disabled',
      roles,
    }),
  };
}

/** The id must not be a prefix of the id in another project, or the tests would report a leak. */
const toPasskeyId = (projectId: string) => `passkey-${projectId}-owner`;

async function seedMembers(portal: TestPortal, projectId: string, toText: ToText): Promise<Record<Role, string>> {
  const ids: Partial<Record<Role, string>> = {};
  const passkey = {
    id: toPasskeyId(projectId),
    publicKey: 'AAAA',
    counter: 0,
    transports: ['internal'],
    createdAt: Date.now(),
    name: toText('passkey name'),
  };
  for (const role of ROLES) {
    ids[role] = await seedAccount(portal, {
      name: toText(`${role} name`),
      login: toText(`${role} login`),
      roles: [{ projectId, role }],
      passkeys: role === 'owner' ? [passkey] : [],
    });
  }
  return ids as Record<Role, string>;
}

let accounts = 0;

/** Writes the record directly to the store, because forms reject some strings. */
export async function seedAccount(portal: TestPortal, fields: Partial<Content<AccountRecord>>): Promise<string> {
  accounts++;
  const account: Content<AccountRecord> = {
    id: `0a0b0c0d-0000-4000-8000-${String(accounts).padStart(12, '0')}`,
    name: 'A name',
    state: 'live',
    login: `login-${accounts}`,
    isAdministrator: false,
    roles: [],
    passwordHash: null,
    passkeys: [],
    openId: null,
    invitation: null,
    sessionsFrom: 0,
    createdAt: Date.now(),
    ...fields,
  };
  await portal.parts.accounts.storeFor(AUTHOR).change(() => account);
  return account.id;
}

let partners = 0;

async function seedRateLimitKey(portal: TestPortal, toText: ToText): Promise<string> {
  partners++;
  const keyId = `0b0b0c0d-0000-4000-8000-${String(partners).padStart(12, '0')}`;
  await portal.parts.rateLimitKeys.storeFor(AUTHOR).change(() => ({
    keyId,
    partner: toText('partner name'),
    calls: 73_311,
    windowS: 317,
    expiresAt: null,
    hash: `hash ${keyId}`,
    first4: 'qzqz',
    last4: 'zqzq',
    createdAt: Date.now(),
    revokedAt: null,
  }));
  return keyId;
}

let addresses = 0;

function createAddress(): string {
  addresses++;
  return `0x${addresses.toString(16).padStart(8, '0')}${'ab'.repeat(16)}`;
}

async function seedCollection(portal: TestPortal, scope: EnvironmentScope, toText: ToText): Promise<string> {
  const contractAddress = createAddress();
  await portal.parts.collections.storeFor(AUTHOR).change(() => ({
    id: `demo-chain:${contractAddress}`,
    chain: 'demo-chain',
    contractAddress,
    ...scope,
    name: toText('collection name'),
    state: 'linked',
    createdAt: Date.now(),
  }));
  return contractAddress;
}

async function seedSignableKey(
  portal: TestPortal,
  scope: EnvironmentScope & { readonly state: 'live' | 'disabled' },
  name: string,
): Promise<string> {
  const address = createAddress();
  const sealed = 'sealed.text';
  await portal.parts.signableKeys
    .storeFor(AUTHOR)
    .change(() => ({ address, ...scope, name, sealed, createdAt: Date.now() }));
  return address;
}

/** Adds a person whose id occurs in a message. @returns the person key */
function seedPerson(portal: SeededPortal, environmentId: string, toText: ToText): string {
  const { parts, rows } = portal;
  const key = parts.people.keyOf(environmentId, 'anonymous', `player in ${environmentId}`).toString('hex');
  rows.ids[environmentId] = { [key]: toText('person id') };
  seedTimeline(portal, { environmentId, identityId: key }, toText);
  return key;
}
