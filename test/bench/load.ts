import type { Bench } from './figure.ts';
import { MESSAGES_PATH } from './load-client.ts';
import type { Load, LoadResult, Posted, Posting } from './load-process.ts';
import { cpuSecondsOf, runChild } from './processes.ts';
import type { Server } from './services.ts';

export interface LoadFigure extends LoadResult {
  cpuSeconds: number;
}

export interface LoadShape extends Pick<Load, 'batchSize' | 'connections' | 'traffic' | 'requestsPerSecond'> {
  warmUpMs?: number;
  windowMs?: number;
  work?: () => Promise<void>;
}

const targetOf = (server: Server, bench: Bench) => ({
  port: server.port,
  path: MESSAGES_PATH,
  headers: { 'x-service-publishable-key': bench.publishableKey },
});

/**
 * Generates load from a separate process and measures the server's CPU seconds during the window.
 * @throws Error if a response in the window is not 200 or `work` throws
 */
export async function loadOn(server: Server, bench: Bench, { work, ...shape }: LoadShape): Promise<LoadFigure> {
  const load: Load = { ...targetOf(server, bench), warmUpMs: 2_000, windowMs: 8_000, ...shape };
  let [before, after] = [0, 0];
  let worked = Promise.resolve();
  const result = await runChild<LoadResult>('load-process', {
    args: [JSON.stringify(load)],
    onBegin: (child) => {
      before = cpuSecondsOf(server.pid);
      if (work === undefined) return;
      worked = work().finally(() => child.connected && child.send('end'));
      // An error is rethrown after the load ends. Until then, it must not count as an unhandled rejection.
      worked.catch(() => {});
    },
    onResult: () => {
      after = cpuSecondsOf(server.pid);
    },
  });
  if (Object.keys(result.refused).length > 0)
    throw new Error(`responses other than 200: ${JSON.stringify(result.refused)}`);
  await worked;
  return { ...result, cpuSeconds: after - before };
}

/** CPU seconds after which rates no longer increase, because all hot code is compiled. */
const WARM_UP_CPU_S = 4;
/** Limits the warm-up on a busy machine. */
const WARM_UP_LOADS_MAX = 8;

// Generates load until the server has used enough CPU time. On a busy machine, a fixed duration would be too short.
export async function warmUp(server: Server, bench: Bench, shape: LoadShape): Promise<void> {
  const before = cpuSecondsOf(server.pid);
  for (let loads = 0; loads < WARM_UP_LOADS_MAX && cpuSecondsOf(server.pid) - before < WARM_UP_CPU_S; loads += 1)
    await loadOn(server, bench, { ...shape, windowMs: 2_000 });
}

/** Posts messages from a separate process and waits for all responses. @throws Error on a response other than 200 */
export function postMessages(
  server: Server,
  bench: Bench,
  shape: Pick<Posting, 'messages' | 'batchSize' | 'messagesPerSecond'>,
): Promise<Posted> {
  const posting: Posting = { ...targetOf(server, bench), ...shape };
  return runChild<Posted>('load-process', { args: [JSON.stringify(posting)] });
}
