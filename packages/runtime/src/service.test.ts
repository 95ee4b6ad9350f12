import { describe, expect, it } from 'vitest';
import { createLogger } from './logger.ts';
import { type Service, startService } from './service.ts';

const logger = createLogger({ service: 'test', level: 'silent' });

function part(name: string, log: string[]) {
  return { close: async () => void log.push(`close ${name}`) };
}

describe('startService', () => {
  it('closes its parts in reverse order of their opening', async () => {
    const log: string[] = [];
    const service = await startService(logger, async (use) => {
      await use('store', () => part('store', log));
      await use('listener', () => part('listener', log));
    });
    await service.stop();
    expect(log).toEqual(['close listener', 'close store']);
  });

  it('closes what was opened when a later part fails to start, and reports that fault', async () => {
    const log: string[] = [];
    const start = startService(logger, async (use) => {
      await use('store', () => part('store', log));
      await use('listener', () => Promise.reject(new Error('port taken')));
    });
    await expect(start).rejects.toThrow('port taken');
    expect(log).toEqual(['close store']);
  });

  it('walks through starting, running, draining and stopped', async () => {
    const states: string[] = [];
    let service: Service | null = null;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    service = await startService(logger, async (use) => {
      await use('slow', () => ({ close: () => held }));
    });
    states.push(service.state);
    const stopped = service.stop();
    states.push(service.state);
    release();
    await stopped;
    states.push(service.state);
    expect(states).toEqual(['running', 'draining', 'stopped']);
  });

  it('closes the other parts when one cannot be closed', async () => {
    const log: string[] = [];
    const service = await startService(logger, async (use) => {
      await use('store', () => part('store', log));
      await use('broken', () => ({ close: () => Promise.reject(new Error('stuck')) }));
    });
    await service.stop();
    expect(log).toEqual(['close store']);
  });

  it('stops once, however often it is asked to', async () => {
    const log: string[] = [];
    const service = await startService(logger, async (use) => {
      await use('store', () => part('store', log));
    });
    await Promise.all([service.stop(), service.stop()]);
    expect(log).toEqual(['close store']);
  });
});
