import { expect, it } from 'vitest';
import { createLogger } from './logger.ts';
import { startService } from './service.ts';

const logger = createLogger({ service: 'test', level: 'silent' });

/** Starts a service whose parts log when they are closed. @param last opens a further part */
function open(names: readonly string[], last?: () => Promise<{ close(): Promise<void> }>) {
  const log: string[] = [];
  const starting = startService(logger, async (use) => {
    for (const name of names) await use(name, () => ({ close: async () => void log.push(name) }));
    if (last !== undefined) await use('last', last);
  });
  return { log, starting };
}

it('a service closes its parts once, in reverse order, however often it is stopped', async () => {
  const { log, starting } = open(['store', 'listener']);
  const service = await starting;
  await Promise.all([service.stop(), service.stop()]);
  expect(log).toEqual(['listener', 'store']);
});

it('a service closes its parts when a later part fails to start, and reports that fault', async () => {
  const { log, starting } = open(['store'], () => Promise.reject(new Error('port taken')));
  await expect(starting).rejects.toThrow('port taken');
  expect(log).toEqual(['store']);
});

it('a service closes its other parts when a part fails to close', async () => {
  const broken = async () => ({ close: () => Promise.reject(new Error('stuck')) });
  const { log, starting } = open(['store'], broken);
  await (await starting).stop();
  expect(log).toEqual(['store']);
});

it('a service reports the states running, draining and stopped', async () => {
  const held = Promise.withResolvers<void>();
  const service = await open([], async () => ({ close: () => held.promise })).starting;
  const states = [service.state];
  const stopped = service.stop();
  states.push(service.state);
  held.resolve();
  await stopped;
  expect([...states, service.state]).toEqual(['running', 'draining', 'stopped']);
});
