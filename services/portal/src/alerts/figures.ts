import {
  type EnvironmentMinute,
  type KeyRecord,
  type KeyUse,
  keysOfProject,
  type ProjectRecord,
} from '@playline/access-keys';
import { settleWithin } from '@playline/http';
import type { PagesParts } from '../pages/index.ts';
import type { OpenLetters, WriterDelay } from '../standing/index.ts';

/** What is told of projects; null where it cannot be had now: a page tells the rest all the same, and says what is missing. */
export interface Figures {
  /** Of the last hour and the minute that is not over, by environment id. */
  readonly minutes: ReadonlyMap<string, readonly EnvironmentMinute[]> | null;
  readonly delay: WriterDelay | null;
  readonly letters: OpenLetters | null;
  /** Live keys by project id, and how each is used. */
  readonly keys: ReadonlyMap<string, readonly KeyRecord[]> | null;
  readonly uses: ReadonlyMap<string, KeyUse> | null;
  readonly nowMs: number;
}

export type FiguresParts = Pick<PagesParts, 'usage' | 'standing' | 'keys' | 'frame'>;

/** An hour, and the minute that is not over. */
const MINUTES = 61;
/** Stores that do not answer keep nobody from their projects. */
const TOLD_MAX_MS = 2_000;

/** Reads what pages tell of projects. Never throws: what cannot be had is null. */
export async function readFigures(parts: FiguresParts, projects: readonly ProjectRecord[]): Promise<Figures> {
  const { usage, standing, frame } = parts;
  const ids = projects.flatMap(({ environments }) => environments.map(({ id }) => id));
  const [minutes, delay, letters, ofKeys] = await Promise.all([
    told(usage.readEnvironments(ids, MINUTES)),
    told(standing.writerDelay()),
    told(standing.openLetters()),
    readKeys(parts, projects),
  ]);
  return { minutes, delay, letters, ...ofKeys, nowMs: frame.wallClockMs() };
}

async function readKeys({ keys, usage }: FiguresParts, projects: readonly ProjectRecord[]) {
  const lists = await told(
    keys.all().then((records) => projects.map(({ id }) => [id, keysOfProject(records, id)] as const)),
  );
  if (lists === null) return { keys: null, uses: null };
  const isLive = ({ revokedAt }: KeyRecord) => revokedAt === null;
  const live = new Map(lists.map(([id, list]) => [id, list.filter(isLive)]));
  const uses = await told(usage.readKeys([...live.values()].flat().map(({ keyId }) => keyId)));
  return { keys: live, uses };
}

/** Null where it fails or takes too long. */
export const told = <T>(reading: Promise<T>): Promise<T | null> => settleWithin(TOLD_MAX_MS, reading).catch(() => null);
