import { describe, expect, it } from 'vitest';
import { createBySql, dropAccount } from './accounts.ts';
import type { RunStatement } from './run-statement.ts';

/** A server that accepts accounts by SQL, and records the statements. */
function createServer() {
  const told: string[] = [];
  const ask: RunStatement = async (statement, parameters = {}) => {
    told.push(statement, JSON.stringify(parameters));
    const isAnswered = statement.includes('system.user_directories') || statement.includes("storage != 'users_xml'");
    return isAnswered ? [['1']] : [];
  };
  return { told, ask };
}

describe('an account made by SQL', () => {
  it('has the roles of users.xml, the limits of analysts, and a password that the server never receives', async () => {
    const { told, ask } = createServer();
    const made = await createBySql(ask, true);
    expect(made).toMatchObject({
      account: expect.stringMatching(/^analyst_raw_[0-9a-f]{8}$/),
      password: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const { account = '', password = '' } = made ?? {};
    const text = told.join('\n');
    expect(text).toMatch(
      new RegExp(`CREATE USER ${account} IDENTIFIED WITH sha256_hash BY '[0-9a-f]{64}' SETTINGS PROFILE 'analyst'`),
    );
    expect(text).toContain(`GRANT reads_views, reads_raw_ids TO ${account}`);
    expect(text).toContain(
      `CREATE QUOTA ${account} KEYED BY user_name FOR INTERVAL 10 SECOND MAX result_rows = 1000000 TO ${account}`,
    );
    expect(text).not.toContain(password);
    expect(text).not.toContain('INSERT INTO analyst_grants');
  });

  it('has no right to raw ids unless requested', async () => {
    const { told, ask } = createServer();
    const made = await createBySql(ask, false);
    expect(told).toContain(`GRANT reads_views TO ${made?.account}`);
    expect(told.join('\n')).not.toContain('reads_raw_ids');
  });

  it('is dropped with its quota, by statements without parameters, which ClickHouse does not take there', async () => {
    const { told, ask } = createServer();
    await dropAccount(ask, 'analyst_0a1b2c3d');
    expect(told).toEqual(
      expect.arrayContaining(['DROP QUOTA IF EXISTS `analyst_0a1b2c3d`', 'DROP USER IF EXISTS `analyst_0a1b2c3d`']),
    );
  });
});
