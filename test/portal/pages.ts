import { randomInt } from 'node:crypto';
import { createFormTokens } from '../../services/portal/src/frame/form-tokens.ts';
import { createFrameParts } from '../../services/portal/src/frame/frame-parts.ts';
import type { PortalPage } from '../../services/portal/src/frame/page.ts';
import { createPages, type PageParts } from '../../services/portal/src/pages/index.ts';
import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import type { Response } from '../../services/portal/src/test/test-browser.ts';
import type { Seed } from './seed.ts';
import { STORED_ID, TRACE_ID } from './seeded-portal.ts';

export type { Response };

/** Defines how to request a portal page and how to fill in each form on it. */
export interface PageSpec {
  /** Path parameters other than `:project` and `:environment`. */
  readonly params?: (seed: Seed) => Readonly<Record<string, string>>;
  readonly query?: (seed: Seed) => Readonly<Record<string, string>>;
  readonly actions?: Readonly<Record<string, ActionSpec>>;
  /** True if the path is requested by scripts and returns data instead of a page. */
  readonly isData?: boolean;
}

export interface ActionSpec {
  /** Fields that do not contain an id. */
  readonly fields?: (seed: Seed) => Readonly<Record<string, string>>;
  /** Fields that contain the id of an account or of an object that belongs to a project. */
  readonly references?: (seed: Seed) => Readonly<Record<string, string>>;
}

const confirmEnvironment = ({ environment }: Seed) => ({ confirm: environment });
const rateLimitKey = ({ rateLimitKeyId }: Seed) => ({ key: rateLimitKeyId });
const collection = ({ contractAddress }: Seed) => ({ chain: 'demo-chain', contract: contractAddress });
const signableKey = ({ address }: Seed) => ({ address });
const analyst = ({ members }: Seed) => ({ account: members.analyst });
const invited = ({ invitedId }: Seed) => ({ account: invitedId });

export const PASSWORDS = { password: 'correct horse battery', repeated: 'correct horse battery' };
const invitee = { login: 'newcomer', name: 'Newcomer', ...PASSWORDS };

const linkSpec = (getCode: (seed: Seed) => string): Pick<PageSpec, 'query' | 'actions'> => ({
  query: (seed) => ({ code: getCode(seed) }),
  actions: { accept: { fields: (seed) => ({ code: getCode(seed), ...invitee }) } },
});
/** Signed-in users can accept an invitation with their existing account. */
const invitationSpec: PageSpec = {
  query: ({ invitationCode }) => ({ code: invitationCode }),
  actions: {
    ...linkSpec(({ invitationCode }) => invitationCode).actions,
    join: { fields: ({ invitationCode }) => ({ code: invitationCode }) },
  },
};
const passkeySpec = (getCode: (seed: Seed) => string): PageSpec => ({
  isData: true,
  query: (seed) => ({ code: getCode(seed), login: 'newcomer', name: 'Newcomer' }),
});

