import { type Engine, waitForMerges } from '../clickhouse.ts';
import { type Bench, scaled } from '../figure.ts';
import { eventsStatement } from '../queries/fill.ts';
import { createGame, FIRST_PARTITION, type Game, idsOf, rowsOf } from '../queries/game.ts';

const EVENTS = 10_000_000;
const REJECTIONS = 100_000;
const PEOPLE = 1_000_000;
const AUDIT_ENTRIES = 20_000;
const CHUNK_ROWS = 1_000_000;
const MERGES_MAX_MS = 1_800_000;
const SETTINGS = 'SETTINGS max_insert_threads = 2, max_threads = 2, max_partitions_per_insert_block = 200';

export async function fillEnvironment(engine: Engine, bench: Bench, projectId: string): Promise<void> {
  const events = scaled(bench, EVENTS);
  const game = { ...createGame(bench.environmentId, events), people: scaled(bench, PEOPLE) };
  for (let first = 0; first < events; first += CHUNK_ROWS) {
    const count = Math.min(CHUNK_ROWS, events - first);
    await engine.query(`${eventsStatement(game, rowsOf(game, { first, count }))} ${SETTINGS}`);
  }
  await engine.query(peopleStatement(game));
  await engine.query(rejectionsStatement(bench.environmentId, scaled(bench, REJECTIONS)));
  await engine.query(auditStatement({ ...bench, projectId }, scaled(bench, AUDIT_ENTRIES)));
  await waitForMerges(engine, bench.database, MERGES_MAX_MS);
  await engine.query('SYSTEM RELOAD DICTIONARY identity_persons');
}

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
