import { testStores } from '@playline/testkit';
import { describe, expect, it } from 'vitest';

/** A post as a page of another origin in a local browser can send it: no password, no header that needs a preflight. */
const AS_A_PAGE = { 'content-type': 'text/plain', origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' };

const basicOf = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

describe('an account of ClickHouse', () => {
  const { url, user, password } = testStores().clickhouse;

  const post = async (sql: string, { search = '', headers = {} as Record<string, string> } = {}) => {
    const answer = await fetch(`${url}/${search}`, { method: 'POST', headers, body: sql });
    return { ok: answer.ok, text: await answer.text() };
  };
  const asOperator = { headers: { 'x-clickhouse-user': user, 'x-clickhouse-key': password } };

  it.each([
    ['without an account', ''],
    ['as the account of the engine itself', '?user=default'],
    ['with an empty password', '?user=default&password='],
    ['as the operator without its password', '?user=operator'],
    ['as the analyst without its password', '?user=analyst'],
  ])('can do nothing over HTTP without a password: %s', async (_who, search) => {
    for (const sql of ['SELECT 1', 'SYSTEM STOP LISTEN HTTP', 'SELECT * FROM system.users', 'SET max_threads = 1']) {
      const { ok } = await post(sql, { search, headers: AS_A_PAGE });
      expect([sql, ok]).toEqual([sql, false]);
    }
    expect(await post('SELECT 1', asOperator)).toEqual({ ok: true, text: '1\n' });
  });

  it.each([
    ['in the header', '', { 'x-clickhouse-user': 'default' }],
    ['as Basic', '', { authorization: `Basic ${Buffer.from('default:').toString('base64')}` }],
    ['as Basic without a name', '', { authorization: `Basic ${Buffer.from(':').toString('base64')}` }],
    ['in the URL, behind another', '?user=default', { authorization: basicOf('operator', 'wrong') }],
    ['in the URL, behind that of the analyst', '?a=&user=default&password=', { authorization: basicOf('analyst', '') }],
  ])('without a password cannot be used, however a request names it: %s', async (_where, search, headers) => {
    for (const sql of ['SYSTEM STOP LISTEN HTTP', 'SELECT * FROM system.users', 'SELECT count() FROM numbers(10)'])
      expect([sql, (await post(sql, { search, headers })).ok]).toEqual([sql, false]);
    expect(await post('SELECT 1', asOperator)).toEqual({ ok: true, text: '1\n' });
  });

  it('can log in with its password by header and by Basic', async () => {
    expect(await post('SELECT 1', { headers: { authorization: basicOf(user, password) } })).toMatchObject({ ok: true });
    expect(await post('SELECT 1', asOperator)).toMatchObject({ ok: true });
  });

  it("cannot close the listeners over HTTP, not even the operator's account", async () => {
    for (const sql of [
      'SYSTEM STOP LISTEN HTTP',
      'SYSTEM STOP LISTEN QUERIES ALL',
      'GRANT SYSTEM LISTEN ON *.* TO operator',
    ]) {
      const { ok } = await post(sql, asOperator);
      expect([sql, ok]).toEqual([sql, false]);
    }
    expect(await post('SELECT 1', asOperator)).toEqual({ ok: true, text: '1\n' });
  });
});
