import { createLogger } from '@playline/runtime';
import { expect, it, onTestFinished } from 'vitest';
import { openPortal } from '../test/open-portal.ts';

it.each([
  ['x-forwarded-for', 0, 1],
  ['forwarded', 0, 1],
  ['x-forwarded-for', 1, 0],
])('the header %s with TRUSTED_PROXIES=%i is logged as a warning (count: %i)', async (name, proxies, warnings) => {
  const lines: string[] = [];
  const logger = createLogger({ service: 'portal', level: 'info' }, { write: (line: string) => lines.push(line) });
  const portal = await openPortal({ logger, config: { PORTAL_SECRET: Buffer.alloc(32, 1), TRUSTED_PROXIES: proxies } });
  onTestFinished(() => portal.close());
  const warningLines = () => lines.filter((line) => line.includes('TRUSTED_PROXIES'));
  await fetch(`${portal.origin}/sign-in`);
  expect(warningLines()).toEqual([]);
  for (const address of ['192.0.2.1', '192.0.2.2'])
    await fetch(`${portal.origin}/sign-in`, { headers: { [name]: address } });
  expect(warningLines()).toHaveLength(warnings);
  expect(warningLines().join()).not.toContain('192.0.2');
});
