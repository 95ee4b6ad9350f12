import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { type OwnDatabase, openOwnDatabase } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

interface Dashboard {
  readonly uid: string;
  readonly templating: { readonly list: readonly { name: string; query: string; type: string }[] };
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly type: string;
    readonly description: string;
    readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
    readonly targets: readonly { readonly rawSql: string }[];
  }[];
}

const FOLDER = new URL('./', import.meta.url);
/** The dashboards for analysts. test/alerts tests those for operators, which read Prometheus. */
const dashboards = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json') && !name.startsWith('operations-'))
  .map((file) => ({ file, ...(JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Dashboard) }));

const ENVIRONMENT = "dash's-live";
const DAY_MS = 86_400_000;
const NOW_MS = Date.now();
const seconds = (ms: number) => `toDateTime(${Math.floor(ms / 1000)})`;
const [FROM, TO] = [seconds(NOW_MS - 30 * DAY_MS), seconds(NOW_MS + DAY_MS)];
const day = (time: string) => `toDate(${time})`;

/** Replaces variables as Grafana does, and macros as the ClickHouse plugin does. */
function toSql(rawSql: string, variables: Dashboard['templating']['list']): string {
  const values: Record<string, string> = { environment: ENVIRONMENT };
  for (const { name, type, query } of variables) if (type === 'textbox') values[name] = query;
  return rawSql
    .replaceAll(/\$\{(\w+):sqlstring\}/g, (_, name: string) => `'${values[name]!.replaceAll("'", "''")}'`)
    .replaceAll(/\$__timeFilter\((\w+)\)/g, `$1 >= ${FROM} AND $1 <= ${TO}`)
    .replaceAll(/\$__dateFilter\((\w+)\)/g, `$1 >= ${day(FROM)} AND $1 <= ${day(TO)}`)
    .replaceAll('$__fromTime', FROM)
    .replaceAll('$__toTime', TO)
    .replaceAll('$__interval_s', '3600');
}

let database: OwnDatabase;
const run = (sql: string) => database.query(sql);
const insert = (table: string, rows: readonly object[]) =>
  run(`INSERT INTO ${table} FORMAT JSONEachRow ${rows.map((row) => JSON.stringify(row)).join(' ')}`);

beforeAll(async () => {
  database = await openOwnDatabase();
  const time = (ms: number) => new Date(ms).toISOString().replace(/[TZ]/g, ' ').trim();
  const scope = { environment_id: ENVIRONMENT };
  await insert('environment_settings', [
    { ...scope, time_zone: 'Europe/Berlin', safe_properties: ['price', 'currency'], version: 1 },
  ]);
  const toEvent = (index: number, laterMs: number) => ({
    ...scope,
    type: 'track',
    event_name: 'purchase',
    event_time: time(NOW_MS - index * DAY_MS - laterMs),
    received_at: time(NOW_MS - index * DAY_MS - laterMs),
    message_id: randomUUID(),
    identity_key: Buffer.alloc(16, 1 + (index % 5)).toString(),
    session_id: `s${index}`,
    page_path: '/shop',
    properties: '{"price":1.99,"currency":"EUR"}',
  });
  await insert(
    'events',
    Array.from({ length: 40 }, (_, index) => toEvent(Math.floor(index / 2), (index % 2) * 30_000)),
  );
  await insert('message_rejections', [
    { ...scope, code: 'FIELD_MISSING', field: 'x', received_at: time(NOW_MS - 1000) },
  ]);
});
afterAll(() => database.close());

describe.each(dashboards)('the dashboard $file', ({ panels, templating }) => {
  it.each(panels)(
    'has a query for the panel "$title" that returns rows of the environment',
    async ({ type, description, targets }) => {
      expect(description).not.toBe('');
      for (const { rawSql } of targets) {
        const sql = toSql(rawSql, templating.list);
        expect(sql).not.toMatch(/\$/);
        const { meta, data } = JSON.parse(await run(`${sql} FORMAT JSONCompact`)) as {
          meta: { name: string }[];
          data: unknown[][];
        };
        expect(data.flat().some((value) => value !== null && value !== 0 && value !== '0')).toBe(true);
        if (type === 'timeseries') expect(meta[0]!.name).toBe('time');
      }
    },
  );

  it('reads only views that accounts without raw ids may read, and only one environment', () => {
    const users = readFileSync(new URL('../clickhouse/users.xml', FOLDER), 'utf8');
    const [, grants = ''] = /<reads_views>([\s\S]*?)<\/reads_views>/.exec(users) ?? [];
    for (const { rawSql } of panels.flatMap(({ targets }) => targets)) {
      const sources = [...rawSql.matchAll(/\b(?:FROM|JOIN)\s+(?:\(SELECT|\(\s|(\w+))/g)].flatMap(
        ([, name]) => name ?? [],
      );
      expect(sources.length).toBeGreaterThan(0);
      for (const name of sources) expect([name, grants.includes(`playline.${name}<`)]).toEqual([name, true]);
      expect(rawSql).toContain('{environment:sqlstring}');
    }
  });

  it('has panels with different ids that do not overlap', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}:${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  });
});
