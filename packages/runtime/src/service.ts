import type { Logger } from './logger.ts';

export interface Closable {
  close(): Promise<void> | void;
}

/** Opens a named component, which is closed when the service stops or a later component fails to start. */
export type Use = <T extends Closable>(name: string, open: () => Promise<T> | T) => Promise<T>;

export type ServiceState = 'starting' | 'running' | 'draining' | 'stopped';

export interface Service {
  readonly state: ServiceState;
  stop(): Promise<void>;
}

/**
 * Starts a service. `start` opens its components through `use`: stores first, and components that accept work last.
 * @throws the fault of the failed component, after the other components are closed
 */
export async function startService(logger: Logger, start: (use: Use) => Promise<void>): Promise<Service> {
  const opened: { name: string; component: Closable }[] = [];
  let state: ServiceState = 'starting';
  let stopping: Promise<void> | null = null;

  const closeAll = async () => {
    state = 'draining';
    for (const { name, component } of opened.reverse()) {
      try {
        await component.close();
        logger.debug({ component: name }, 'component closed');
      } catch (error) {
        logger.error({ component: name, error }, 'failed to close component');
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
      const component = await open();
      opened.push({ name, component });
      return component;
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

/** Less than the 30 s after which orchestrators send SIGKILL. */
const DRAIN_MAX_MS = 25_000;

/** Runs a service in this process. Exits with 0 after SIGTERM or SIGINT, and with 1 after any failure. */
export async function runService(logger: Logger, start: (use: Use) => Promise<void>): Promise<void> {
  const fail = (error: unknown, message: string) => {
    logger.fatal({ error }, message);
    process.exit(1);
  };
  process.on('uncaughtException', (error) => fail(error, 'uncaught exception; exiting'));
  process.on('unhandledRejection', (error) => fail(error, 'unhandled rejection; exiting'));
  let service: Service;
  try {
    service = await startService(logger, start);
  } catch (error) {
    return fail(error, 'startup failed; exiting');
  }
  logger.info('service started');
  const drain = (signal: string) => {
    logger.info({ signal }, 'shutdown started');
    setTimeout(
      () => fail(new Error(`still open after ${DRAIN_MAX_MS} ms`), 'shutdown timed out; exiting'),
      DRAIN_MAX_MS,
    ).unref();
    void service.stop().then(() => {
      logger.info('service stopped');
      process.exit(0);
    });
  };
  process.once('SIGTERM', drain);
  process.once('SIGINT', drain);
}
