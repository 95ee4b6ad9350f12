import { createHash, randomUUID } from 'node:crypto';
import {
  type AccountRecord,
  addEnvironment,
  type Content,
  createKey,
  createProject,
  type KeyEnvironment,
  type ProjectRecord,
  ROLES,
  type Role,
  refreshKey,
  setRates,
  USUAL_ENVIRONMENTS,
} from '@playline/access-keys';
import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import { type PlantedPortal, plantActivities, plantDecisions, plantRows } from './planted-portal.ts';

/** A project with a different text in every field that users or clients can fill. */
export type Planted = Awaited<ReturnType<typeof plant>>;

/** Returns the text to put into a field, by the field's name. */
export type TextOf = (field: string) => string;

export interface Wanted {
  readonly id: string;
  readonly textOf: TextOf;
  readonly environment?: string;
}

export const AUTHOR = { changedBy: 'a test', requestId: 'r' };

/** Rates that occur nowhere else, so that a test recognises them. */
const CAP = { perSecond: 73_331, burst: 733_317 };
const LIMIT = { perSecond: 71_113, burst: 711_131 };

/** Creates a project and fills every field of everything that can belong to it. */
export async function plant(portal: PlantedPortal, { id, textOf, environment = 'lab' }: Wanted) {
  const { projects } = portal.parts;
  const store = projects.changedBy(AUTHOR);
  await createProject({ store }, { id, name: 'A game', environments: USUAL_ENVIRONMENTS });
  await addEnvironment({ store }, { project: id, name: environment, kind: 'development' });
  const at = { project: id, environment: `${id}-${environment}` };
  const created = await setRates({ store }, at, { cap: CAP, limit: LIMIT });
  // Written directly: a form would refuse some of these texts.
  const project = (await store.change(() => ({ ...created, name: textOf('project name') }))) ?? created;
  await plantKeys(portal, { projectId: id, environmentId: at.environment, environment: 'development' }, textOf);
  const scope = { projectId: id, environmentId: at.environment };
  const erasureId = randomUUID();
  plantRows(portal, { ...scope, erasureId }, textOf);
  const contractAddress = await plantCollection(portal, scope, textOf);
  plantActivities(portal, contractAddress, textOf);
  const signableKey = { ...scope, state: 'live' as const };
  const address = await plantSignableKey(portal, signableKey, textOf('name of a signable key'));
  portal.rows.mintSigners[at.environment] = [
    {
      chain: 'demo-chain',
      contractAddress,
      signerAddress: address,
      heldMs: Date.now() - 3_600_000,
      waiting: 2,
      waitsMs: Date.now() - 60_000,
      why: textOf('why mints of a collection wait'),
    },
  ];
  return {
    id,
    project,
    /** Name, as in paths, of the environment that has all the data. */
    environment,
    environmentId: at.environment,
    ...(await plantPeople(portal, id, textOf)),
    rateLimitKeyId: await plantRateLimitKey(portal, textOf),
    contractAddress,
    address,
    disabledAddress: await plantSignableKey(portal, { ...scope, state: 'disabled' }, textOf('name of a disabled key')),
    erasureId,
    /** Hexadecimal person key of a message's sender. */
    personKey: plantPerson(portal, at.environment, textOf),
    /** Code of the link for the first administrator, which belongs to no project. */
    firstCode: await portal.parts.oneTime.issue({ purpose: 'first-administrator', value: '', lifetimeS: 900 }),
  };
}

/** The same kinds of ids as `plant` gives, but nothing exists under any of them. */
export function plantedNowhere(id: string, environment = 'hut'): Planted {
  const environments = [{ id: `${id}-${environment}`, name: environment, kind: 'development' as const, cap: null }];
  const project = { id, name: 'nowhere', environments: environments.map((each) => ({ ...each, limit: null })) };
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
    disabledAddress: `0x${'d'.repeat(40)}`,
  };
}

interface EnvironmentScope {
  readonly projectId: string;
  readonly environmentId: string;
}

type KeyScope = EnvironmentScope & { readonly environment: KeyEnvironment };

async function plantKeys(portal: TestPortal, scope: KeyScope, textOf: TextOf): Promise<void> {
  const { keys, settings } = portal.parts;
  const context = { store: keys.changedBy(AUTHOR), prefix: settings.keyPrefix };
  await createKey(context, { ...scope, kind: 'publishable', name: textOf('name of an ended key') });
  await refreshKey(context, { ...scope, kind: 'publishable', name: textOf('name of a publishable key') });
  await createKey(context, { ...scope, kind: 'secret', name: textOf('name of a secret key') });
}

