import { createLogger } from '@playline/runtime';
import { expect, it, onTestFinished } from 'vitest';
import { openPortal } from '../test/open-portal.ts';

it.each([
  ['x-forwarded-for', 0, 1],
  ['forwarded', 0, 1],
  ['x-forwarded-for', 1, 0],
])('requests with %s and %i trusted proxies log %i warnings, without addresses', async (name, proxies, warnings) => {
  const lines: string[] = [];
  const logger = createLogger({ service: 'portal', level: 'info' }, { write: (line: string) => lines.push(line) });
  const portal = await openPortal({ logger, config: { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: proxies } });
  onTestFinished(() => portal.close());
  const logged = () => lines.filter((line) => line.includes('TRUSTED_PROXIES'));
  await fetch(`${portal.origin}/sign-in`);
  expect(logged()).toEqual([]);
  for (const address of ['192.0.2.1', '192.0.2.2'])
    await fetch(`${portal.origin}/sign-in`, { headers: { [name]: address } });
  expect(logged()).toHaveLength(warnings);
  expect(logged().join()).not.toContain('192.0.2');
});
