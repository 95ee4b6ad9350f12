import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { afterEach, expect, it } from 'vitest';
import type { OpenDeadLetters, WriterDelay } from '../../pipeline-status.ts';
import type { ErasureLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

let portal: TestPortal | undefined;
afterEach(() => portal?.close());

const usage = createMemoryKeyUsage();
const NONE: OpenDeadLetters = { total: 0, byEnvironment: new Map(), isComplete: true };

const erasures: Record<string, ErasureLine[]> = {};
const openErasure = (erasureId: string, ageMs: number) =>
  ({ erasureId, requestedMs: Date.now() - ageMs, visiblyErasedMs: null }) as ErasureLine;

async function open(
  pipeline: { delay?: () => Promise<WriterDelay>; deadLetters?: () => Promise<OpenDeadLetters> } = {},
) {
  const { delay = async () => ({ waiting: 0, oldestMs: null }), deadLetters = async () => NONE } = pipeline;
  const reads = createMemoryReads({ erasures });
  portal = await openPortal({ usage, reads, pipeline: { writerDelay: delay, openDeadLetters: deadLetters } });
  const project = await portal.addProject('Sky');
  const [environment] = project.environments;
  return { portal, project, environmentId: environment!.id };
}

const count = (environmentId: string, accepted: number, rejected: number) => {
  const minuteAt = Math.floor(Date.now() / 60_000) * 60_000 - 20 * 60_000;
  return usage.add({ minuteAt, keys: [], environments: [{ environmentId, accepted, rejected }] });
};

it('the home page shows the hourly message count instead of the rate if there are few messages', async () => {
  const { portal, project, environmentId } = await open();
  await count(environmentId, 3, 1);
  const { text } = await (await portal.signIn({ project, role: 'analyst' })).get('/');
  expect(text).toContain('3 in the last hour, 25.0\u00a0% rejected');
  expect(text).toContain('no events in the last hour');
  expect(text).not.toContain('events/s');
});

it('the home page shows the age of the oldest message that has not been stored', async () => {
  let oldestMs: number | null = null;
  const { portal, project } = await open({ delay: async () => ({ waiting: 12, oldestMs }) });
  const analyst = await portal.signIn({ project, role: 'analyst' });
  expect((await analyst.get('/')).text).toContain('<dd>none</dd>');
  oldestMs = Date.now() - 125_000;
  const { text } = await analyst.get('/');
  expect(text).toContain('<dd>2\u00a0min</dd>');
  expect(text).toContain('12');
});

it('the home page shows the dead letters of each project, and shows the total only to administrators', async () => {
  const byEnvironment = new Map<string, number>();
  const { portal, project, environmentId } = await open({
    deadLetters: async () => ({ total: 41, byEnvironment, isComplete: false }),
  });
  byEnvironment.set(environmentId, 7).set(`${environmentId}-2`, 13);
  const { text } = await (await portal.signIn({ project, role: 'owner' })).get('/');
  expect(text).toContain('<dd>at least 7</dd>');
  expect(text).not.toMatch(/at least (13|20|41)/);
  expect((await (await portal.signIn()).get('/')).text).toContain('<strong>at least 41</strong>');
});

it('the home page shows the oldest open erasure of each project, with a link to the erasures page', async () => {
  const { portal, project } = await open();
  const analyst = await portal.signIn({ project, role: 'analyst' });
  expect((await analyst.get('/')).text).toContain('<dt>Oldest open erasure</dt><dd>none</dd>');
  erasures[`${project.id}-production`] = [openErasure('newest', 20_000)];
  erasures[`${project.id}-development`] = [openErasure('oldest', 130_000), openErasure('newer', 121_000)];
  const { text } = await analyst.get('/');
  const path = `/projects/${project.id}/environments/development/erasures`;
  expect(text).toContain(`<dd><a href="${path}">2\u00a0min in development</a>, 2 open</dd>`);
  expect(text).not.toContain('late</span>');
});

it('the home page flags a late erasure, and shows administrators its id and a command', async () => {
  const { portal, project } = await open();
  erasures[`${project.id}-production`] = [openErasure('late-erasure', 3 * 3_600_000)];
  const { text } = await (await portal.signIn({ project, role: 'owner' })).get('/');
  expect([text.includes('late</span>'), text.includes('the operator')]).toEqual([true, true]);
  const all = (await (await portal.signIn()).get('/')).text;
  expect(all).toContain('npm run erasures -- show late-erasure');
});

it('the home page does not show erasures from projects that the account cannot access', async () => {
  const { portal, project } = await open();
  const other = await portal.addProject('Sea');
  erasures[`${other.id}-production`] = [openErasure('other-erasure', 3 * 3_600_000)];
  const { text } = await (await portal.signIn({ project, role: 'owner' })).get('/');
  expect(text).not.toMatch(/late<|other-erasure|in production/);
});

it('the home page lists projects even if erasures, Kafka and counters cannot be read', async () => {
  const fail = () => Promise.reject(new Error('connection lost'));
  const { portal, project } = await open({ delay: fail, deadLetters: fail });
  Object.assign(portal.parts.reads, { openErasures: fail });
  const { status, text } = await (await portal.signIn({ project, role: 'analyst' })).get('/');
  expect([status, text.includes('Sky'), text.split('not available').length]).toEqual([200, true, 5]);
});
