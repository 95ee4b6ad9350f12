import type { Accounts } from './accounts.ts';

/** Two environments of two projects, each with one row per table. One environment id is a prefix of the other. */
export const DEMO = 'demo';
export const OTHER = 'demo-2';
export type Environment = typeof DEMO | typeof OTHER;
export const PROJECT_OF = { [DEMO]: 'game', [OTHER]: 'game-2' } as const;

const KEY = { [DEMO]: '6f'.repeat(16), [OTHER]: '73'.repeat(16) } as const;
const MESSAGE = {
  [DEMO]: '11111111-1111-4111-8111-111111111111',
  [OTHER]: '22222222-2222-4222-8222-222222222222',
} as const;
const ERASURE = {
  [DEMO]: '55555555-5555-4555-8555-555555555555',
  [OTHER]: '66666666-6666-4666-8666-666666666666',
} as const;
const NOW_MS = Date.parse('2026-11-01T10:00:00Z');
const CONTRACT = { [DEMO]: 'c'.repeat(20), [OTHER]: 's'.repeat(20) } as const;
const addressOf = (environment: Environment) => `0x${Buffer.from(CONTRACT[environment]).toString('hex')}`;
const TIME = '2026-11-01 10:00:00.000';
const DAY_MS = 86_400_000;

export const isFromOther = (text: string) =>
  /stray-|_stray|of-stray|stray_|STRAY_|(73){16}|game-2|demo-2|22222222-2222|66666666-6666/.test(text);

const traceOf = (environment: Environment) => (environment === DEMO ? 'trace-of-own' : 'trace-of-stray');
const toSeconds = (ms: number) => String(ms / 1000);
const quoted = (text: string) => `'${text}'`;

/** @returns the arguments of each portal view for an environment. A new portal view must be added here. */
export function toArguments(environment: Environment): Record<string, Record<string, string>> {
  const scope = { environment: quoted(environment) };
  const range = { since: String(NOW_MS - DAY_MS), until: String(NOW_MS + DAY_MS) };
  const identities = { identities: `[${quoted(KEY[environment])}]` };
  const errorFilter = { code: "''", field: "''" };
  const since = toSeconds(NOW_MS - DAY_MS);
  const before = toSeconds(NOW_MS - 2 * DAY_MS);
  const overview = { ...scope, step: '60', before, since, until: toSeconds(NOW_MS + DAY_MS) };
  return {
    portal_messages: { ...scope, ...range, before: "''" },
    portal_message: { ...scope, message: quoted(MESSAGE[environment]) },
    portal_rejections: { ...scope, ...range, step: '3600', ...errorFilter },
    portal_rejections_of_trace: { ...scope, trace: quoted(traceOf(environment)) },
    portal_profile: { ...scope, ...identities },
    portal_timeline: { ...scope, ...identities, show: "''", until: '0', before: "''", days: '0', entries: '50' },
    portal_raw_ids: { ...scope, ...identities },
    portal_erasures: scope,
    portal_activities: {
      contracts: `['main ${addressOf(environment)}']`,
      type: "''",
      token: "''",
      before: "''",
      since: `${range.since}000`,
      until: `${range.until}000`,
      indexed_since: range.since,
      indexed_until: range.until,
    },
    portal_activity_times: {
      contract: quoted(`main ${addressOf(environment)}`),
      type: "''",
      newer: '0',
      since: `${range.since}000`,
      until: `${range.until}000`,
    },
    portal_tokens: { contracts: `['main ${addressOf(environment)}']` },
    portal_mints: { ...scope, since: range.since, status: "''" },
    portal_mint_signers: { ...scope, since: range.since },
    portal_overview_counts: overview,
    portal_overview_state: { ...overview, span: '3600' },
    portal_open_erasures: { environments: `[${quoted(environment)}]` },
    portal_alert_counts: { environments: `[${quoted(environment)}]`, now: toSeconds(NOW_MS + 3_600_000) },
    portal_fences: { ...scope, after: "''", since: '0' },
    portal_erasure_receipt: { ...scope, erasure: quoted(ERASURE[environment]) },
    portal_audit: { project: quoted(PROJECT_OF[environment]), ...range, actor: "''", action: "''" },
  };
}

export const toCall = (view: string, args: Record<string, string>) =>
  `${view}(${Object.entries(args)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ')})`;

