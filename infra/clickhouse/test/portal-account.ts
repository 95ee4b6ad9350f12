import { createTables, runStatement, testStores } from '@playline/testkit';
import { type Accounts, createAccounts } from './accounts.ts';
import { fillPortalRows } from './portal-rows.ts';

/** The account of the portal in the ClickHouse of the test run, with the database that its grants name. */
export interface PortalAccount extends Accounts {
  close(): Promise<void>;
}

/**
 * Makes the database with rows of two environments. Only one test file of a run may call it: the grants fix the name.
 * @throws Error where the ClickHouse has such a database, which is then left alone
 */
export async function openPortalAccount(): Promise<PortalAccount> {
  const { clickhouse, portalPassword } = testStores();
  const { url, user, password } = clickhouse;
  if (portalPassword === undefined)
    throw new Error('PLAYLINE_TEST_STORES has no portalPassword, which this test needs');
  const accounts = createAccounts(url, { operator: password, portal: portalPassword });
  const isThere = await runStatement({ ...clickhouse, database: 'default' }, 'EXISTS DATABASE playline');
  if (isThere === '1')
    throw new Error(`${url} has a database playline. This test makes its own: drop it, or give other stores`);
  const close = async () =>
    void (await runStatement({ ...clickhouse, database: 'default' }, 'DROP DATABASE IF EXISTS playline SYNC'));
  try {
    await createTables({ url, user, password, database: 'playline' });
    await fillPortalRows(accounts);
    return { ...accounts, close };
  } catch (fault) {
    await close();
    throw fault;
  }
}
