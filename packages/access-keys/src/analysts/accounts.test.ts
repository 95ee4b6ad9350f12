import { expect, it } from 'vitest';
import { createBySql, dropAnalyst, type RunStatement } from './accounts.ts';

function createServer() {
  const printed: string[] = [];
  const run: RunStatement = async (statement, parameters = {}) => {
    printed.push(statement, JSON.stringify(parameters));
    const hasRow = statement.includes('system.user_directories') || statement.includes("storage != 'users_xml'");
    return hasRow ? [['1']] : [];
  };
  return { printed, run };
}

it('createBySql creates an account with the analyst roles and limits, and sends only the hash of its password', async () => {
  const { printed, run } = createServer();
  const created = await createBySql(run, { rawIds: true });
  expect(created).toMatchObject({
    account: expect.stringMatching(/^analyst_raw_[0-9a-f]{8}$/),
    password: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  const { account = '', password = '' } = created ?? {};
  const text = printed.join('\n');
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

it('createBySql does not grant raw ids unless requested', async () => {
  const { printed, run } = createServer();
  const created = await createBySql(run, { rawIds: false });
  expect(printed).toContain(`GRANT reads_views TO ${created?.account}`);
  expect(printed.join('\n')).not.toContain('reads_raw_ids');
});

it('dropAnalyst drops an account and its quota with statements that do not use parameters', async () => {
  const { printed, run } = createServer();
  await dropAnalyst(run, 'analyst_0a1b2c3d');
  expect(printed).toEqual(
    expect.arrayContaining(['DROP QUOTA IF EXISTS `analyst_0a1b2c3d`', 'DROP USER IF EXISTS `analyst_0a1b2c3d`']),
  );
});