/** All pages, keyed by path. The tests fail if a page is missing. */
export const PAGE_SPECS: Readonly<Record<string, PageSpec>> = {
  '/': { actions: { create: { fields: () => ({ name: 'Another game' }) } } },
  '/projects/:project': {
    actions: {
      rename: { fields: () => ({ name: 'Renamed' }) },
      'add-environment': { fields: () => ({ environment: 'added', kind: 'development' }) },
      archive: { fields: ({ project }) => ({ confirm: project.name }) },
    },
  },
  '/projects/:project/environments/:environment/keys': {
    actions: {
      create: { fields: () => ({ kind: 'secret', name: 'Created' }) },
      refresh: { fields: (seed) => ({ kind: 'publishable', stops: 'now', ...confirmEnvironment(seed) }) },
      revoke: { fields: (seed) => ({ kind: 'secret', ...confirmEnvironment(seed) }) },
      origins: { fields: () => ({ origins: 'https://game.example' }) },
      test: { fields: () => ({ key: 'none' }) },
    },
  },
  '/projects/:project/environments/:environment/collections': {
    actions: {
      link: { fields: () => ({ chain: 'demo-chain', contract: `0x${'7'.repeat(40)}`, name: 'Linked' }) },
      rename: { fields: () => ({ name: 'Renamed' }), references: collection },
      relink: { references: collection },
      unlink: { fields: () => ({ confirm: 'unlink' }), references: collection },
    },
  },
  '/projects/:project/environments/:environment/signable-keys': {
    actions: {
      create: { fields: () => ({ name: 'Created' }) },
      disable: { references: signableKey },
      enable: { references: ({ disabledAddress }) => ({ address: disabledAddress }) },
    },
  },
  '/projects/:project/environments/:environment/explore': {
    query: () => ({ message: STORED_ID }),
    actions: { person: { fields: () => ({ person: 'player-0' }) } },
  },
  '/projects/:project/environments/:environment/connect': {
    actions: {
      create: { fields: () => ({ name: 'Created' }) },
      revoke: { references: ({ credentials }) => ({ account: credentials }) },
    },
  },
  '/projects/:project/environments/:environment/live': {
    actions: { person: { fields: () => ({ person: 'player-0' }) } },
  },
  '/projects/:project/environments/:environment/live/events': { isData: true },
  '/projects/:project/environments/:environment/rejections': { query: () => ({ trace: TRACE_ID }) },
  '/projects/:project/environments/:environment/people': {
    query: ({ personKey }) => ({ person: personKey }),
    actions: {
      search: { references: ({ personKey }) => ({ kind: 'key', id: personKey }) },
      erase: { fields: () => ({ kind: 'anonymous', id: 'player-0', confirm: 'player-0' }) },
      unlink: { fields: () => ({ kind: 'anonymous', id: 'player-0' }) },
    },
  },
  '/projects/:project/environments/:environment/erasures': {},
  '/projects/:project/environments/:environment/mints': {},
  '/projects/:project/environments/:environment/activities': {},
  '/projects/:project/environments/:environment/erasures/:erasure': {
    params: ({ erasureId }) => ({ erasure: erasureId }),
  },
  '/projects/:project/environments/:environment/erasures/:erasure/receipt': {
    isData: true,
    params: ({ erasureId }) => ({ erasure: erasureId }),
  },
  '/projects/:project/audit': {},
  '/instance/audit': {},
  '/projects/:project/alerts': {
    actions: {
      acknowledge: { references: ({ environmentId }) => ({ alert: `${environmentId} NoMessages` }) },
      save: { fields: () => ({ webhook: 'https://chat.example/hook', emails: 'ada@example.com' }) },
      test: {},
      key: {},
    },
  },
  '/projects/:project/analyst-settings': {
    actions: { save: { fields: () => ({ 'time-zone': 'Europe/Berlin', 'safe-properties': 'level' }) } },
  },
  '/projects/:project/environments/:environment/limits': {
    actions: {
      limit: { fields: () => ({ 'per-second': '5', burst: '6' }) },
      cap: { fields: () => ({ 'per-second': '80000', burst: '800000' }) },
    },
  },
  '/projects/:project/environments/:environment': { isData: true },
  '/projects/:project/environments/:environment/overview': {},
  '/projects/:project/environments/:environment/demo': { actions: { load: {} } },
  '/instance/rate-limit-keys': {
    actions: {
      create: { fields: () => ({ partner: 'A partner', calls: '7', window: '60' }) },
      refresh: { references: rateLimitKey },
      revoke: { references: rateLimitKey },
    },
  },
  '/sign-in': {
    query: () => ({ again: '1' }),
    actions: {
      password: { fields: () => ({ login: 'unknown', password: 'not the password' }) },
      passkey: { fields: () => ({ response: '{}' }) },
      openid: {},
    },
  },
  '/sign-in/passkey': { isData: true },
  // Rejected, because no sign-in was started.
  '/sign-in/openid': { isData: true, query: () => ({ state: 'unknown', code: 'none' }) },
  '/sign-out': { actions: { 'sign-out': {} } },
  '/first-sign-in': linkSpec(({ firstCode }) => firstCode),
  '/first-sign-in/passkey': passkeySpec(({ firstCode }) => firstCode),
  '/invitation': invitationSpec,
  '/invitation/passkey': passkeySpec(({ invitationCode }) => invitationCode),
  '/reset': linkSpec(({ invitationCode }) => invitationCode),
  '/reset/passkey': passkeySpec(({ invitationCode }) => invitationCode),
  '/settings': {
    actions: {
      rename: { fields: () => ({ name: 'Renamed' }) },
      password: { fields: () => PASSWORDS },
      'add-passkey': { fields: () => ({ name: 'Created', response: '{}' }) },
      'remove-passkey': { references: ({ passkeyId }) => ({ passkey: passkeyId }) },
      'link-openid': {},
      'unlink-openid': {},
      end: { references: ({ sessionId }) => ({ session: sessionId }) },
      'end-others': {},
    },
  },
  '/settings/passkey': { isData: true },
  '/projects/:project/members': {
    actions: {
      invite: { fields: () => ({ name: 'Invited', role: 'analyst' }) },
      role: { fields: () => ({ role: 'developer' }), references: analyst },
      remove: { references: analyst },
      revoke: { references: invited },
    },
  },
  '/instance/accounts': {
    actions: {
      invite: { fields: () => ({ name: 'Invited' }) },
      revoke: { references: invited },
      promote: { references: analyst },
      demote: { references: analyst },
      disable: { references: analyst },
      enable: { references: ({ disabledId }) => ({ account: disabledId }) },
      remove: { references: ({ disabledId, disabledLogin }) => ({ account: disabledId, confirm: disabledLogin }) },
    },
  },
};

