// A portal whose database credentials are accounts of a ClickHouse with the production accounts.
import {
  type AnalystStore,
  createAnalystStore,
  createProject,
  openRoleFollower,
  type ProjectRecord,
  type Role,
} from '@playline/access-keys';
import { type AnalystsEngine, openAnalystsEngine } from '../../infra/clickhouse/test/analysts-engine.ts';
import { openPortal, type TestPortal } from '../../services/portal/src/test/open-portal.ts';

export const AUTHOR = { changedBy: 'a test', requestId: 'r' };
/** Events of the last minutes in both environments of the project `game`. */
const EVENTS = `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, user_id)
  SELECT ['game-production', 'game-development'][number % 2 + 1], 'track', 'level_started', now64(3) - number, now64(3),
    generateUUIDv4(), 'player' FROM numbers(10)`;

export interface ConnectedPortal {
  readonly engine: AnalystsEngine;
  readonly portal: TestPortal;
  readonly store: AnalystStore;
  readonly project: ProjectRecord;
  readonly path: string;
  /** Creates credentials in the portal. @returns the user, the password and the snippet of each tool */
  createCredentials(role: Role, rawIds?: boolean): Promise<Created>;
  /** Runs a query with credentials. */
  query(created: Pick<Created, 'user' | 'password'>, sql: string): Promise<string>;
  /** Starts a process that makes credentials follow the roles. */
  follow(): ReturnType<typeof openRoleFollower>;
  close(): Promise<void>;
}

export interface Created {
  readonly accountId: string;
  readonly user: string;
  readonly password: string;
  readonly snippets: Readonly<Record<string, string>>;
}

export async function openConnectedPortal(): Promise<ConnectedPortal> {
  const engine = await openAnalystsEngine();
  await engine.runAsOperator(EVENTS);
  const store = createAnalystStore(engine.accountOf('accounts'), engine.pool);
  const portal = await openPortal({ analysts: store });
  const { accounts, projects, settings } = portal.parts;
  Object.assign(settings, { clickhouseUrl: engine.url });
  const environments = ['production', 'development'].map((name) => ({ name, kind: 'development' as const }));
  const project = await createProject({ store: projects.storeFor(AUTHOR) }, { name: 'Game', id: 'game', environments });
  const path = `/projects/${project.id}/environments/production/connect`;
  return {
    engine,
    portal,
    store,
    project,
    path,
    createCredentials: async (role, rawIds = false) => {
      const browser = await portal.signIn({ project, role });
      const { text } = await browser.submit(path, 'create', { name: 'A tool', ...(rawIds && { 'raw-ids': 'on' }) });
      return toCreated(store, text);
    },
    query: async ({ user, password }, sql) => {
      const headers = { connection: 'close', 'x-clickhouse-user': user, 'x-clickhouse-key': password };
      const response = await fetch(`${engine.url}/?database=playline`, { method: 'POST', headers, body: sql });
      return (await response.text()).trim();
    },
    follow: () =>
      openRoleFollower({
        store,
        everyMs: 100,
        accounts,
        projects,
        audit: portal.parts.audit,
        onFault: (fault) => console.error(fault),
      }),
    close: async () => {
      await portal.close();
      await engine.close();
    },
  };
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
const toText = (html: string) => html.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '');

async function toCreated(store: AnalystStore, html: string): Promise<Created> {
  const [, password = ''] = /export CLICKHOUSE_PASSWORD=(\w+)/.exec(html) ?? [];
  const found = [...html.matchAll(/<label for="tool-\w+">(\w+)<\/label>.*?<code>(.*?)<\/code>/gs)];
  const newest = (await store.list()).toSorted((a, b) => a.createdAt - b.createdAt).at(-1);
  const snippets = Object.fromEntries(found.map(([, tool = '', text = '']) => [tool, toText(text)]));
  return { user: newest?.account ?? '', accountId: newest?.owner.accountId ?? '', password, snippets };
}
