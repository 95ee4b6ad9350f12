import type { AnalystsEngine } from './analysts-engine.ts';

/** Two environments with one row per table. All strings of the second environment contain `stray`. */
export const DEMO = 'demo-own';
export const OTHER = 'demo-stray';
/** A string that occurs in every value that identifies a person, and in no other value. */
export const RAW = 'rawid';
const KEY = { [DEMO]: '6f'.repeat(16), [OTHER]: '73'.repeat(16) } as const;
type Environment = keyof typeof KEY;

const toName = (environment: Environment) => (environment === DEMO ? 'own' : 'stray');
const toUserId = (environment: Environment) => `${RAW}-${toName(environment)}-7@example.org`;

export const isFromOther = (text: string) => /stray|(73){16}|s{16}/i.test(text);
export const personOf = (environment: Environment) => KEY[environment];

export function toArguments(view: string, environment: Environment): string {
  if (view.startsWith('derived_')) return "(since = '2000-01-01 00:00:00', until = '2100-01-01 00:00:00')";
  if (view === 'sessions_between')
    return `(environment = '${environment}', since = '2000-01-01', until = '2100-01-01')`;
  if (view === 'properties_between') {
    // `friend` is not declared safe, and contains a raw id.
    const names = `text = 'friend', number = '${toName(environment)}_level'`;
    return `(environment = '${environment}', since = '2000-01-01 00:00:00', until = '2100-01-01 00:00:00', ${names})`;
  }
  if (view === 'person_days_in') return "(zone = 'Asia/Tokyo')";
  if (view === 'user_timeline') return `(environment = '${environment}', user = '${toUserId(environment)}')`;
  return view === 'person_timeline' ? `(environment = '${environment}', person = '${KEY[environment]}')` : '';
}

/** The catalogues show the last 30 days. */
const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().replace('T', ' ').replace('Z', '');

function toEvent(environment: Environment): Record<string, unknown> {
  const name = toName(environment);
  const id = toUserId(environment);
  return {
    environment_id: environment,
    type: 'identify',
    event_name: `${name}_event`,
    event_time: YESTERDAY,
    received_at: YESTERDAY,
    message_id: environment === DEMO ? '11111111-1111-4111-8111-111111111111' : '22222222-2222-4222-8222-222222222222',
    user_id: id,
    identity_type: 'email',
    anonymous_id: `anonymous-${id}`,
    device_id: `device-${id}`,
    from_id: `from-${id}`,
    from_type: 'email',
    to_id: `to-${id}`,
    to_type: 'email',
    session_id: `${name}-session`,
    page_url: `https://game.example/u/${id}/shop?email=${id}&utm_campaign=${name}-summer`,
    page_path: `/u/${id}/shop`,
    page_referrer: `https://friend.example/u/${id}`,
    page_title: `Shop of ${id}`,
    user_agent: `agent of ${id}`,
    properties: `{"${name}_level":7,"friend":"${id}","${RAW}_name_${name}":1}`,
    traits: `{"email":"${id}"}`,
    trace_id: `${RAW}${name}`,
    surface: 'web',
    library: `${name}-library`,
    library_version: '1.0.0',
    consent_level: 'full',
  };
}

const TIME = '2026-11-01 10:00:00.000';

const toTestFields = (environment: Environment) => ({
  test: true,
  message_id: environment === DEMO ? '33333333-3333-4333-8333-333333333333' : '44444444-4444-4444-8444-444444444444',
});

/** @returns rows of every table, including tables that no analyst view reads */
function toRows(environment: Environment): Record<string, Record<string, unknown> | Record<string, unknown>[]> {
  const name = environment === DEMO ? 'own' : 'stray';
  const person = Buffer.from(KEY[environment], 'hex').toString();
  const [scope, key] = [{ environment_id: environment }, { identity_key: person }];
  const log = { kafka_partition: 0, kafka_offset: environment === DEMO ? 1 : 2 };
  return {
    events: [
      { ...toEvent(environment), ...key, user_key: person },
      { ...toEvent(environment), ...key, user_key: person, ...toTestFields(environment) },
    ],
    identity_overrides: { ...scope, ...key, person_key: person, kind: 'email', linked_at: TIME, version: 1 },
    identity_links: { ...scope, a_key: person, b_key: person, received_at: TIME, ...log },
    identity_unlinks: { ...scope, ...key, side: 'split', unlinked_at: TIME },
    consent_log: { ...scope, ...key, status: 'full', source: `${name}-banner`, received_at: TIME, ...log },
    message_rejections: { ...scope, code: `${name.toUpperCase()}_CODE`, field: 'x', received_at: TIME, ...log },
    environment_settings: { ...scope, time_zone: 'Europe/Berlin', safe_properties: [`${name}_level`], version: 1 },
    erasure_fences: { ...scope, ...key, cutoff_at: '2020-01-01 00:00:00.000' },
    erasure_requests: { ...scope, cutoff_at: TIME, requested_at: TIME },
  };
}

export async function fillTwoEnvironments({ runAsOperator: run }: AnalystsEngine): Promise<void> {
  for (const environment of [DEMO, OTHER] as const)
    for (const [table, rows] of Object.entries(toRows(environment)))
      await run(
        `INSERT INTO ${table} FORMAT JSONEachRow ${[rows]
          .flat()
          .map((row) => JSON.stringify(row))
          .join(' ')}`,
      );
  await run('SYSTEM RELOAD DICTIONARY playline.identity_persons');
}
