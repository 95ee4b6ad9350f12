import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEPLOYMENT_RULES } from '@playline/alerts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { provideProgram } from './programs.ts';

const RULES = fileURLToPath(new URL('../../infra/prometheus/alerts.yml', import.meta.url));

/** A sample every 15 s: a minute in the first state, two in the second, then three in the first. */
const gauge = (healthy: number, faulty: number) => `${healthy}x3 ${faulty}x8 ${healthy}x12`;
/** A counter that grows during the two minutes. */
const counter = (perSample: number) => `0x3 ${perSample}+${perSample}x8 ${perSample * 9}x12`;
const always = (perSample: number) => `0+${perSample}x25`;

const request = (status: string) =>
  `playline_http_request_duration_seconds_count{service="gateway",route="/",method="POST",status="${status}"}`;
const messages = (verdict: string) => `playline_gateway_messages_${verdict}_total{environment="e"}`;
const ready = (check: string, service = 'event-writer') => `playline_ready{check="${check}",service="${service}"}`;
const UP = 'up{job="playline",instance="a"}';
const PORTAL_START = 'process_start_time_seconds{job="playline",service="portal"}';
const EVALUATED = 'playline_portal_alert_evaluations_total{outcome="completed"}';
const published = (le: string) => `playline_gateway_publish_duration_seconds_bucket{le="${le}"}`;

/** Series of which the rule fires in the second state, and only there. */
const SERIES: Record<string, Record<string, string>> = {
  ServiceDown: { 'up{job="playline",instance="a",service="s"}': gauge(1, 0) },
  ServiceNotReady: { [ready('consumer')]: gauge(1, 0) },
  ServiceDegraded: { 'playline_degraded{check="lanes"}': gauge(0, 1) },
  ServiceRestarts: { 'process_start_time_seconds{job="playline"}': '1x3 2x2 3x2 4x2 4x14' },
  ClockSkew: { playline_gateway_clock_ahead_seconds: gauge(1, -11) },
  IngestErrors: { [request('200')]: always(150), [request('503')]: counter(3) },
  RateLimited: { [request('200')]: always(150), [request('429')]: counter(30) },
  MessagesRejected: { [messages('accepted')]: always(150), [messages('rejected')]: counter(60) },
  SlowPublish: {
    [published('1')]: always(100),
    [published('2.5')]: '0+100x3 402+102x8 1318+100x12',
    [published('+Inf')]: '0+100x3 402+102x8 1318+100x12',
  },
  RateLimitsNotShared: { playline_gateway_rate_limit_shared: gauge(1, 0) },
  KafkaUnavailable: { [ready('broker', 'gateway')]: gauge(1, 0) },
  ClickHouseUnavailable: { [ready('store')]: gauge(1, 0) },
  RedisRejectsWrites: { playline_redis_takes_writes: gauge(1, 0) },
  RedisEmptied: { [ready('links', 'identity-linker')]: gauge(1, 0), playline_redis_takes_writes: gauge(1, 1) },
  DiskFull: {
    'node_filesystem_avail_bytes{mountpoint="/data"}': gauge(50, 9),
    'node_filesystem_size_bytes{mountpoint="/data"}': gauge(100, 100),
  },
  CertificateExpires: { probe_ssl_earliest_cert_expiry: gauge(15 * 86_400, 13 * 86_400) },
  ConsumerBehind: {
    'playline_stream_lag_records{service="s",topic="t",partition="0"}': gauge(5_000, 7_000),
    'playline_stream_records_total{service="s",topic="t",outcome="written",reason=""}': '1000000+1500x25',
  },
  WriteStuck: { 'playline_stream_oldest_write_seconds{topic="t"}': gauge(5, 31) },
  WritesRepeated: { 'playline_stream_retries_total{topic="t",step="write"}': counter(3) },
  PartitionStopped: { 'playline_stream_stopped_partitions{topic="t"}': gauge(0, 1) },
  DeadLetters: { 'playline_stream_open_dead_letters{topic="t"}': gauge(0, 1) },
  RetentionEnds: { 'playline_stream_retention_left_seconds{topic="t"}': gauge(7 * 3600, 5 * 3600) },
  ErasureLate: { playline_eraser_oldest_unverified_seconds: gauge(3599, 3601) },
  EraserFails: { [UP]: gauge(1, 1), 'playline_eraser_faults_total{during="verify"}': '_x4 1+1x8 9x12' },
  ErasedDataFound: { [UP]: gauge(1, 1), 'playline_eraser_survivors_total{table="events"}': '_x8 5x16' },
  IndexerBehind: { 'playline_chain_indexer_behind_blocks{chain="c"}': gauge(90, 101) },
  BlockUnreadable: { 'playline_chain_indexer_too_large{chain="c"}': gauge(0, 1) },
  IndexerSilent: { 'playline_chain_indexer_silent_seconds{chain="c"}': gauge(9, 31) },
  ChainNodeLags: { 'playline_chain_indexer_node_lags{chain="c",node="n"}': gauge(0, 1) },
  ChainStalled: { 'playline_chain_indexer_head_unchanged_seconds{chain="c"}': gauge(0, 60) },
  ChainHalted: { 'playline_chain_indexer_halted{chain="c"}': gauge(0, 1) },
  FeedBehind: {
    'playline_activity_writer_watermark_timestamp_seconds{partition="0"}': '0+15x4 60x7 180+15x14',
  },
  MintsBlocked: { 'playline_minter_oldest_pending_seconds{chain="c",signer="s"}': gauge(30, 601) },
  SignerBalanceLow: { 'playline_minter_funds_ether{chain="c",signer="s"}': gauge(1, 0.04) },
  ProjectAlertsStopped: { [PORTAL_START]: gauge(1, 1), [EVALUATED]: '0+1x3 3x8 4+1x12' },
};

