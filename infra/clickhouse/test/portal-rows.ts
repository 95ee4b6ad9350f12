import type { Accounts } from './accounts.ts';

/** Two environments of two projects, each with one row of everything. One id is a prefix of the other. */
export const DEMO = 'demo';
export const OTHER = 'demo-2';
export type Environment = typeof DEMO | typeof OTHER;
/** Projects of the two environments. */
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
/** Addresses of contracts, as ClickHouse stores them and as queries write them. */
const CONTRACT = { [DEMO]: 'c'.repeat(20), [OTHER]: 's'.repeat(20) } as const;
const addressOf = (environment: Environment) => `0x${Buffer.from(CONTRACT[environment]).toString('hex')}`;
const TIME = '2026-11-01 10:00:00.000';
const DAY_MS = 86_400_000;

/** Texts that only rows of the second environment contain. */
export const ofOther = (text: string) =>
  /stray-|_stray|of-stray|stray_|STRAY_|(73){16}|game-2|demo-2|22222222-2222|66666666-6666/.test(text);

const traceOf = (environment: Environment) => (environment === DEMO ? 'trace-of-own' : 'trace-of-stray');
const quoted = (text: string) => `'${text}'`;

/** The arguments of each view for an environment. A new view of the portal must be added here. */
export function argumentsOf(environment: Environment): Record<string, Record<string, string>> {
  const of = { environment: quoted(environment) };
  const span = { since: String(NOW_MS - DAY_MS), until: String(NOW_MS + DAY_MS) };
  const identities = { identities: `[${quoted(KEY[environment])}]` };
  const narrowed = { code: "''", field: "''" };
  const any = { type: "''", name: "''", surface: "''", test: "''", identity: "''" };
  return {
    portal_messages: { ...of, ...span, before: "''", ...any },
    portal_messages_of_people: { ...of, ...span, before: "''", name: "''", ...identities },
    portal_message: { ...of, message: quoted(MESSAGE[environment]) },
    portal_rejections: { ...of, ...span, ...narrowed },
    portal_rejection_times: { ...of, ...span, step: '3600', ...narrowed },
    portal_rejections_of_trace: { ...of, trace: quoted(traceOf(environment)) },
    portal_counts: { environments: `[${quoted(environment)}]`, ...span },
    portal_consents: { ...of, ...identities },
    portal_links: { ...of, ...identities },
    portal_unlinks: { ...of, ...identities },
    portal_raw_ids: { ...of, ...identities },
    portal_erasures: of,
    portal_activities: {
      contracts: `['main ${addressOf(environment)}']`,
      type: "''",
      token: "''",
      before: "''",
      since: `${span.since}000`,
      until: `${span.until}000`,
      indexed_since: span.since,
      indexed_until: span.until,
    },
    portal_activity_times: {
      contract: quoted(`main ${addressOf(environment)}`),
      type: "''",
      newer: '0',
      since: `${span.since}000`,
      until: `${span.until}000`,
    },
    portal_tokens: { contracts: `['main ${addressOf(environment)}']` },
    portal_mints: { ...of, since: span.since, status: "''" },
    portal_mint_signers: { ...of, since: span.since },
    portal_open_erasures: { environments: `[${quoted(environment)}]` },
    portal_fences: { ...of, after: "''", since: '0' },
    portal_erasure_receipt: { ...of, erasure: quoted(ERASURE[environment]) },
    portal_audit: { project: quoted(PROJECT_OF[environment]), ...span, actor: "''", action: "''" },
  };
}

/** `view(name = value, …)` */
export const callOf = (view: string, args: Record<string, string>) =>
  `${view}(${Object.entries(args)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ')})`;

/** Rows of activities on a chain and of requests to it. */
function chainRowsOf(environment: Environment, key: string): Record<string, Record<string, unknown>> {
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

function rowsOf(environment: Environment): Record<string, Record<string, unknown>> {
  const name = environment === DEMO ? 'own' : 'stray';
  const key = Buffer.from(KEY[environment], 'hex').toString();
  const [of, identity] = [{ environment_id: environment }, { identity_key: key }];
  const log = { kafka_partition: 0, kafka_offset: environment === DEMO ? 1 : 2 };
  const event = {
    ...of,
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
    identity_links: { ...of, ...link, received_at: TIME, ...log },
    identity_unlinks: { ...of, ...identity, side: 'split', unlinked_at: TIME },
    consent_log: { ...of, ...identity, status: 'full', source: `${name}-banner`, received_at: TIME, ...log },
    message_rejections: {
      ...of,
      code: `${name.toUpperCase()}_CODE`,
      field: 'x',
      library: `${name}-library`,
      trace_id: traceOf(environment),
      received_at: TIME,
      ...log,
    },
    ...chainRowsOf(environment, key),
    erasure_requests: {
      ...of,
      erasure_id: ERASURE[environment],
      cutoff_at: TIME,
      requested_at: TIME,
      trace_id: traceOf(environment),
    },
    erasure_fences: { ...of, ...identity, cutoff_at: TIME, erasure_id: ERASURE[environment], fenced_at: TIME },
    erasure_receipts: { ...of, erasure_id: ERASURE[environment], ...times, trace_id: traceOf(environment) },
    audit_log: {
      ...of,
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

/** Fills both environments. */
export async function fillPortalRows({ runAsOperator: operate }: Pick<Accounts, 'runAsOperator'>): Promise<void> {
  for (const environment of [DEMO, OTHER] as const)
    for (const [table, row] of Object.entries(rowsOf(environment)))
      await operate(`INSERT INTO ${table} FORMAT JSONEachRow ${JSON.stringify(row)}`);
  await operate('SYSTEM RELOAD DICTIONARY identity_persons');
}
