import { randomInt } from 'node:crypto';
import { createBytesInFlight } from '@playline/http';
import {
  createBrowserCookie,
  createProviderCookie,
  createSessionCookie,
} from '../../services/portal/src/frame/cookies.ts';
import { createFormTokens } from '../../services/portal/src/frame/form-tokens.ts';
import type { PortalPage } from '../../services/portal/src/frame/page.ts';
import { createPages, type PagesParts } from '../../services/portal/src/pages/index.ts';
import type { TestPortal } from '../../services/portal/src/test/open-portal.ts';
import type { Response } from '../../services/portal/src/test/test-browser.ts';
import type { Planted } from './planted.ts';
import { STORED_ID, TRACE_ID } from './planted-portal.ts';

export type { Response };

/** How to request a page of the portal, and how to fill each of its forms. */
export interface PageUse {
  /** Values of path parameters other than `:project` and `:environment`. */
  readonly params?: (planted: Planted) => Readonly<Record<string, string>>;
  /** The query of the path. */
  readonly query?: (planted: Planted) => Readonly<Record<string, string>>;
  readonly actions?: Readonly<Record<string, ActionUse>>;
  /** True when a script requests it, so it is not a page for people. */
  readonly isData?: boolean;
}

export interface ActionUse {
  /** Fields that name no object of a project or an account. */
  readonly plain?: (planted: Planted) => Readonly<Record<string, string>>;
  /** Fields that name an object of a project or an account by its id. */
  readonly refers?: (planted: Planted) => Readonly<Record<string, string>>;
}

const confirmEnvironment = ({ environment }: Planted) => ({ confirm: environment });
const rateLimitKey = ({ rateLimitKeyId }: Planted) => ({ key: rateLimitKeyId });
const collection = ({ contractAddress }: Planted) => ({ chain: 'demo-chain', contract: contractAddress });
const signableKey = ({ address }: Planted) => ({ address });
const analyst = ({ members }: Planted) => ({ account: members.analyst });
const invited = ({ invitedId }: Planted) => ({ account: invitedId });

/** Valid passwords. */
export const PASSWORDS = { password: 'correct horse battery', repeated: 'correct horse battery' };
const person = { login: 'newcomer', name: 'Newcomer', ...PASSWORDS };

/** A page that a one-time link opens, and its form. */
const linkUse = (codeOf: (planted: Planted) => string): Pick<PageUse, 'query' | 'actions'> => ({
  query: (planted) => ({ code: codeOf(planted) }),
  actions: { accept: { plain: (planted) => ({ code: codeOf(planted), ...person }) } },
});
/** A signed-in user may accept an invitation with their existing account. */
const invitationUse: PageUse = {
  query: ({ invitationCode }) => ({ code: invitationCode }),
  actions: {
    ...linkUse(({ invitationCode }) => invitationCode).actions,
    join: { plain: ({ invitationCode }) => ({ code: invitationCode }) },
  },
};
const passkeyUse = (codeOf: (planted: Planted) => string): PageUse => ({
  isData: true,
  query: (planted) => ({ code: codeOf(planted), login: 'newcomer', name: 'Newcomer' }),
});

