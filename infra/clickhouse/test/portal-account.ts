import { createTables, runStatement, testStores } from '@playline/testkit';
import { type Accounts, createAccounts } from './accounts.ts';
import { fillPortalRows } from './portal-rows.ts';

/** The portal account in the ClickHouse of the test run, with the database named in its grants. */
export interface PortalAccount extends Accounts {
  close(): Promise<void>;
}

/**
 * Creates a database with rows of two environments. Only one test file per run may call this.
 * @throws Error if ClickHouse already has a database with that name, which is not changed
 */
export async function openPortalAccount(): Promise<PortalAccount> {
  const { clickhouse, portalPassword } = testStores();
  const { url, user, password } = clickhouse;
  if (portalPassword === undefined)
    throw new Error('PLAYLINE_TEST_STORES has no portalPassword. Add the password of the portal account');
  const accounts = createAccounts(url, { operator: password, portal: portalPassword });
  const found = await runStatement({ ...clickhouse, database: 'default' }, 'EXISTS DATABASE playline');
  if (found === '1')
    throw new Error(
      `${url} already has a database playline, which this test creates. Drop the database, or use other stores`,
    );
  const close = async () =>
    void (await runStatement({ ...clickhouse, database: 'default' }, 'DROP DATABASE IF EXISTS playline SYNC'));
  try {
    await createTables({ url, user, password, database: 'playline' });
    await fillPortalRows(accounts);
    return { ...accounts, close };
  } catch (error) {
    await close();
    throw error;
  }
}