const folder = mkdtempSync(join(tmpdir(), 'alert-rules-'));
let promtool: string;
beforeAll(async () => {
  promtool = await provideProgram('promtool');
});
afterAll(() => rmSync(folder, { recursive: true }));

const run = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8' });
  return { status, output: stdout + stderr };
};

it('promtool accepts the rules for Prometheus', () => {
  expect(run('check', 'rules', RULES)).toMatchObject({ status: 0 });
});

it('every rule has a test', () => {
  expect(Object.keys(SERIES)).toEqual(DEPLOYMENT_RULES.map(({ name }) => name));
});

interface RuleRun {
  readonly series: Readonly<Record<string, string>>;
  /** Number of alerts by time. */
  readonly expected: Readonly<Record<string, number>>;
}

/** Runs a rule on series with a sample every 15 s. */
function runRule(alertname: string, { series, expected }: RuleRun) {
  const test = {
    interval: '15s',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: Object.entries(expected).map(([eval_time, count]) => ({
      expr: `count(ALERTS{alertname="${alertname}",alertstate="firing"})`,
      eval_time,
      exp_samples: count === 0 ? [] : [{ labels: '{}', value: count }],
    })),
  };
  const file = join(folder, 'test.json');
  // YAML is a superset of JSON.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '15s', tests: [test] }));
  return run('test', 'rules', file);
}

/** Conditions that the faults above do not contain. */
const CASES: Record<string, [rule: string, RuleRun]> = {
  'fires while no process of a service has an address': [
    'ServiceDown',
    { series: { 'up{job="playline",service="s"}': '1x4 stale' }, expected: { '15m': 1 } },
  ],
  'ignores the address of a stopped process if others remain': [
    'ServiceDown',
    {
      series: {
        'up{job="playline",service="s",instance="a"}': '1x4 stale',
        'up{job="playline",service="s",instance="b"}': '1x99',
      },
      expected: { '15m': 0 },
    },
  ],
  'ignores values from before the start of Prometheus': [
    'ErasedDataFound',
    { series: { [UP]: '1x9', 'playline_eraser_survivors_total{table="events"}': '5x9' }, expected: { '30s': 0 } },
  ],
  'fires for a portal that has never evaluated the alerts of projects, but not when it has just started': [
    'ProjectAlertsStopped',
    { series: { [PORTAL_START]: '1x3 2x20' }, expected: { '165s': 0, '180s': 1 } },
  ],
  'ignores that only some portals evaluate the alerts of projects, every half minute': [
    'ProjectAlertsStopped',
    {
      series: { [PORTAL_START]: '1x40', [EVALUATED]: '1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9' },
      expected: { '120s': 0, '135s': 0, '150s': 0 },
    },
  ],
  'fires for a consumer that has stored nothing': [
    'ConsumerBehind',
    { series: { 'playline_stream_lag_records{service="s",topic="t"}': '100x20' }, expected: { '2m': 1 } },
  ],
  'ignores idle partitions': [
    'FeedBehind',
    {
      series: { 'playline_activity_writer_watermark_timestamp_seconds{partition="0"}': '0x4 75x4 150x4 225x4' },
      expected: { '75s': 0, '150s': 0, '225s': 0 },
    },
  ],
};

it.each(Object.entries(CASES))('an alert %s', (_, [alertname, ruleRun]) => {
  expect(runRule(alertname, ruleRun)).toMatchObject({ status: 0 });
});

it.each(Object.entries(SERIES))('%s fires during a fault, and neither before nor after it', (alertname, series) => {
  const expected = { '45s': 0, '165s': 1, '330s': 0 };
  expect(runRule(alertname, { series, expected })).toMatchObject({ status: 0 });
});
