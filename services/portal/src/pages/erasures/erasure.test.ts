import { expect, it } from 'vitest';
import type { ErasureLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';

const ID = '55555555-5555-4555-8555-555555555555';
const NOW_MS = Date.parse('2026-11-01T10:00:00Z');
const erased: ErasureLine = {
  erasureId: ID,
  requestedMs: NOW_MS,
  cutoffMs: NOW_MS,
  traceId: 't',
  state: 'erased',
  identities: 1,
  deleted: 1234,
  fencedMs: NOW_MS + 3000,
  visiblyErasedMs: NOW_MS + 9000,
  physicallyErasedMs: null,
  logExpiresMs: NOW_MS + 3_600_000,
  logExpiredMs: null,
};

const erasures: Record<string, ErasureLine[]> = {};
const portal = usePortal({ reads: createMemoryReads({ erasures }) });

async function openErasure() {
  const project = await portal.addProject('Game');
  const environment = project.environments.find(({ name }) => name === 'development')!;
  const path = `/projects/${project.id}/environments/development/erasures/${ID}`;
  const browser = await portal.signIn({ project, role: 'analyst' });
  return { environment, path, read: async (name = path) => browser.get(name) };
}

/** The step that is in progress. */
const currentOf = (text: string) => /aria-current="step"><span class="status wait">([\w ]+)/.exec(text)?.[1];

it('the page of an erasure shows the step in progress from the request to the receipt', async () => {
  const { environment, path, read } = await openErasure();
  expect(currentOf((await read()).text)).toBe('Requested');
  const later = { visiblyErasedMs: null, logExpiresMs: null, state: 'waiting' } as const;
  const stored = { ...erased, ...later, identities: null, deleted: null, fencedMs: null };
  erasures[environment.id] = [stored];
  expect(currentOf((await read()).text)).toBe('Fenced');
  erasures[environment.id] = [{ ...erased, ...later, deleted: 7 }];
  const { text } = await read();
  expect([currentOf(text), text.includes('7 records of 1 identity')]).toEqual(['Erased', true]);
  expect(text).toContain('data-complete="false"');
  erasures[environment.id] = [erased];
  const complete = (await read()).text;
  expect(currentOf(complete)).toBe('Disks purged');
  for (const expected of ['data-complete="true"', '1,234 records of 1 identity', 'after 9\u00a0s', `${path}/receipt`])
    expect(complete).toContain(expected);
});

it('the page of an erasure that found nothing recommends checking the id, and an invalid erasure id does not exist', async () => {
  const { environment, path, read } = await openErasure();
  erasures[environment.id] = [{ ...erased, deleted: 0 }];
  expect((await read()).text).toContain('Nothing was stored about this person');
  expect((await read(path.replace(ID, 'nothing'))).status).toBe(404);
});
