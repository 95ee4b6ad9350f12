import type { Logger } from './logger.ts';

export interface Closable {
  close(): Promise<void> | void;
}

/** Opens a named part. It is closed when the service stops or a later part fails to start. */
export type Use = <T extends Closable>(name: string, open: () => Promise<T> | T) => Promise<T>;

export type ServiceState = 'starting' | 'running' | 'draining' | 'stopped';

export interface Service {
  readonly state: ServiceState;
  stop(): Promise<void>;
}

/**
 * Starts a service. `start` opens its parts through `use`: stores first, parts that accept work last.
 * @throws the fault of the part that failed, after the other parts were closed
 */
export async function startService(logger: Logger, start: (use: Use) => Promise<void>): Promise<Service> {
  const opened: { name: string; part: Closable }[] = [];
  let state: ServiceState = 'starting';
  let stopping: Promise<void> | null = null;

  const closeAll = async () => {
    state = 'draining';
    for (const { name, part } of opened.reverse()) {
      try {
        await part.close();
        logger.debug({ part: name }, 'closed');
      } catch (error) {
        logger.error({ part: name, error }, 'close failed');
      }
    }
    state = 'stopped';
  };
  const stop = () => {
    stopping ??= closeAll();
    return stopping;
  };

  try {
    await start(async (name, open) => {
      const part = await open();
      opened.push({ name, part });
      return part;
    });
  } catch (error) {
    await stop();
    throw error;
  }
  state = 'running';
  return {
    get state() {
      return state;
    },
    stop,
  };
}

/** Shorter than the 30 s that orchestrators wait before SIGKILL. */
const DRAIN_MAX_MS = 25_000;

/** Runs a service in this process. Exits with 0 after SIGTERM or SIGINT, with 1 after a failed start, drain or call. */
export async function runService(logger: Logger, start: (use: Use) => Promise<void>): Promise<void> {
  const fail = (error: unknown, message: string) => {
    logger.fatal({ error }, message);
    process.exit(1);
  };
  process.on('uncaughtException', (error) => fail(error, 'uncaught fault'));
  process.on('unhandledRejection', (error) => fail(error, 'unhandled rejection'));
  let service: Service;
  try {
    service = await startService(logger, start);
  } catch (error) {
    return fail(error, 'could not start');
  }
  logger.info('running');
  const drain = (signal: string) => {
    logger.info({ signal }, 'draining');
    setTimeout(() => fail(new Error(`not drained after ${DRAIN_MAX_MS} ms`), 'drain'), DRAIN_MAX_MS).unref();
    void service.stop().then(() => {
      logger.info('stopped');
      process.exit(0);
    });
  };
  process.once('SIGTERM', drain);
  process.once('SIGINT', drain);
}
