import { randomUUID } from 'node:crypto';
import { toAnalystQuery } from '@playline/events';
import { expect, it, onTestFinished } from 'vitest';
import { openAnalystsEngine } from '../infra/clickhouse/test/analysts-engine.ts';

const NOW_MS = Date.parse('2026-11-20T10:00:00Z');

it('an analyst account can run the query copied from Explore and reads only rows of its environments', async () => {
  const engine = await openAnalystsEngine();
  onTestFinished(() => engine.close());
  const ids = { own: randomUUID(), ownTest: randomUUID(), other: randomUUID() };
  const insert = (environment: string, id: string, test: boolean) =>
    engine.runAsOperator(
      `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, properties, test)
       VALUES ('${environment}', 'track', 'jump', '2026-11-20 09:00:00', '2026-11-20 09:00:00', '${id}', repeat('k', 16), '{"level":7}', ${test})`,
    );
  await engine.runAsOperator(
    "INSERT INTO environment_settings (environment_id, time_zone, safe_properties, version) VALUES ('own', 'UTC', ['level'], 1)",
  );
  await insert('own', ids.own, false);
  await insert('own', ids.ownTest, true);
  await insert('other', ids.other, false);
  const range = { sinceMs: NOW_MS - 86_400_000, untilMs: NOW_MS };
  const property = { name: 'level', operator: 'gt', value: '6' } as const;
  const identityIds = [Buffer.from('k'.repeat(16)).toString('hex')];
  for (const [account, idAccess, filters] of [
    ['analyst_1', 'masked ids', [{}, { property }]],
    ['analyst_raw_1', 'raw ids', [{}, { property }, { identityIds }]],
  ] as const) {
    await engine.grant(account, 'own');
    const read = async (environmentId: string, test: boolean, filter: object) => {
      const sql = toAnalystQuery({ environmentId, idAccess, test, ...range, ...filter });
      const { ok, text } = await engine.query(account, `${sql} FORMAT JSONCompactEachRow`);
      expect([account, sql, ok ? 'ok' : text]).toEqual([account, sql, 'ok']);
      return Object.entries(ids)
        .filter(([, id]) => text.includes(id))
        .map(([name]) => name);
    };
    for (const filter of filters) {
      expect([filter, await read('own', false, filter)]).toEqual([filter, ['own']]);
      expect([filter, await read('own', true, filter)]).toEqual([filter, ['ownTest']]);
      expect([filter, await read('other', false, filter)]).toEqual([filter, []]);
    }
  }
});
