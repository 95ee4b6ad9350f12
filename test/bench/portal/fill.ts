import { type Engine, waitForMerges } from '../clickhouse.ts';
import type { Bench } from '../figure.ts';
import { createGame, type Game, idsOf, rowsOf } from '../queries/game.ts';

const EVENTS = 10_000_000;
const REJECTIONS = 100_000;
const PEOPLE = 1_000_000;
const AUDIT_ENTRIES = 20_000;
const CHUNK_ROWS = 1_000_000;
/** Greater than any partition of the topic, so that a row from a writer never looks like one of these. */
const FIRST_PARTITION = 100;
const MERGES_MAX_MS = 1_800_000;
const SETTINGS = 'SETTINGS max_insert_threads = 2, max_threads = 2, max_partitions_per_insert_block = 200';

/** What was filled in. */
export interface Filled {
  readonly events: number;
  readonly rejections: number;
  readonly people: number;
}

/**
 * Fills an environment directly, because the log would be slow: 60 days of events, 90 days of rejections, people, two
 * years of changes.
 */
export async function fillEnvironment(engine: Engine, bench: Bench, projectId: string): Promise<Filled> {
  const filled = {
    events: Math.round(EVENTS * bench.scale),
    rejections: Math.round(REJECTIONS * bench.scale),
    people: Math.round(PEOPLE * bench.scale),
  };
  const game = { ...createGame(bench.environmentId, filled.events), people: filled.people };
  for (let first = 0; first < filled.events; first += CHUNK_ROWS) {
    const count = Math.min(CHUNK_ROWS, filled.events - first);
    await engine.ask(eventsStatement(game, rowsOf(game, { first, count })));
  }
  await engine.ask(peopleStatement(game));
  await engine.ask(rejectionsStatement(bench.environmentId, filled.rejections));
  await engine.ask(auditStatement({ ...bench, projectId }, Math.round(AUDIT_ENTRIES * bench.scale)));
  await waitForMerges(engine, bench.database, MERGES_MAX_MS);
  await engine.ask('SYSTEM RELOAD DICTIONARY identity_persons');
  return filled;
}

function eventsStatement({ environmentId }: Game, rows: string): string {
  return `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key,
    anonymous_key, user_key, anonymous_id, user_id, identity_type, session_id, surface, library, library_version,
    page_url, page_path, properties, trace_id, kafka_partition, kafka_offset)
  SELECT '${environmentId}', if(event_name = '', 'page', 'track'), event_name, event_time, received_at, message_id,
    identity_key, anonymous_key, user_key, anonymous_id, user_id, if(user_id = '', '', 'steam'), session_id, surface,
    concat('audience-', surface), '2.5.0', page_url, page_path, properties, lower(hex(sipHash128(number))),
    ${FIRST_PARTITION} + number % 6, intDiv(number, 6)
  FROM (${rows}) ${SETTINGS}`;
}

/** Links the visitor and the user of each person. */
function peopleStatement({ environmentId, people }: Game): string {
  const { anonymousKey, userKey } = idsOf('number');
  return `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version, stored_at)
  SELECT '${environmentId}', member.1, arrayMin(key -> key.1, members), member.2, at, 1 + number, at FROM (
    SELECT number, [(${anonymousKey}, 'anonymous'), (${userKey}, 'steam')] AS members, now64(3) - INTERVAL 1 HOUR AS at
    FROM numbers(${people})) ARRAY JOIN members AS member ${SETTINGS}`;
}

function rejectionsStatement(environmentId: string, rejections: number): string {
  return `INSERT INTO message_rejections
    (environment_id, code, field, surface, library, library_version, received_at, trace_id, kafka_partition, kafka_offset)
  SELECT '${environmentId}', ['MISSING_REQUIRED_FIELD', 'INVALID_ENUM', 'INVALID_VALUE', 'TOO_LONG'][1 + number % 4],
    concat('field', toString(number % 37)), ['web', 'unity', 'unreal'][1 + number % 3], 'audience-web',
    concat('2.', toString(number % 9), '.0'), now64(3) - toIntervalSecond(intDiv(number * 89 * 86400, ${rejections})),
    lower(hex(sipHash128(number))), ${FIRST_PARTITION}, number
  FROM numbers(${rejections}) ${SETTINGS}`;
}

function auditStatement(at: { environmentId: string; projectId: string }, entries: number): string {
  return `INSERT INTO audit_log
    (project_id, environment_id, happened_at, entry_id, kind, object, revision, action, actor, request_id, address, detail)
  SELECT '${at.projectId}', '${at.environmentId}', now64(3) - toIntervalMinute(number * 30), toString(number), 'project', toString(number),
    1, 'project.change', 'bench', lower(hex(sipHash128(number))), '127.0.0.1', '{"name":"Bench"}'
  FROM numbers(${entries}) ${SETTINGS}`;
}
