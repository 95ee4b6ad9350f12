import { createLogger } from '@playline/runtime';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openPortal } from '../test/open-portal.ts';

async function open(TRUSTED_PROXIES: number) {
  const lines: string[] = [];
  const logger = createLogger({ service: 'portal', level: 'info' }, { write: (line: string) => lines.push(line) });
  const portal = await openPortal({ logger, config: { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES } });
  onTestFinished(() => portal.close());
  const ask = (headers: Record<string, string>) => fetch(`${portal.origin}/sign-in`, { headers });
  return { ask, warnings: () => lines.filter((line) => line.includes('TRUSTED_PROXIES')) };
}

describe('a request that was forwarded', () => {
  it.each(['x-forwarded-for', 'forwarded'])(
    'by a proxy that nobody trusts is told to the log, once: %s',
    async (name) => {
      const { ask, warnings } = await open(0);
      await ask({});
      expect(warnings()).toEqual([]);
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) await ask({ [name]: address });
      expect(warnings()).toHaveLength(1);
      expect(warnings()[0]).not.toContain('192.0.2');
    },
  );

  it('by a proxy that is trusted is told to nobody', async () => {
    const { ask, warnings } = await open(1);
    await ask({ 'x-forwarded-for': '192.0.2.1' });
    expect(warnings()).toEqual([]);
  });
});
