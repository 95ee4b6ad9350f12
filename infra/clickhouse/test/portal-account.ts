import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTables, runStatement, testStores } from '@playline/testkit';
import { type Accounts, createAccounts } from './accounts.ts';
import { fillPortalRows, SECRET_OF_OTHER } from './portal-rows.ts';

/** The account of the portal in the ClickHouse of the test run, with the database that its grants name. */
export interface PortalAccount extends Accounts {
  /** `host:port` */
  readonly host: string;
  readonly passwords: readonly string[];
  /** A file of this machine with a text that only the second environment has. */
  readonly secretFile: string;
  close(): Promise<void>;
}

/**
 * Makes the database with rows of two environments. Only one test file of a run may call it: the grants fix the name.
 * @throws Error where the ClickHouse has such a database, which is then left alone
 */
export async function openPortalAccount(): Promise<PortalAccount> {
  const { clickhouse, portalPassword, viewsPassword } = testStores();
  const { url, user, password } = clickhouse;
  if (portalPassword === undefined)
    throw new Error('PLAYLINE_TEST_STORES has no portalPassword, which this test needs');
  const accounts = createAccounts(url, { operator: password, portal: portalPassword });
  const isThere = await runStatement({ ...clickhouse, database: 'default' }, 'EXISTS DATABASE playline');
  if (isThere === '1')
    throw new Error(`${url} has a database playline. This test makes its own: drop it, or give other stores`);
  const folder = mkdtempSync(join(tmpdir(), 'playline-secret-'));
  const close = async () => {
    rmSync(folder, { recursive: true, force: true });
    await runStatement({ ...clickhouse, database: 'default' }, 'DROP DATABASE IF EXISTS playline SYNC');
  };
  try {
    await createTables({ url, user, password, database: 'playline' });
    const secretFile = join(folder, 'secret');
    writeFileSync(secretFile, SECRET_OF_OTHER);
    await fillPortalRows(accounts);
    const passwords = [password, portalPassword, viewsPassword];
    return { ...accounts, host: new URL(url).host, passwords, secretFile, close };
  } catch (fault) {
    await close();
    throw fault;
  }
}
