import { until } from '@playline/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { AccountRecord, ProjectRecord } from '../index.ts';
import { createMemoryAnalysts } from '../test/index.ts';
import { followRole, openRoleFollower, type PortalRecordLists, readableEnvironmentsOf } from './credentials.ts';

type Roles = AccountRecord['roles'];

function toRecords({
  roles,
  state = 'live',
  environments = ['p-one', 'p-two'],
}: {
  readonly roles: Roles;
  readonly state?: AccountRecord['state'];
  readonly environments?: readonly string[];
}): PortalRecordLists {
  const account = { id: 'member', state, isAdministrator: false, roles } as unknown as AccountRecord;
  const project = { id: 'p', environments: environments.map((id) => ({ id })) } as unknown as ProjectRecord;
  return { accounts: [account], projects: [project] };
}

const roleIn = (role: Roles[number]['role'], projectId = 'p'): Roles => [{ projectId, role }];
const toOwned = (rawIds: boolean) => ({ owner: { accountId: 'member', projectId: 'p', name: 'Metabase' }, rawIds });

it.each([
  ['an analyst without raw ids', toOwned(false), toRecords({ roles: roleIn('analyst') }), ['p-one', 'p-two']],
  ['a developer with raw ids', toOwned(true), toRecords({ roles: roleIn('developer') }), ['p-one', 'p-two']],
  ['a former developer with raw ids', toOwned(true), toRecords({ roles: roleIn('analyst') }), []],
  ['a member of another project', toOwned(false), toRecords({ roles: roleIn('owner', 'q') }), null],
  ['a disabled member', toOwned(false), toRecords({ roles: roleIn('owner'), state: 'disabled' }), null],
  ['a removed account', toOwned(false), { accounts: [], projects: [] }, null],
])('the credentials of %s read exactly the environments that the role allows', (_who, owned, records, expected) => {
  expect(readableEnvironmentsOf(owned, records)).toEqual(expected);
});

it('after any sequence of role changes, the grants are those of the last role, and lost credentials stay lost', async () => {
  const step = fc.record({
    roles: fc.constantFrom<Roles>(roleIn('analyst'), roleIn('developer'), roleIn('owner'), roleIn('owner', 'q'), []),
    state: fc.constantFrom<AccountRecord['state']>('live', 'live', 'live', 'disabled'),
    environments: fc.subarray(['p-one', 'p-two', 'p-three']),
  });
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(step, { minLength: 1, maxLength: 8 }), async (rawIds, steps) => {
      const store = createMemoryAnalysts();
      await store.create(toOwned(rawIds));
      let expected: readonly string[] | null = [];
      for (const each of steps) {
        const records = toRecords(each);
        for (const account of await store.list()) await followRole(store, account, records);
        expected = expected && readableEnvironmentsOf(toOwned(rawIds), records);
        expect((await store.list()).map(({ environments }) => environments)).toEqual(
          expected === null ? [] : [expected.toSorted()],
        );
      }
    }),
  );
});

it('the role follower reports an outage once, applies changes afterwards, ignores empty records, and audits what it drops', async () => {
  const store = createMemoryAnalysts();
  const { account } = await store.create(toOwned(false));
  let records: PortalRecordLists | null = null;
  const [faults, dropped]: [unknown[], string[]] = [[], []];
  let reads = 0;
  const follower = openRoleFollower({
    store,
    everyMs: 5,
    accounts: {
      all: async () => {
        reads += 1;
        if (records === null) throw new Error('no Redis');
        return records.accounts;
      },
    },
    projects: { all: async () => records?.projects ?? [] },
    audit: { append: async ({ action, object }) => void dropped.push(`${action} ${object}`) },
    onFault: (fault) => faults.push(fault),
  });
  const readTwice = async () => {
    const before = reads;
    await until('two more reads', () => reads >= before + 2);
  };
  await readTwice();
  records = { accounts: [], projects: [] };
  await readTwice();
  expect([faults.length, (await store.list()).length]).toEqual([1, 1]);
  records = toRecords({ roles: roleIn('analyst') });
  await until('grants', async () => (await store.list())[0]?.environments.length === 2);
  records = toRecords({ roles: [] });
  await until('the account is dropped', async () => (await store.list()).length === 0);
  expect(dropped).toEqual([`analyst.revoke ${account}`]);
  await follower.close();
});
