import { createHash } from 'node:crypto';
import { readRecipes } from '@playline/events';
import { createEventCounts, createEventDays } from '@playline/events/clickhouse';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from '../../infra/clickhouse/test/analysts-engine.ts';
import { toCall, toArguments as toPortalArguments } from '../../infra/clickhouse/test/portal-rows.ts';
import { ACCOUNTS } from '../../infra/clickhouse/test/separation-suite.ts';
import { createEventReader } from '../simulate/game/simulation.ts';
import { createRun, toMessageId } from '../simulate/run.ts';

const START_MS = 240_000;
const ANSWERS_MS = 900_000;
const RUNS = 3;
const FIRST_DAY_MS = Date.parse('2026-06-08T00:00:00Z');
const DAY_MS = 86_400_000;
const person = 'member 0';

/** The same rows in one node and in a cluster of two. */
let one: AnalystsEngine;
let two: AnalystsEngine;
beforeAll(async () => {
  [one, two] = await Promise.all([openAnalystsEngine(), openAnalystsEngine({ nodes: 2 })]);
}, START_MS);
afterAll(() => Promise.all([one?.close(), two?.close()]), START_MS);

const keyOf = (text: string) => createHash('md5').update(text).digest('hex');
const toTime = (ms: number) => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');

const message = fc.record({
  owner: fc.option(fc.nat(30), { freq: 8 }),
  name: fc.constantFrom('session_started', 'level_completed', 'purchase', 'player_died', ''),
  type: fc.constantFrom('track', 'track', 'page', 'identify'),
  dayOffset: fc.nat(12),
  ms: fc.nat(DAY_MS - 1),
  id: fc.nat(250),
  session: fc.nat(40),
  test: fc.boolean(),
  delayMs: fc.constantFrom(0, 5_000, 3_600_000),
  copies: fc.constantFrom(1, 1, 1, 2, 3),
  price: fc.nat(500),
});
const world = fc.record({
  messages: fc.array(message, { minLength: 200, maxLength: 300 }),
  /** The identities of a person: the owner with this number belongs to the person of the other owner. */
  links: fc.array(fc.tuple(fc.nat(30), fc.nat(6)), { minLength: 8, maxLength: 12 }),
  zone: fc.constantFrom('UTC', 'Asia/Tokyo', 'America/New_York'),
});
type World = typeof world extends fc.Arbitrary<infer T> ? T : never;

function toEvents(environment: string, { messages }: World): object[] {
  let offset = 0;
  return messages.flatMap(({ copies, ...each }) => {
    const eventMs = FIRST_DAY_MS + each.dayOffset * DAY_MS + each.ms;
    const key = each.owner === null ? '00'.repeat(16) : keyOf(`${environment} member ${each.owner}`);
    return Array.from({ length: copies }, (_, copy) => ({
      environment_id: environment,
      type: each.type,
      event_name: each.name,
      event_time: toTime(eventMs),
      received_at: toTime(eventMs + each.delayMs + copy * 1_000),
      message_id: keyOf(`${environment} ${each.id}`).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
      identity_key: key,
      user_key: key,
      user_id: each.owner === null ? '' : `${environment} member ${each.owner}`,
      session_id: `session ${each.session}`,
      surface: each.session % 2 === 0 ? 'web' : 'unity',
      page_path: each.type === 'page' ? `/shop/${each.session}` : '',
      page_url:
        each.type === 'page' ? `https://game.example/shop/${each.session}?utm_campaign=c${each.session % 3}` : '',
      library: 'js',
      library_version: `1.${each.session % 3}.0`,
      consent_level: 'full',
      test: each.test && each.session % 7 === 0,
      properties: JSON.stringify({ price: each.price, currency: 'EUR', level: each.session }),
      traits: each.type === 'identify' ? JSON.stringify({ level: each.price }) : '',
      kafka_partition: 0,
      kafka_offset: offset++,
    }));
  });
}

const toOverrides = (environment: string, { links }: World) =>
  links.map(([member, root], index) => ({
    environment_id: environment,
    identity_key: keyOf(`${environment} member ${member}`),
    person_key: keyOf(`${environment} member ${root}`),
    kind: 'anonymous',
    linked_at: toTime(FIRST_DAY_MS),
    version: index,
  }));

/** ClickHouse accepts statements of 256 KiB. */
const STATEMENT_ROWS = 100;

