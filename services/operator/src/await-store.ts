import { setTimeout as delay } from 'node:timers/promises';
import { type QueryRows, readRows } from '@playline/stores';
import type { LogReader } from '@playline/stream';
import { UnreachableError } from './command.ts';

/** Enough for a store on the same machine that starts at the same time as the command. */
const READY_MAX_MS = 10_000;
const POLL_MS = 50;

/**
 * Waits until a store that connects in the background answers.
 * @param probe resolves to false while it does not; a fault counts as that
 * @returns what `probe` resolves to when it answers
 * @throws UnreachableError when it does not answer within 10 s
 */
export async function awaitStore<T>(name: string, probe: () => Promise<T | false>): Promise<T> {
  const endAt = performance.now() + READY_MAX_MS;
  for (;;) {
    const answer = await probe().catch(() => false as const);
    if (answer !== false) return answer;
    if (performance.now() > endAt)
      throw new UnreachableError(`${name} does not answer: start it (npm run up), or mend its address`);
    await delay(POLL_MS);
  }
}

/** Waits for the brokers of a log: they say that there is no topic without a name. @throws UnreachableError */
export const awaitLog = (log: Pick<LogReader, 'bounds'>): Promise<true> =>
  awaitStore('Kafka', async () => (await log.bounds('')).length === 0);

/** @throws UnreachableError when ClickHouse does not answer */
export const awaitClickHouse = (query: QueryRows): Promise<true> =>
  awaitStore('ClickHouse', async () => (await readRows(query('SELECT 1'))).length === 1);

interface Closing {
  close(): Promise<void>;
}

/** Works with what was opened, once `answers` has resolved, and closes it. @throws what either throws */
export async function withOpened<S extends Closing, T>(
  opened: S,
  answers: (opened: S) => Promise<unknown>,
  work: (opened: S) => Promise<T>,
): Promise<T> {
  try {
    await answers(opened);
    return await work(opened);
  } finally {
    await opened.close();
  }
}

/** Opens one of several stores. */
type Open = <S extends Closing>(opening: Promise<S>) => Promise<S>;

/** Works with stores, and closes all that were opened, also when the next one cannot be. @throws what the work throws */
export async function withSeveral<T>(work: (open: Open) => Promise<T>): Promise<T> {
  const opened: Closing[] = [];
  try {
    return await work(async (opening) => {
      const store = await opening;
      opened.push(store);
      return store;
    });
  } finally {
    await Promise.all(opened.map((store) => store.close()));
  }
}

/** Works with a store, once it is ready, and closes it. @throws UnreachableError, or what the work throws */
export const withStore = <S extends Closing & { ready(): Promise<boolean> }, T>(
  name: string,
  store: S,
  work: (store: S) => Promise<T>,
): Promise<T> => withOpened(store, () => awaitStore(name, () => store.ready()), work);

/** Works with a log, once its brokers answer, and closes it. @throws UnreachableError, or what the work throws */
export const withLog = <T>(log: LogReader, work: (log: LogReader) => Promise<T>): Promise<T> =>
  withOpened(log, awaitLog, work);