async function plantPeople(portal: TestPortal, projectId: string, textOf: TextOf) {
  const members = await plantMembers(portal, projectId, textOf);
  const { sessions } = portal.parts;
  const { session } = await sessions.create({
    accountId: members.owner,
    userAgent: textOf('browser of the owner'),
    address: textOf('address'),
  });
  const invitationCode = `code-of-an-invitation-to-${projectId}`;
  const hash = createHash('sha256').update(invitationCode).digest('hex');
  const roles = [{ projectId, role: 'developer' as const }];
  const disabledLogin = textOf('login of a disabled account');
  return {
    members,
    invitationCode,
    disabledLogin,
    passkeyId: passkeyIdOf(projectId),
    sessionId: session.id,
    invitedId: await plantAccount(portal, {
      name: textOf('name of an invited account'),
      login: '',
      state: 'invited',
      roles,
      invitation: { hash, expiresAt: Date.now() + 3_600_000, takenBy: null },
    }),
    disabledId: await plantAccount(portal, {
      name: textOf('name of a disabled account'),
      login: disabledLogin,
      state: 'disabled',
      roles,
    }),
  };
}

/** Never a prefix of another project's id, which would look like a leak. */
const passkeyIdOf = (projectId: string) => `passkey-of-${projectId}-s-owner`;

async function plantMembers(portal: TestPortal, projectId: string, textOf: TextOf): Promise<Record<Role, string>> {
  const ids: Partial<Record<Role, string>> = {};
  const passkey = {
    id: passkeyIdOf(projectId),
    publicKey: 'AAAA',
    counter: 0,
    transports: ['internal'],
    createdAt: Date.now(),
    name: textOf('name of a passkey'),
  };
  for (const role of ROLES) {
    ids[role] = await plantAccount(portal, {
      name: textOf(`name of the ${role}`),
      login: textOf(`login of the ${role}`),
      roles: [{ projectId, role }],
      passkeys: role === 'owner' ? [passkey] : [],
    });
  }
  return ids as Record<Role, string>;
}

let accounts = 0;

/** Writes a record directly, because forms refuse some texts. */
export async function plantAccount(portal: TestPortal, own: Partial<Content<AccountRecord>>): Promise<string> {
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
    ...own,
  };
  await portal.parts.accounts.changedBy(AUTHOR).change(() => account);
  return account.id;
}

let partners = 0;

async function plantRateLimitKey(portal: TestPortal, textOf: TextOf): Promise<string> {
  partners++;
  const keyId = `0b0b0c0d-0000-4000-8000-${String(partners).padStart(12, '0')}`;
  await portal.parts.rateLimitKeys.changedBy(AUTHOR).change(() => ({
    keyId,
    partner: textOf('partner'),
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

async function plantCollection(portal: TestPortal, scope: EnvironmentScope, textOf: TextOf): Promise<string> {
  const contractAddress = createAddress();
  await portal.parts.collections.changedBy(AUTHOR).change(() => ({
    id: `demo-chain:${contractAddress}`,
    chain: 'demo-chain',
    contractAddress,
    ...scope,
    name: textOf('name of a collection'),
    state: 'linked',
    createdAt: Date.now(),
  }));
  return contractAddress;
}

async function plantSignableKey(
  portal: TestPortal,
  scope: EnvironmentScope & { readonly state: 'live' | 'disabled' },
  name: string,
): Promise<string> {
  const address = createAddress();
  const sealed = 'sealed.text';
  await portal.parts.signableKeys
    .changedBy(AUTHOR)
    .change(() => ({ address, ...scope, name, sealed, createdAt: Date.now() }));
  return address;
}

/** Adds a person whose id occurs in a message. A page finds the person by the key. */
function plantPerson(portal: PlantedPortal, environmentId: string, textOf: TextOf): string {
  const { parts, rows } = portal;
  const key = parts.people.keyOf(environmentId, 'anonymous', `player of ${environmentId}`).toString('hex');
  rows.ids[environmentId] = { [key]: textOf('id of a person') };
  plantDecisions(portal, { environmentId, identityId: key }, textOf);
  return key;
}
