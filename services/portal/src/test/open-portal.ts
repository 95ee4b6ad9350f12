import { randomUUID } from 'node:crypto';
import {
  ACCESS_KEYS,
  ACCOUNTS,
  type AccountRecord,
  type Change,
  COLLECTIONS,
  type Content,
  createPasswords,
  createProject,
  createRecordStore,
  DEFAULT_ENVIRONMENTS,
  PROJECTS,
  type ProjectRecord,
  RATE_LIMIT_KEYS,
  type RecordKind,
  type Role,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { createPasskeys } from '@playline/access-keys/passkeys';
import {
  createMemoryAnalysts,
  createMemoryKeyUsage,
  createMemoryRecordLog,
  createMemoryRecords,
  createMemorySessions,
} from '@playline/access-keys/test';
import { createMemoryAlerts } from '@playline/alerts/memory';
import { openHttpServer } from '@playline/http';
import { freePorts } from '@playline/infra/ports';
import { createIdentityKeyer } from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger, createMetrics } from '@playline/runtime';
import { afterAll, beforeAll, expect } from 'vitest';
import { createPortalApp, type PortalAppParts } from '../app.ts';
import type { PortalSettings } from '../config.ts';
import { createPortalLimiters } from '../frame/limiters.ts';
import { type LiveHub, openLiveHub } from '../live/index.ts';
import { createPortalPeople, type PortalPeople, type PortalPeopleParts } from '../stores/people.ts';
import type { PortalRecords } from '../stores/portal-records.ts';
import { createMemoryReads } from './memory-reads.ts';
import { createBrowser } from './test-browser.ts';

export function createMemoryPortalRecords<R extends Change>(kind: RecordKind<R>): PortalRecords<R> {
  const stores = { view: createMemoryRecords(kind), log: createMemoryRecordLog<R>() };
  const storeFor: PortalRecords<R>['storeFor'] = (author) => createRecordStore(stores, author);
  return { isInSync: true, all: () => storeFor({ changedBy: 'a test', requestId: 'r' }).readAll(), storeFor };
}

/** Computes identity keys with the test pepper. */
export const keyOf = createIdentityKeyer(Buffer.alloc(32, 2));

/** People in memory. Erasure requests are discarded unless the test passes a producer. */
export function createMemoryPeople(overrides: Partial<PortalPeopleParts> = {}): PortalPeople {
  const people = openMemoryPeople();
  void people.rebuild.mintEpoch();
  return createPortalPeople({
    people,
    keyOf,
    topicPrefix: '',
    clockSkewMs: 2_000,
    onFault: () => {},
    producer: { sendForOffset: async () => ({ partition: 0, offset: 0, loggedAtMs: null }) },
    registry: { idOf: async () => 7, schemaOf: () => Promise.reject(new Error('unexpected schema lookup')) },
    ...overrides,
  });
}

/** A hub that fails if it is used, for tests that do not need live messages. */
function openUnusedLive(): LiveHub {
  const fail = () => Promise.reject(new Error('unexpected read of live messages'));
  return openLiveHub({
    log: { bounds: fail, committed: fail, read: () => expect.fail('unexpected read of live messages') },
    topics: { messages: 'messages', rejections: 'rejections', deadLetters: [] },
    writerGroup: 'event-writer',
    schemaOf: fail,
    openFences: () => expect.fail('unexpected read of fences'),
    onFault: () => {},
  });
}

export type TestPortal = Awaited<ReturnType<typeof openPortal>>;

const AUTHOR = { changedBy: 'a test', requestId: 'r' };

const SETTINGS: PortalSettings = {
  keyPrefix: 'svcapik',
  signerKey: null,
  headerPrefix: 'x-service',
  gatewayUrl: 'http://gateway.test',
  chainApiUrl: 'http://chain.test',
  servedChains: ['demo-chain', 'other-chain'],
  clickhouseUrl: 'http://clickhouse.test:8123',
  checkedChains: ['demo-chain'],
};