/** Keys are sent as hexadecimal digits, because they are not valid UTF-8. */
async function insert(engine: AnalystsEngine, table: string, rows: readonly object[]): Promise<void> {
  const names = Object.keys(rows[0]!);
  const values = names.map((name) => (name.endsWith('_key') ? `unhex(${name})` : name));
  const structure = names.map((name) => {
    if (name === 'test') return 'test Bool';
    return /_offset|_partition|^version$/.test(name) ? `${name} UInt64` : `${name} String`;
  });
  for (let start = 0; start < rows.length; start += STATEMENT_ROWS) {
    const part = rows.slice(start, start + STATEMENT_ROWS).map((row) => JSON.stringify(row));
    const lines = part.join('\n').replaceAll(/[\\']/g, '\\$&');
    const source = `format(JSONEachRow, '${structure.join(', ')}', '${lines}')`;
    await engine.runAsOperator(`INSERT INTO ${table} (${names.join(', ')}) SELECT ${values.join(', ')} FROM ${source}`);
  }
}

async function fill(engine: AnalystsEngine, environment: string, generated: World): Promise<void> {
  await insert(engine, 'events', toEvents(environment, generated));
  await insert(engine, 'identity_overrides', toOverrides(environment, generated));
  const declared = { time_zone: generated.zone, safe_properties: "['price', 'currency']" };
  const settings = { environment_id: environment, ...declared, version: 1 };
  await insert(engine, 'environment_settings', [settings]);
  const members = [0, 1, 2, 3].map((member) => keyOf(`${environment} member ${member}`));
  await insert(
    engine,
    'consent_log',
    members.map((identity_key, kafka_offset) => ({
      environment_id: environment,
      identity_key,
      status: 'full',
      received_at: toTime(FIRST_DAY_MS),
      kafka_partition: 0,
      kafka_offset,
    })),
  );
}

const VIEW_PARAMETERS: Readonly<Record<string, string>> = {
  sessions_between: "(environment = 'ENV', since = '2026-06-08', until = '2026-07-13')",
  properties_between:
    "(environment = 'ENV', since = '2026-06-08 00:00:00', until = '2026-07-13 00:00:00', text = 'currency', number = 'price')",
  person_days_in: "(zone = 'Asia/Tokyo')",
  person_timeline: "(environment = 'ENV', person = 'PERSON')",
  user_timeline: "(environment = 'ENV', user = 'USER')",
};
const VIEWS = ACCOUNTS.find(({ account }) => account === 'analyst')!.views;
/** Each shard has a row per day, name and type. */
const EVENTS_PER_DAY =
  "SELECT event_day, type, event_name, sum(events), min(first_seen_at), max(last_seen_at) FROM events_per_day WHERE environment_id = 'ENV' GROUP BY ALL ORDER BY ALL";
/** The catalogues show the last 30 days by the clock. */
const VIEW_QUERIES = VIEWS.filter((view) => !view.endsWith('_catalogue')).map((view) => {
  if (view === 'events_per_day') return EVENTS_PER_DAY;
  const call = view + (VIEW_PARAMETERS[view] ?? '');
  return view.endsWith('_timeline')
    ? `SELECT * EXCEPT (kafka_partition, kafka_offset) FROM ${call} ORDER BY ALL`
    : `SELECT * FROM ${call} WHERE environment_id = 'ENV' ORDER BY ALL`;
});
/** Queries over several views. */
const OTHER_QUERIES = [
  "SELECT count() FROM analysis_events a JOIN analysis_events b USING (person_id) WHERE a.environment_id = 'ENV' AND b.environment_id = 'ENV' AND a.event_name = 'purchase'",
  "SELECT count() FROM analysis_events WHERE environment_id = 'ENV' AND person_id IN (SELECT person_id FROM persons WHERE environment_id = 'ENV' AND identities > 1)",
  "SELECT local_day, uniqExact(person_id) FROM analysis_events WHERE environment_id = 'ENV' GROUP BY local_day ORDER BY local_day",
  "SELECT person_id, event_time, row_number() OVER (PARTITION BY person_id ORDER BY event_time, message_id, event_name, type) AS n FROM analysis_events WHERE environment_id = 'ENV' ORDER BY ALL",
  "SELECT quantileExact(0.5)(event_millisecond), quantileExact(0.9)(event_millisecond) FROM analysis_events WHERE environment_id = 'ENV'",
  "SELECT * FROM (SELECT person_id, event_name, event_time FROM analysis_events WHERE environment_id = 'ENV' ORDER BY ALL LIMIT 2 BY person_id) ORDER BY ALL",
  "SELECT s.day, count() FROM sessions s LEFT JOIN persons p ON s.person_key = p.person_key AND p.environment_id = 'ENV' WHERE s.environment_id = 'ENV' AND p.first_surface = 'web' GROUP BY s.day ORDER BY s.day",
  "WITH buyers AS (SELECT DISTINCT person_id FROM analysis_events WHERE environment_id = 'ENV' AND event_name = 'purchase') SELECT count() FROM buyers WHERE person_id NOT IN (SELECT person_id FROM analysis_events WHERE environment_id = 'ENV' AND event_name = 'player_died')",
];
/** Recipe 8 reads columns that an operator adds. */
const RECIPES = readRecipes().filter(({ file }) => !file.startsWith('08-'));

function paramsOf(commands: readonly string[], environment: string): string {
  const params = [...commands[0]!.matchAll(/param_(\w+)=([^&"]*)/g)].map(([, name = '', value = '']) => {
    if (name === 'environment') return [name, environment];
    return [name, name === 'person' ? keyOf(`${environment} ${person}`) : value];
  });
  return params.map(([name, value]) => `&param_${name}=${encodeURIComponent(value!)}`).join('');
}

async function expectEqual(account: string, sql: string, search = '') {
  const read = (engine: AnalystsEngine) =>
    engine.query(account, sql, { search: `&default_format=JSONEachRow${search}` });
  const [expected, found] = await Promise.all([read(one), read(two)]);
  expect([sql, expected.ok ? 'ok' : expected.text]).toEqual([sql, 'ok']);
  const toLines = ({ text }: { text: string }) =>
    sql.includes('ORDER BY') ? text.split('\n') : text.split('\n').sort();
  expect([sql, toLines(found)]).toEqual([sql, toLines(expected)]);
  return expected.text;
}

describe('two shards return the answers of one node', () => {
  it('to queries of every view and recipe, for generated messages and links', { timeout: ANSWERS_MS }, async () => {
    let run = 0;
    let rows = 0;
    await fc.assert(
      fc.asyncProperty(world, async (generated) => {
        const environment = `env-${run++}`;
        await Promise.all([one, two].map((engine) => fill(engine, environment, generated)));
        for (const text of [...VIEW_QUERIES, ...OTHER_QUERIES]) {
          const sql = text
            .replaceAll('PERSON', keyOf(`${environment} ${person}`))
            .replaceAll('USER', `${environment} ${person}`)
            .replaceAll('ENV', environment);
          rows += (await expectEqual('analyst', sql)).split('\n').length;
        }
        for (const { query, commands } of RECIPES)
          await expectEqual('analyst', query.replace(/FORMAT \w+$/, ''), paramsOf(commands, environment));
        for (const [view, args] of Object.entries(toPortalArguments('demo'))) {
          const own = Object.entries({
            ...args,
            identities: `['${keyOf(`${environment} member 0`)}', '${keyOf(`${environment} member 1`)}']`,
          });
          const called = Object.fromEntries(own.filter(([name]) => name in args));
          const call = toCall(view, {
            ...called,
            ...('environment' in args && { environment: `'${environment}'` }),
            ...('since' in args && view.startsWith('portal_m') && { since: String(FIRST_DAY_MS) }),
          });
          await expectEqual('portal', `SELECT * FROM ${call} ORDER BY ALL`);
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
    expect(rows).toBeGreaterThan(RUNS * 500);
    for (const engine of [one, two]) {
      await createEventCounts(engine.accountOf('writer')).update();
      let nowMs = 0;
      const days = createEventDays(engine.accountOf('writer'), { nowMs: () => nowMs, settleS: 0 });
      for (; nowMs < 300_000; nowMs += 100_000) await days.update();
      expect(await engine.runAsOperator('SELECT count() > 0 FROM playline.event_days')).toBe('1\n');
    }
    await expectEqual('analyst', EVENTS_PER_DAY.replace('ENV', 'env-0'));
    const [sinceS, untilS] = [FIRST_DAY_MS / 1_000, FIRST_DAY_MS / 1_000 + 20 * 86_400];
    for (const step of [60, 3_600, 14_400]) {
      const range = `step = ${step}, before = ${sinceS - 86_400}, since = ${sinceS}, until = ${untilS}`;
      for (const view of ['portal_overview_counts', 'portal_overview_state']) {
        const span = view === 'portal_overview_state' ? ', span = 3600' : '';
        const sql = `SELECT * FROM ${view}(environment = 'env-0', ${range}${span}) WHERE part != 'delay' ORDER BY ALL`;
        expect((await expectEqual('portal', sql)).split('\n').length).toBeGreaterThan(1);
      }
    }
    const shares = await Promise.all(
      two.nodes.map(async (node) => (await node.query('operator', 'SELECT count() FROM playline.events')).text),
    );
    expect(shares.every((count) => Number(count) > 100)).toBe(true);
  });

  it('to simulate, which counts the rows of a run', async () => {
    const run = createRun(1, Date.now());
    const time = toTime(FIRST_DAY_MS);
    const rows = Array.from({ length: 100 }, (_, sequence) => ({
      environment_id: 'simulated',
      type: 'track',
      event_time: time,
      received_at: time,
      message_id: toMessageId(run, sequence),
      identity_key: keyOf(`player ${sequence}`),
      kafka_offset: sequence,
    }));
    for (const engine of [one, two]) {
      await insert(engine, 'events', rows);
      const reader = createEventReader(engine.accountOf('operator'), 'simulated', run);
      expect(await reader.counts()).toEqual({ raw: 100, distinct: 100 });
    }
  });
});