/** All pages, by path. The tests fail for a page that is missing here: add how to fill it. */
export const PAGE_USES: Readonly<Record<string, PageUse>> = {
  '/': { actions: { create: { plain: () => ({ name: 'Another game' }) } } },
  '/projects/:project': {
    actions: {
      rename: { plain: () => ({ name: 'Renamed' }) },
      'add-environment': { plain: () => ({ environment: 'added', kind: 'development' }) },
      archive: { plain: ({ project }) => ({ confirm: project.name }) },
    },
  },
  '/projects/:project/environments/:environment/keys': {
    actions: {
      create: { plain: () => ({ kind: 'secret', name: 'Created' }) },
      refresh: { plain: (planted) => ({ kind: 'publishable', ...confirmEnvironment(planted) }) },
      revoke: { plain: (planted) => ({ kind: 'secret', ...confirmEnvironment(planted) }) },
      origins: { plain: () => ({ origins: 'https://game.example' }) },
      test: { plain: () => ({ key: 'none' }) },
    },
  },
  '/projects/:project/environments/:environment/collections': {
    actions: {
      link: { plain: () => ({ chain: 'demo-chain', contract: `0x${'7'.repeat(40)}`, name: 'Linked' }) },
      rename: { plain: () => ({ name: 'Renamed' }), refers: collection },
      relink: { refers: collection },
      unlink: { plain: () => ({ confirm: 'unlink' }), refers: collection },
    },
  },
  '/projects/:project/environments/:environment/signable-keys': {
    actions: {
      create: { plain: () => ({ name: 'Created' }) },
      disable: { refers: signableKey },
      enable: { refers: ({ disabledAddress }) => ({ address: disabledAddress }) },
    },
  },
  '/projects/:project/environments/:environment/live': {
    query: () => ({ find: STORED_ID }),
    actions: { person: { plain: () => ({ person: 'unknown' }) } },
  },
  '/projects/:project/environments/:environment/live/events': { isData: true },
  '/projects/:project/environments/:environment/rejections': { query: () => ({ trace: TRACE_ID }) },
  '/projects/:project/environments/:environment/people': {
    actions: {
      search: { refers: ({ personKey }) => ({ kind: 'key', id: personKey }) },
      erase: { plain: () => ({ kind: 'anonymous', id: 'unknown', confirm: 'unknown' }) },
      unlink: { plain: () => ({ kind: 'anonymous', id: 'unknown' }) },
    },
  },
  '/projects/:project/environments/:environment/erasures': {},
  '/projects/:project/environments/:environment/mints': {},
  '/projects/:project/environments/:environment/activities': {},
  '/projects/:project/environments/:environment/erasures/:erasure/receipt': {
    isData: true,
    params: ({ erasureId }) => ({ erasure: erasureId }),
  },
  '/projects/:project/alerts': {},
  '/projects/:project/audit': {},
  '/instance/audit': {},
  '/projects/:project/environments/:environment/limits': {
    actions: {
      limit: { plain: () => ({ 'per-second': '5', burst: '6' }) },
      cap: { plain: () => ({ 'per-second': '80000', burst: '800000' }) },
    },
  },
  '/instance/rate-limit-keys': {
    actions: {
      create: { plain: () => ({ partner: 'A partner', calls: '7', window: '60' }) },
      refresh: { refers: rateLimitKey },
      revoke: { refers: rateLimitKey },
    },
  },
  '/sign-in': {
    query: () => ({ again: '1' }),
    actions: {
      password: { plain: () => ({ login: 'unknown', password: 'not the password' }) },
      passkey: { plain: () => ({ response: '{}' }) },
      openid: {},
    },
  },
  '/sign-in/passkey': { isData: true },
  // No sign-in was started here, so the callback is refused.
  '/sign-in/openid': { isData: true, query: () => ({ state: 'unknown', code: 'none' }) },
  '/sign-out': { actions: { 'sign-out': {} } },
  '/first-sign-in': linkUse(({ firstCode }) => firstCode),
  '/first-sign-in/passkey': passkeyUse(({ firstCode }) => firstCode),
  '/invitation': invitationUse,
  '/invitation/passkey': passkeyUse(({ invitationCode }) => invitationCode),
  '/reset': linkUse(({ invitationCode }) => invitationCode),
  '/reset/passkey': passkeyUse(({ invitationCode }) => invitationCode),
  '/settings': {
    actions: {
      rename: { plain: () => ({ name: 'Renamed' }) },
      password: { plain: () => PASSWORDS },
      'add-passkey': { plain: () => ({ name: 'Created', response: '{}' }) },
      'remove-passkey': { refers: ({ passkeyId }) => ({ passkey: passkeyId }) },
      'link-openid': {},
      'unlink-openid': {},
      end: { refers: ({ sessionId }) => ({ session: sessionId }) },
      'end-others': {},
    },
  },
  '/settings/passkey': { isData: true },
  '/projects/:project/members': {
    actions: {
      invite: { plain: () => ({ name: 'Invited', role: 'analyst' }) },
      role: { plain: () => ({ role: 'developer' }), refers: analyst },
      remove: { refers: analyst },
      revoke: { refers: invited },
    },
  },
  '/instance/accounts': {
    actions: {
      invite: { plain: () => ({ name: 'Invited' }) },
      revoke: { refers: invited },
      appoint: { refers: analyst },
      dismiss: { refers: analyst },
      disable: { refers: analyst },
      enable: { refers: ({ disabledId }) => ({ account: disabledId }) },
      remove: { refers: ({ disabledId, disabledLogin }) => ({ account: disabledId, confirm: disabledLogin }) },
    },
  },
};

/** Routes that are no pages. They send the same bytes to everybody. */
export const OTHER_ROUTES: readonly RegExp[] = [/^GET \/assets\/[\w.-]+$/, /^(GET|POST) \/\{\*unknown\}$/];

