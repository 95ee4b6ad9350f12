import type { Logger } from './logger.ts';

/** Anything opened at the start of a service and closed, in reverse order, at its end. */
export interface Closable {
  close(): Promise<void> | void;
}

/** Opens a part under a name. It is closed when the service stops, or when a later part fails to start. */
export type Use = <T extends Closable>(name: string, open: () => Promise<T> | T) => Promise<T>;

export type ServiceState = 'starting' | 'running' | 'draining' | 'stopped';

export interface Service {
  readonly state: ServiceState;
  /** Closes all parts in reverse order. A second call waits for the first. */
  stop(): Promise<void>;
}

/**
 * Starts a service: `start` opens its parts through `use`, the stores first, and last what accepts work.
 * @throws the fault of the part that failed, after all parts opened before it were closed
 */
export async function startService(logger: Logger, start: (use: Use) => Promise<void>): Promise<Service> {
  const opened: { name: string; part: Closable }[] = [];
  let state: ServiceState = 'starting';
  let stopping: Promise<void> | null = null;

  const closeAll = async () => {
    for (const { name, part } of opened.reverse()) {
      try {
        await part.close();
        logger.debug({ part: name }, 'closed');
      } catch (error) {
        logger.error({ part: name, error }, 'could not be closed cleanly');
      }
    }
    state = 'stopped';
  };
  const stop = () => {
    if (stopping === null) {
      state = 'draining';
      stopping = closeAll();
    }
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

/** Longer than a block's insert or a request's deadline, shorter than the 30 s orchestrators wait before SIGKILL. */
const DRAIN_MAX_MS = 25_000;

/**
 * Runs a service as this process: SIGTERM and SIGINT drain it and end the process with 0; a start that fails,
 * a drain that takes longer than 25 s and an uncaught fault end it with 1.
 */
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
