import { testStores } from '@playline/testkit';
import { describe, expect, it } from 'vitest';

/** Headers that a cross-origin page in a local browser can send: no password, no header that requires a preflight. */
const CROSS_ORIGIN_HEADERS = {
  'content-type': 'text/plain',
  origin: 'https://elsewhere.example',
  'sec-fetch-site': 'cross-site',
};

const basicOf = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

describe('a ClickHouse account', () => {
  const { url, user, password } = testStores().clickhouse;

  const post = async (sql: string, { search = '', headers = {} as Record<string, string> } = {}) => {
    const response = await fetch(`${url}/${search}`, { method: 'POST', headers, body: sql });
    return { ok: response.ok, text: await response.text() };
  };
  const asOperator = { headers: { 'x-clickhouse-user': user, 'x-clickhouse-key': password } };

  it.each([
    ['no account', ''],
    ['the account of the engine itself', '?user=default'],
    ['an empty password', '?user=default&password='],
    ['the operator without a password', '?user=operator'],
    ['the analyst without a password', '?user=analyst'],
  ])('cannot run a query over HTTP without a password: %s', async (_case, search) => {
    for (const sql of ['SELECT 1', 'SYSTEM STOP LISTEN HTTP', 'SELECT * FROM system.users', 'SET max_threads = 1']) {
      const { ok } = await post(sql, { search, headers: CROSS_ORIGIN_HEADERS });
      expect([sql, ok]).toEqual([sql, false]);
    }
    expect(await post('SELECT 1', asOperator)).toEqual({ ok: true, text: '1\n' });
  });

  it.each([
    ['in the header', '', { 'x-clickhouse-user': 'default' }],
    ['in Basic authentication', '', { authorization: `Basic ${Buffer.from('default:').toString('base64')}` }],
    ['in Basic authentication without a name', '', { authorization: `Basic ${Buffer.from(':').toString('base64')}` }],
    [
      'in the URL, with another account in the header',
      '?user=default',
      { authorization: basicOf('operator', 'wrong') },
    ],
    [
      'in the URL, with the analyst in the header',
      '?a=&user=default&password=',
      { authorization: basicOf('analyst', '') },
    ],
  ])('cannot be used without a password when it is named %s', async (_where, search, headers) => {
    for (const sql of ['SYSTEM STOP LISTEN HTTP', 'SELECT * FROM system.users', 'SELECT count() FROM numbers(10)'])
      expect([sql, (await post(sql, { search, headers })).ok]).toEqual([sql, false]);
    expect(await post('SELECT 1', asOperator)).toEqual({ ok: true, text: '1\n' });
  });

  it('can log in with its password in a header or with Basic authentication', async () => {
    expect(await post('SELECT 1', { headers: { authorization: basicOf(user, password) } })).toMatchObject({ ok: true });
    expect(await post('SELECT 1', asOperator)).toMatchObject({ ok: true });
  });

  it("cannot close the listeners over HTTP, even if it is the operator's account", async () => {
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
