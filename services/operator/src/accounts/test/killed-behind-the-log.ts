// A process that makes an account an administrator, and is killed once the log and the view have it: sessions are not ended.
import { ACCOUNTS, setAdministrator } from '@playline/access-keys';
import { openRedisRecords, openRedisSessions } from '@playline/access-keys/redis';
import * as log from '@playline/stream/kafka';
import { createRecordSources } from '../../records/record-sources.ts';
import { withAccounts } from '../account-access.ts';

const { REDIS = '', BROKERS = '', REGISTRY = '', TOPIC_PREFIX: topicPrefix = '' } = process.env;
const onFault = () => {};
const addresses = {
  redis: () => ({ url: REDIS, onFault }),
  kafka: () => ({ brokers: BROKERS.split(','), onFault }),
  registry: () => ({ url: REGISTRY, onFault }),
};
const author = { changedBy: 'somebody', requestId: 'r' };
const sourcesOf = createRecordSources({ ...log, openRedisRecords }, { addresses, topicPrefix, author });
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