function toChainRows(environment: Environment, key: string): Record<string, Record<string, unknown>> {
  const name = environment === DEMO ? 'own' : 'stray';
  const contract = CONTRACT[environment];
  return {
    mint_requests: {
      environment_id: environment,
      chain: 'main',
      contract,
      requested_at: TIME,
      reference_id: `${name}-asset`,
      attempt_id: key,
      project_id: PROJECT_OF[environment],
      signer: 'm'.repeat(20),
      owner: 'o'.repeat(20),
      status: 'pending',
      stage: 'accepted',
      trace_id: traceOf(environment),
      revision: 1,
    },
    activity_feeds: {
      entry: 'version',
      feed: `main ${addressOf(environment)} *`,
      updated_at: TIME,
      indexed_at: TIME,
      id: MESSAGE[environment],
      superseded_at: '2255-01-01 00:00:00',
      members: `"details":{"order_id":"${name}-order"}`,
    },
    tokens: { chain: 'main', contract, updated_at: TIME, name: `${name}-coin` },
  };
}

function toRows(environment: Environment): Record<string, Record<string, unknown>> {
  const name = environment === DEMO ? 'own' : 'stray';
  const key = Buffer.from(KEY[environment], 'hex').toString();
  const [scope, identity] = [{ environment_id: environment }, { identity_key: key }];
  const log = { kafka_partition: 0, kafka_offset: environment === DEMO ? 1 : 2 };
  const event = {
    ...scope,
    ...identity,
    type: 'track',
    event_name: `${name}_event`,
    event_time: TIME,
    received_at: TIME,
    message_id: MESSAGE[environment],
    anonymous_key: key,
    anonymous_id: `${name}-visitor`,
    surface: 'web',
    properties: `{"of":"${name}"}`,
    trace_id: traceOf(environment),
    ...log,
  };
  const link = { a_key: key, b_key: key, message_id: MESSAGE[environment], link: 'alias', outcome: 'linked' };
  const times = { cutoff_at: TIME, accepted_at: TIME, fenced_at: TIME, visibly_erased_at: TIME, log_expires_at: TIME };
  return {
    events: event,
    identity_links: { ...scope, ...link, received_at: TIME, ...log },
    identity_unlinks: { ...scope, ...identity, side: 'split', unlinked_at: TIME },
    consent_log: { ...scope, ...identity, status: 'full', source: `${name}-banner`, received_at: TIME, ...log },
    message_rejections: {
      ...scope,
      code: `${name.toUpperCase()}_CODE`,
      field: 'x',
      library: `${name}-library`,
      trace_id: traceOf(environment),
      received_at: TIME,
      ...log,
    },
    event_counts: {
      ...scope,
      step_s: 60,
      start_at: '2026-11-01 10:00:00',
      kind: 'event',
      name: `${name}_event`,
      messages: 1,
      counted_at: TIME,
    },
    player_counts: {
      ...scope,
      span_s: 3600,
      // Not deleted by the table's TTL.
      slot_at: '2100-01-01 00:00:00',
      kind: 'event',
      name: `${name}_event`,
      players: 1,
      until_at: '2026-11-01 10:00:00',
    },
    ...toChainRows(environment, key),
    erasure_requests: {
      ...scope,
      erasure_id: ERASURE[environment],
      cutoff_at: TIME,
      requested_at: TIME,
      trace_id: traceOf(environment),
    },
    erasure_fences: { ...scope, ...identity, cutoff_at: TIME, erasure_id: ERASURE[environment], fenced_at: TIME },
    erasure_receipts: { ...scope, erasure_id: ERASURE[environment], ...times, trace_id: traceOf(environment) },
    audit_log: {
      ...scope,
      project_id: PROJECT_OF[environment],
      happened_at: TIME,
      entry_id: name,
      kind: 'entry',
      object: `${name}-key`,
      action: 'key.create',
      actor: `${name}-actor`,
      detail: '{}',
    },
  };
}

export async function fillPortalRows({ runAsOperator: run }: Pick<Accounts, 'runAsOperator'>): Promise<void> {
  for (const environment of [DEMO, OTHER] as const)
    for (const [table, row] of Object.entries(toRows(environment)))
      await run(`INSERT INTO ${table} FORMAT JSONEachRow ${JSON.stringify(row)}`);
  await run('SYSTEM RELOAD DICTIONARY identity_persons');
}
