import { afterAll, expect, it } from 'vitest';
import type { ErasureLine } from '../../services/portal/src/reads/index.ts';
import { createMemoryReads } from '../../services/portal/src/test/memory-reads.ts';
import { openPortal } from '../../services/portal/src/test/open-portal.ts';
import { closeContexts, findViolations, openTab, sharedBrowser } from './browser.ts';

const ID = '55555555-5555-4555-8555-555555555555';

afterAll(async () => closeContexts(await sharedBrowser()));

it('the page of an erasure updates by itself from the request to the receipt', async () => {
  const erasures: Record<string, ErasureLine[]> = {};
  const portal = await openPortal({ reads: createMemoryReads({ erasures }) });
  const project = await portal.addProject('Game');
  const account = await portal.addAccount({ roles: [{ projectId: project.id, role: 'analyst' }] });
  const { page, errors } = await openTab(await sharedBrowser(), portal, account.id);
  const path = `/projects/${project.id}/environments/development/erasures/${ID}`;
  await page.goto(portal.origin + path);
  await page.waitForSelector('[aria-current=step]:has-text("Requested")');
  const timestampMs = Date.now();
  const line = {
    erasureId: ID,
    requestedMs: timestampMs,
    cutoffMs: timestampMs,
    traceId: 't',
    state: 'waiting',
  } as const;
  const later = { physicallyErasedMs: null, logExpiresMs: null, logExpiredMs: null };
  const waiting = { ...line, ...later, identities: 2, deleted: 7, fencedMs: timestampMs, visiblyErasedMs: null };
  const { id } = project.environments.find(({ name }) => name === 'development')!;
  erasures[id] = [waiting];
  await page.waitForSelector('[aria-current=step]:has-text("7 records of 2 identities")');
  erasures[id] = [{ ...waiting, state: 'erased', visiblyErasedMs: timestampMs + 9_000 }];
  await page.waitForSelector('text=Download receipt');
  expect([await findViolations(page), errors]).toEqual([[], []]);
  await portal.close();
}, 60_000);
