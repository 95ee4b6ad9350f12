import type { Engine } from '../clickhouse.ts';
import { pairsOf } from './fill.ts';
import { DAY_MS, DAYS, type Game, idsOf } from './game.ts';
import { createSource, PEER, type Source, type Span } from './sources.ts';

export interface Scene {
  readonly environmentId: string;
  readonly raw: Source;
  readonly exact: Source;
  /** With copies folded and the person of each event, for analysts who may read raw ids. */
  readonly analysis: Source;
  readonly peer: Source;
  readonly spans: ReturnType<typeof spansOf>;
  readonly who: Who;
}

/** A person who was just joined with another one, one of their messages, and a user who has sent some. */
interface Who {
  readonly person: string;
  readonly identity: string;
  readonly userId: string;
  readonly ids: readonly string[];
  readonly messageId: string;
}

const MONTH_DAYS = 30;
const FIRST_WEEK_DAY = 13;

/** @param day day of the game, from 0, that the queries are about */
function spansOf({ startMs, endMs }: Game, day = DAYS - 1) {
  const startOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const span = (since: number, until: number): Span => ({ since: startOf(since), until: startOf(until) });
  const dayMs = startMs + day * DAY_MS;
  const monday = startMs + ((8 - new Date(startMs).getUTCDay()) % 7) * DAY_MS;
  return {
    day: span(dayMs, dayMs + DAY_MS),
    week: span(startMs + FIRST_WEEK_DAY * DAY_MS, startMs + (FIRST_WEEK_DAY + 7) * DAY_MS),
    month: span(endMs - MONTH_DAYS * DAY_MS, endMs),
    /** Whole weeks, beginning with the first Monday. */
    weeks: span(monday, endMs),
  };
}

export async function createScene(engine: Engine, game: Game, day?: number): Promise<Scene> {
  const { environmentId } = game;
  return {
    environmentId,
    raw: createSource('events', environmentId, 'identity_key'),
    exact: createSource('events_exact', environmentId, 'identity_key'),
    analysis: createSource('analysis_events_raw', environmentId, 'person_key'),
    peer: PEER,
    spans: spansOf(game, day),
    who: await findWho(engine, game),
  };
}

async function findWho(engine: Engine, game: Game): Promise<Who> {
  const { first } = pairsOf(game).late;
  const [one, other] = [idsOf(first), idsOf(first + 1)];
  const keys = [one.anonymousKey, one.userKey, other.anonymousKey, other.userKey].join(', ');
  const texts = [one.anonymousId, one.userId, other.anonymousId, other.userId].join(', ');
  const rows = `FROM events WHERE environment_id = '${game.environmentId}'`;
  const [[person = '', identity = '', ...rest] = []] = await engine.queryRows(
    `SELECT lower(hex(arrayMin([${keys}]))), lower(hex(${one.anonymousKey})), ${texts},
       (SELECT min(message_id) ${rows} AND identity_key = ${one.anonymousKey}), (SELECT min(user_id) ${rows} AND user_id != '')`,
  );
  const [messageId = '', userId = ''] = rest.slice(4);
  return { person, identity, userId, ids: rest.slice(0, 4), messageId };
}
