import { describe, expect, it } from 'vitest';
import type { AnalystsEngine } from './analysts-engine.ts';
import { toCall, toArguments as toPortalArguments } from './portal-rows.ts';
import { DEMO, isFromOther, OTHER, RAW, toArguments } from './two-environments.ts';

/** Views for accounts without raw ids. New views must be added here or to RAW_VIEWS. */
const VIEWS = [
  ...[
    'analysis_consents',
    'analysis_consents_current',
    'analysis_environments',
    'analysis_events',
    'analysis_rejections',
  ],
  ...[
    'analysis_tests',
    'event_catalogue',
    'events_per_day',
    'person_days',
    'person_days_in',
    'persons',
    'properties_between',
    'property_catalogue',
  ],
  ...['sessions', 'sessions_between'],
];
const RAW_VIEWS = [
  'analysis_events_raw',
  'events_exact',
  'events_identified',
  'person_timeline',
  'persons_raw',
  'user_timeline',
];
export const ACCOUNTS = [
  { account: 'analyst_1', granted: DEMO, views: VIEWS },
  { account: 'analyst_2', granted: null, views: VIEWS },
  { account: 'analyst_raw_1', granted: DEMO, views: [...VIEWS, ...RAW_VIEWS] },
  { account: 'analyst', granted: '*', views: [...VIEWS, ...RAW_VIEWS] },
] as const;

const portalViews = toPortalArguments('demo');

/** Tests which rows the accounts of analysts can read from the views of one server, or of a cluster. */
export function describeSeparation(open: () => AnalystsEngine): void {
  const names = async (sql: string) => (await open().runAsOperator(sql)).split('\n').filter((name) => name !== '');
  const read = (account: string, view: string, environment: typeof DEMO | typeof OTHER = DEMO) => {
    const portalArguments = portalViews[view];
    const source =
      portalArguments === undefined ? view + toArguments(view, environment) : toCall(view, portalArguments);
    return open().query(account, `SELECT * FROM ${source} FORMAT JSONEachRow`);
  };

  describe.each(ACCOUNTS)('the account $account', ({ account, granted, views }) => {
    it('can read its views and no other view, table or dictionary', async () => {
      const all = await names("SELECT name FROM system.tables WHERE database = 'playline' ORDER BY name");
      expect(all).toEqual(expect.arrayContaining([...views, 'identity_persons', 'events', 'settled_persons']));
      const readable: string[] = [];
      for (const name of all) {
        const { ok, text } = await read(account, name);
        if (ok) readable.push(name);
        else expect([name, text]).toEqual([name, expect.stringContaining('Not enough privileges')]);
      }
      expect(readable).toEqual([...views].sort());
      expect((await open().query(account, 'SHOW TABLES')).text.trim().split('\n').sort()).toEqual([...views].sort());
    });

    it.each(views)('can read only rows of granted environments from %s', async (view) => {
      const own = (await read(account, view)).text;
      const other = (await read(account, view, OTHER)).text;
      if (granted === null) expect([own, other]).toEqual(['', '']);
      else expect(own).not.toBe('');
      if (granted === '*') expect(isFromOther(other)).toBe(true);
      else expect([isFromOther(own), isFromOther(other)]).toEqual([false, false]);
    });
  });

  describe('raw ids', () => {
    it.each(VIEWS)('do not appear in any field of %s', async (view) => {
      const { ok, text } = await read('analyst_1', view);
      expect([ok, text.toLowerCase().includes(RAW)]).toEqual([true, false]);
    });

    it('appear in all views that require the right to read them', async () => {
      for (const view of RAW_VIEWS) expect((await read('analyst_raw_1', view)).text).toContain(RAW);
    });
  });

  describe('a grant to an account', () => {
    it('takes effect with the next query, even if it is identical to the previous query', async () => {
      const sql = 'SELECT count() FROM analysis_events';
      const countEvents = async () => (await open().query('analyst_3', sql)).text;
      expect(await countEvents()).toBe('0\n');
      await open().grant('analyst_3', DEMO);
      expect(await countEvents()).toBe('1\n');
      await open().grant('analyst_3', OTHER);
      expect(await countEvents()).toBe('2\n');
      await open().grant('analyst_3', DEMO, false);
      expect((await open().query('analyst_3', 'SELECT DISTINCT environment_id FROM analysis_events')).text).toBe(
        `${OTHER}\n`,
      );
      await open().grant('analyst_3', OTHER, false);
      expect(await countEvents()).toBe('0\n');
      await open().grant('analyst_3', '*');
      expect(await countEvents()).toBe('2\n');
      await open().grant('analyst_3', '*', false);
      expect(await countEvents()).toBe('0\n');
    });
  });
}
