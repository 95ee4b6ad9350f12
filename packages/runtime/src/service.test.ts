import { expect, it } from 'vitest';
import { createLogger } from './logger.ts';
import { startService } from './service.ts';

const logger = createLogger({ service: 'test', level: 'silent' });

/** Starts a service whose components record that they were closed. @param last opens one more component */
function open(names: readonly string[], last?: () => Promise<{ close(): Promise<void> }>) {
  const log: string[] = [];
  const starting = startService(logger, async (use) => {
    for (const name of names) await use(name, () => ({ close: async () => void log.push(name) }));
    if (last !== undefined) await use('last', last);
  });
  return { log, starting };
}

it('a service that is stopped twice closes its components once, in reverse order', async () => {
  const { log, starting } = open(['store', 'listener']);
  const service = await starting;
  await Promise.all([service.stop(), service.stop()]);
  expect(log).toEqual(['listener', 'store']);
});

it('a service closes its components and throws the fault when a later component fails to start', async () => {
  const { log, starting } = open(['store'], () => Promise.reject(new Error('port taken')));
  await expect(starting).rejects.toThrow('port taken');
  expect(log).toEqual(['store']);
});

it('a service closes all other components when one component fails to close', async () => {
  const broken = async () => ({ close: () => Promise.reject(new Error('stuck')) });
  const { log, starting } = open(['store'], broken);
  await (await starting).stop();
  expect(log).toEqual(['store']);
});

it('a service reports the states running, draining and stopped', async () => {
  const closing = Promise.withResolvers<void>();
  const service = await open([], async () => ({ close: () => closing.promise })).starting;
  const states = [service.state];
  const stopped = service.stop();
  states.push(service.state);
  closing.resolve();
  await stopped;
  expect([...states, service.state]).toEqual(['running', 'draining', 'stopped']);
});