/** PORTAL_SECRET of `openPortal`. */
const SECRET = Buffer.alloc(32, 1);

const MEMORY_BYTES = 1024 * 1024;

/** The portal's own pages with their forms. */
export function pagesOf({ parts, origin }: TestPortal): readonly PortalPage[] {
  const frame = {
    origin: new URL(origin),
    sessions: parts.sessions,
    oneTime: parts.oneTime,
    onFault: () => {},
    cookie: createSessionCookie(origin, SECRET),
    providerCookie: createProviderCookie(origin, SECRET, 600),
    tokens: createFormTokens(SECRET),
    wallClockMs: Date.now,
    accounts: parts.accounts.all,
    projects: parts.projects.all,
    addressOf: () => '127.0.0.1',
    admitStranger: () => {},
    admitMember: () => {},
    forms: createBytesInFlight(MEMORY_BYTES),
    browserCookie: createBrowserCookie(origin, SECRET),
    shares: parts.shares,
  };
  // Used during requests only.
  const signIn = {} as PagesParts['signIn'];
  const openId = {} as PagesParts['openId'];
  return createPages({ ...parts, frame, signIn, openId, writeAudit: async () => {} });
}

/** @throws Error for a page that is not in the table */
export function useOf(path: string): PageUse {
  const use = PAGE_USES[path];
  if (use !== undefined) return use;
  throw new Error(`The page ${path} is missing in PAGE_USES: add how to fill its path and its forms.`);
}

/** @throws Error for a form that is not in the table */
export function actionUseOf(path: string, action: string): ActionUse {
  const use = useOf(path).actions?.[action];
  if (use !== undefined) return use;
  throw new Error(`The form ${action} of ${path} is missing in PAGE_USES: add how to fill it.`);
}

/** The address of a page, with its parameters filled in. */
export function pathFor(path: string, planted: Planted, environment = planted.environment): string {
  const { params, query } = useOf(path);
  const names: Record<string, string> = { project: planted.id, environment, ...params?.(planted) };
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(names[name] ?? ''));
  return query === undefined ? filled : `${filled}?${new URLSearchParams(query(planted))}`;
}

const LIVE = '/projects/:project/environments/:environment/live';
const REJECTIONS = '/projects/:project/environments/:environment/rejections';

/** The list of stored messages for a span of time, which belongs to the page Live. */
export function storedPathFor(planted: Planted): string {
  return `${pathFor(LIVE, planted).split('?')[0]}?since=2026-01-01T00:00`;
}

/** All pages that can be downloaded as a file, by path. */
export const FILES: readonly ((planted: Planted) => string)[] = [
  (planted) => `${storedPathFor(planted)}&as=csv`,
  (planted) => `/projects/${encodeURIComponent(planted.id)}/audit?as=csv`,
  (planted) => `${pathFor(REJECTIONS, planted).split('?')[0]}?as=csv`,
  (planted) => `${pathFor('/projects/:project/environments/:environment/mints', planted)}?as=csv`,
  (planted) => `${pathFor('/projects/:project/environments/:environment/activities', planted)}?as=csv`,
];

/** A user whose forms always have valid tokens. */
export interface Person {
  get(path: string): Promise<Response>;
  send(path: string, form: string, values: Readonly<Record<string, string>>): Promise<Response>;
}

/** Signs an account in. @param accountId null for a visitor without a session */
export async function personOf(portal: TestPortal, accountId: string | null): Promise<Person> {
  const browser = portal.browser();
  let sessionId = '';
  if (accountId !== null) {
    const revision = (await portal.parts.accounts.all()).find(({ id }) => id === accountId)?.revision ?? 0;
    const of = { accountId, accountRevision: revision };
    const created = await portal.parts.sessions.create({ ...of, userAgent: 'a test', address: '127.0.0.1' });
    browser.keep(created.text);
    sessionId = created.session.id;
  }
  return {
    get: browser.get,
    send: (path, form, values) => {
      const token = createFormTokens(SECRET).issue({ sessionId, path: decodedPath(path), action: form });
      // A random client address for each form, because the limit of forms per address is not under test here.
      const headers = { 'x-forwarded-for': `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}` };
      return browser.post(path, new URLSearchParams({ form, token, ...values }), headers);
    },
  };
}

/** The path as the portal decodes it. */
const decodedPath = (path: string) => new URL(path, 'http://localhost').pathname;