/** Routes that are not pages and that return the same response to every user. */
export const EXEMPT_ROUTES: readonly RegExp[] = [
  /^GET \/assets\/[\w.-]+$/,
  /^GET \/docs(\/\{\*page\})?$/,
  /^(GET|POST) \/\{\*unknown\}$/,
];

const SECRET = Buffer.alloc(32, 1);

export function listPages({ parts, origin }: TestPortal): readonly PortalPage[] {
  const frame = createFrameParts({ ...parts, origin: new URL(origin) }, () => {});
  const signIn = {} as PageParts['signIn'];
  const openId = {} as PageParts['openId'];
  return createPages({ ...parts, frame, signIn, openId, writeAudit: async () => {} });
}

/** @throws Error if the page is not in PAGE_SPECS */
export function getPageSpec(path: string): PageSpec {
  const spec = PAGE_SPECS[path];
  if (spec !== undefined) return spec;
  throw new Error(`The page ${path} is missing from PAGE_SPECS. Add its path parameters and forms.`);
}

/** @throws Error if the form is not in PAGE_SPECS */
export function getActionSpec(path: string, action: string): ActionSpec {
  const spec = getPageSpec(path).actions?.[action];
  if (spec !== undefined) return spec;
  throw new Error(`The form ${action} on ${path} is missing from PAGE_SPECS. Add its fields.`);
}

export function pathFor(path: string, seed: Seed, environment = seed.environment): string {
  const { params, query } = getPageSpec(path);
  const values: Record<string, string> = { project: seed.id, environment, ...params?.(seed) };
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
  return query === undefined ? filled : `${filled}?${new URLSearchParams(query(seed))}`;
}

const EXPLORE = '/projects/:project/environments/:environment/explore';
const REJECTIONS = '/projects/:project/environments/:environment/rejections';

/** Returns the path of a list of stored messages, without the panel of one message. */
export function storedMessagesPath(seed: Seed): string {
  return `${pathFor(EXPLORE, seed).split('?')[0]}?since=2026-01-01T00:00`;
}

export const EXPORTS: readonly ((seed: Seed) => string)[] = [
  (seed) => `${storedMessagesPath(seed)}&as=csv`,
  (seed) => `${pathFor('/projects/:project/environments/:environment/people', seed)}&as=csv`,
  (seed) => `/projects/${encodeURIComponent(seed.id)}/audit?as=csv`,
  (seed) => `${pathFor(REJECTIONS, seed).split('?')[0]}?as=csv`,
  (seed) => `${pathFor('/projects/:project/environments/:environment/mints', seed)}?as=csv`,
  (seed) => `${pathFor('/projects/:project/environments/:environment/activities', seed)}?as=csv`,
];

/** An HTTP client that adds a valid token to each form. */
export interface Client {
  get(path: string): Promise<Response>;
  send(path: string, form: string, values: Readonly<Record<string, string>>): Promise<Response>;
}

/** Opens a client that is signed in to an account. @param accountId null for a client that is not signed in */
export async function openClient(portal: TestPortal, accountId: string | null): Promise<Client> {
  const browser = portal.browser();
  let sessionId = '';
  if (accountId !== null) {
    const revision = (await portal.parts.accounts.all()).find(({ id }) => id === accountId)?.revision ?? 0;
    const account = { accountId, accountRevision: revision };
    const created = await portal.parts.sessions.create({ ...account, userAgent: 'a test', address: '127.0.0.1' });
    browser.resumeSession(created.text);
    sessionId = created.session.id;
  }
  return {
    get: browser.get,
    send: (path, form, values) => {
      const token = createFormTokens(SECRET).issue({ sessionId, path: decodePath(path), action: form });
      // Each form is sent from a random client address to avoid the limit per address.
      const headers = { 'x-forwarded-for': `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}` };
      return browser.post(path, new URLSearchParams({ form, token, ...values }), headers);
    },
  };
}

const decodePath = (path: string) => new URL(path, 'http://localhost').pathname;