/** Opens a portal with in-memory stores on a free port. */
export async function openPortal(overrides: Partial<PortalAppParts> = {}) {
  const [port = 0] = await freePorts(1);
  const origin = new URL(`http://localhost:${port}`);
  const parts: PortalAppParts = { ...createParts(origin), ...overrides };
  const server = await openHttpServer({ app: createPortalApp(parts), host: '127.0.0.1', port });
  const addAccount = async (rights: Partial<Pick<AccountRecord, 'isAdministrator' | 'roles'>>) => {
    const account: Content<AccountRecord> = {
      id: randomUUID(),
      name: 'A name',
      login: `login-${randomUUID()}`,
      state: 'live',
      createdAt: Date.now(),
      isAdministrator: false,
      roles: [],
      passwordHash: null,
      passkeys: [],
      openId: null,
      invitation: null,
      sessionsFrom: 0,
      ...rights,
    };
    return (await parts.accounts.storeFor(AUTHOR).change(() => account))!;
  };
  const browser = () => createBrowser(origin.origin);
  return {
    origin: origin.origin,
    parts,
    addAccount,
    browser,
    addProject: (name: string) =>
      createProject({ store: parts.projects.storeFor(AUTHOR) }, { name, environments: DEFAULT_ENVIRONMENTS }),
    /** Returns a browser that is signed in with the project role, or as an administrator if no role is given. */
    signIn: async (role?: { readonly project: ProjectRecord; readonly role: Role }) => {
      const roles = role === undefined ? [] : [{ projectId: role.project.id, role: role.role }];
      const account = await addAccount({ isAdministrator: role === undefined, roles });
      const { text: sessionToken } = await parts.sessions.create({
        accountId: account.id,
        userAgent: 'a test',
        address: '127.0.0.1',
      });
      const signedIn = browser();
      signedIn.resumeSession(sessionToken);
      return signedIn;
    },
    close: () => server.close(),
  };
}

/** Opens one portal for all tests in a file. */
export function usePortal(overrides: Partial<PortalAppParts> = {}): TestPortal {
  let portal: TestPortal | undefined;
  beforeAll(async () => {
    portal = await openPortal(overrides);
  });
  afterAll(() => portal?.close());
  return new Proxy({} as TestPortal, { get: (_, name) => Reflect.get(portal!, name) });
}

function createParts(origin: URL): PortalAppParts {
  const { sessions, oneTimeTokens } = createMemorySessions();
  return {
    config: { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: 0 },
    logger: createLogger({ service: 'portal', level: 'silent' }),
    // Each app needs a separate registry, because some tests open several apps with the same parts.
    metrics: {
      histogram: (...args) => createMetrics('portal').histogram(...args),
      counter: (...args) => createMetrics('portal').counter(...args),
      collectedGauge: (...args) => createMetrics('portal').collectedGauge(...args),
    },
    tracing: null,
    origin,
    sessions,
    oneTimeTokens,
    // The lowest costs that argon2id accepts.
    passwords: createPasswords({ productName: 'Playline', costs: { memory: 8, passes: 1, parallelism: 1 } }),
    passkeys: createPasskeys({ name: 'Playline', origin: origin.origin }),
    openIdProvider: null,
    limiters: createPortalLimiters(),
    accounts: createMemoryPortalRecords(ACCOUNTS),
    projects: createMemoryPortalRecords(PROJECTS),
    rateLimitKeys: createMemoryPortalRecords(RATE_LIMIT_KEYS),
    collections: createMemoryPortalRecords(COLLECTIONS),
    signableKeys: createMemoryPortalRecords(SIGNABLE_KEYS),
    keys: createMemoryPortalRecords(ACCESS_KEYS),
    usage: createMemoryKeyUsage(),
    people: createMemoryPeople(),
    reads: createMemoryReads(),
    live: openUnusedLive(),
    demo: { stateOf: () => null, start: () => {} },
    pipeline: {
      openDeadLetters: async () => ({ byEnvironment: new Map(), isComplete: true }),
    },
    audit: { append: async () => {} },
    analysts: createMemoryAnalysts(),
    alerts: {
      store: createMemoryAlerts(),
      delivery: {
        hasEmail: true,
        keyOf: ({ id, alertKeys }) => `key-${alertKeys.length}-of-${id}`,
        test: async () => [],
      },
    },
    readCode: async () => null,
    settings: SETTINGS,
  };
}
