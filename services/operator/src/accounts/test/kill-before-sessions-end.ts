// Makes an account an administrator, and kills itself after the change is stored but before the sessions are ended.
import { ACCOUNTS, setAdministrator } from '@playline/access-keys';
import { openRedisSessions } from '@playline/access-keys/redis';
import { withAccounts } from '../../commands/accounts.ts';
import { createRecordSources } from '../../records/record-sources.ts';
import { createTestStores } from '../../test/open-stores.ts';

const { REDIS = '', BROKERS = '', REGISTRY = '', TOPIC_PREFIX: topicPrefix = '' } = process.env;
const stores = createTestStores({ redis: REDIS, kafka: BROKERS.split(','), registry: REGISTRY });
const author = { changedBy: 'other', requestId: 'r' };
const sourcesOf = createRecordSources(stores, { topicPrefix, author });
const sources = {
  accounts: sourcesOf(ACCOUNTS),
  portal: () => null,
  openSessions: async () => {
    const opened = await openRedisSessions({ url: REDIS });
    const endAll = async () => void process.kill(process.pid, 'SIGKILL');
    return { ...opened, sessions: { ...opened.sessions, endAll } };
  },
};
await withAccounts(sources as unknown as Parameters<typeof withAccounts>[0], (accounts) =>
  setAdministrator(accounts, { accountId: process.argv[2] ?? '', isAdministrator: true }),
);
