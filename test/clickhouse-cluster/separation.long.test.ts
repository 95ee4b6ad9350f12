import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from '../../infra/clickhouse/test/analysts-engine.ts';
import { ACCOUNTS, describeSeparation } from '../../infra/clickhouse/test/separation-suite.ts';
import { DEMO, fillTwoEnvironments, isFromOther, OTHER } from '../../infra/clickhouse/test/two-environments.ts';

const START_MS = 120_000;
const ATTACKS_MS = 600_000;
const CONCURRENT = 4;

let engine: AnalystsEngine;
beforeAll(async () => {
  engine = await openAnalystsEngine({ nodes: 2 });
  await fillTwoEnvironments(engine);
  for (const { account, granted } of ACCOUNTS) if (granted === DEMO) await engine.grant(account, DEMO);
}, START_MS);
afterAll(() => engine?.close(), START_MS);

describeSeparation(() => engine);

/** Views of rows, and views that the home computes from the rows of all shards. */
const SOURCES = {
  analyst_1: [
    'analysis_events',
    'analysis_tests',
    'person_days',
    'persons',
    'sessions',
    'event_catalogue',
    'events_per_day',
  ],
  analyst_raw_1: ['analysis_events', 'analysis_events_raw', 'events_exact', 'events_identified', 'persons_raw'],
} as const;
/** Fails for a row of the other environment. The message is reversed, because errors repeat the query. */
const PROBES = [
  "throwIf(environment_id = 'demo-stray', reverse('nar eborp eht')) = 0",
  "throwIf(environment_id LIKE '%stray', reverse('nar eborp eht')) = 0",
  "throwIf(startsWith(environment_id, 'demo-s'), reverse('nar eborp eht')) = 0",
];
/** Settings that change where and in which order conditions are evaluated. */
const SETTINGS = [
  '',
  'enable_analyzer = 0',
  'prefer_localhost_replica = 0',
  'prefer_localhost_replica = 0, enable_analyzer = 0',
  // An analyst may not turn off the new analyzer directly, but with an older compatibility.
  "compatibility = '22.8'",
  "prefer_localhost_replica = 0, compatibility = '22.8'",
  'optimize_move_to_prewhere = 0',
  'query_plan_enable_optimizations = 0',
  'allow_push_predicate_ast_for_distributed_subqueries = 1',
  'serialize_query_plan = 1',
  "enable_parallel_replicas = 1, max_parallel_replicas = 2, cluster_for_parallel_replicas = 'playline_1_everywhere', parallel_replicas_for_non_replicated_merge_tree = 1",
  'make_distributed_plan = 1',
  'distributed_push_down_limit = 0',
  "short_circuit_function_evaluation = 'disable'",
];
const toQueries = (view: string) =>
  SETTINGS.flatMap((settings) => {
    const tail = settings === '' ? '' : ` SETTINGS ${settings}`;
    return PROBES.flatMap((probe) => [
      `SELECT count() FROM ${view} WHERE ${probe}${tail}`,
      `SELECT sum(${probe.replace(' = 0', '')}) FROM ${view}${tail}`,
      `SELECT count() FROM (SELECT * FROM ${view} WHERE ${probe}) AS a JOIN ${view} AS b USING (environment_id)${tail}`,
      `SELECT count() FROM ${view} WHERE environment_id IN (SELECT environment_id FROM ${view} WHERE ${probe})${tail}`,
    ]);
  });

/** An error may contain the expression, with its constants. */
const isLeak = (text: string) => text.includes('the probe ran') && !text.includes('UNKNOWN_TABLE');

describe('an analyst of a cluster', () => {
  it.each(Object.entries(SOURCES))(
    'cannot make %s evaluate an expression for a row of another environment on any shard',
    { timeout: ATTACKS_MS },
    async (account, views) => {
      const pending = views.flatMap(toQueries);
      const [leaks, answers]: [string[], string[]] = [[], []];
      const run = async () => {
        for (let sql = pending.pop(); sql !== undefined; sql = pending.pop()) {
          const { ok, text } = await engine.query(account, sql);
          if (isLeak(text)) leaks.push(sql);
          if (ok) answers.push(sql);
        }
      };
      await Promise.all(Array.from({ length: CONCURRENT }, run));
      expect(leaks).toEqual([]);
      expect(answers.length).toBeGreaterThan(100);
      // The same expression fails for an account that may read the row.
      expect((await engine.query('analyst', `SELECT count() FROM analysis_events WHERE ${PROBES[0]}`)).text).toContain(
        'the probe ran',
      );
    },
  );

  it('cannot read the tables over all shards or the rows of a shard, on any node', async () => {
    for (const node of engine.nodes)
      for (const account of ['analyst_1', 'analyst_raw_1', 'portal'])
        for (const name of [
          'playline_all.events',
          'playline_all.rows_of_events',
          'playline_all.identity_overrides',
          'playline_rows.events',
          'playline_rows.identities',
          'playline.events',
          "cluster('playline_1', playline.events)",
          "clusterAllReplicas('playline_1', playline_rows.events)",
          "remote('127.0.0.1', playline.events)",
        ]) {
          const { ok, text } = await node.query(account, `SELECT * FROM ${name} LIMIT 1`);
          expect([account, name, ok, isFromOther(text)]).toEqual([account, name, false, false]);
        }
  });

  it('reads from another node only the rows of granted environments', async () => {
    for (const node of engine.nodes) {
      const sql = "SELECT DISTINCT environment_id FROM playline_rows.analysis_events WHERE environment_id != 'x'";
      for (const account of ['analyst_1', 'analyst_raw_1'])
        expect((await node.query(account, sql)).text).toMatch(new RegExp(`^(${DEMO}\n)?$`));
      expect((await node.query('analyst_2', sql)).text).toBe('');
    }
    const all = await engine.query('analyst', 'SELECT DISTINCT environment_id FROM analysis_events ORDER BY 1');
    expect(all.text).toBe(`${DEMO}\n${OTHER}\n`);
  });

  it('cannot change a setting that would return the rows of some shards, or partial results', async () => {
    for (const setting of [
      "distributed_product_mode = 'local'",
      'prefer_global_in_and_join = 0',
      'distributed_group_by_no_merge = 1',
      'skip_unavailable_shards = 1',
      'push_external_roles_in_interserver_queries = 0',
      'max_network_bandwidth = 1',
    ]) {
      const { ok, text } = await engine.query('analyst_1', `SELECT count() FROM analysis_events SETTINGS ${setting}`);
      expect([setting, ok, text]).toEqual([
        setting,
        false,
        expect.stringMatching(/SETTING_CONSTRAINT_VIOLATION|READONLY/),
      ]);
    }
  });

  it('is limited by the rows of the result, not by the rows that shards return to the home', async () => {
    const sql = `INSERT INTO playline.identities (environment_id, identity_key, first_seen_at, last_seen_at)
      SELECT 'many', sipHash128(number), now64(3), now64(3) FROM numbers(1200000)`;
    expect((await engine.nodes[1]!.query('operator', sql)).text).toBe('');
    await engine.grant('analyst_5', 'many');
    expect((await engine.query('analyst_5', 'SELECT count() FROM persons')).text).toBe('1200000\n');
    expect((await engine.query('analyst_5', 'SELECT person_id FROM persons FORMAT Null')).text).toMatch(
      /Limit for result exceeded|Quota for user/,
    );
  });
});
