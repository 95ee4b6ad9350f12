import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { afterEach, describe, expect, it } from 'vitest';
import type { OpenDeadLetters, WriterDelay } from '../../pipeline-status.ts';
import type { ErasureLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

let portal: TestPortal | undefined;
afterEach(() => portal?.close());

const usage = createMemoryKeyUsage();
const NONE: OpenDeadLetters = { total: 0, byEnvironment: new Map(), isWhole: true };

const erasures: Record<string, ErasureLine[]> = {};
const waitingFor = (erasureId: string, ageMs: number) =>
  ({ erasureId, requestedMs: Date.now() - ageMs, visiblyErasedMs: null }) as ErasureLine;

async function open(told: { delay?: () => Promise<WriterDelay>; letters?: () => Promise<OpenDeadLetters> } = {}) {
  const { delay = async () => ({ waiting: 0, oldestMs: null }), letters = async () => NONE } = told;
  const reads = createMemoryReads({ erasures });
  portal = await openPortal({ usage, reads, pipeline: { writerDelay: delay, openDeadLetters: letters } });
  const project = await portal.addProject('Sky');
  const [environment] = project.environments;
  return { portal, project, environmentId: environment!.id };
}

const count = (environmentId: string, accepted: number, rejected: number) => {
  const minuteAt = Math.floor(Date.now() / 60_000) * 60_000 - 20 * 60_000;
  return usage.add({ minuteAt, keys: [], environments: [{ environmentId, accepted, rejected }] });
};

describe('the page of projects', () => {
  it('tells what is rare as a number of the hour, and not as a rate', async () => {
    const { portal, project, environmentId } = await open();
    await count(environmentId, 3, 1);
    const { text } = await (await portal.signIn({ project, role: 'analyst' })).get('/');
    expect(text).toContain('3 in the last hour, 25.0\u00a0% rejected');
    expect(text).toContain('nothing in the last hour');
    expect(text).not.toContain('events/s');
  });

  it('tells how long the oldest message waits to be stored, and that none does', async () => {
    let oldestMs: number | null = null;
    const { portal, project } = await open({ delay: async () => ({ waiting: 12, oldestMs }) });
    const analyst = await portal.signIn({ project, role: 'analyst' });
    expect((await analyst.get('/')).text).toContain('none: all is stored');
    oldestMs = Date.now() - 125_000;
    const { text } = await analyst.get('/');
    expect(text).toContain('<dd>2\u00a0min</dd>');
    expect(text).toContain('12 wait now');
  });

  it('tells each project of its own dead letters, and those of the instance to administrators alone', async () => {
    const letters = new Map<string, number>();
    const { portal, project, environmentId } = await open({
      letters: async () => ({ total: 41, byEnvironment: letters, isWhole: false }),
    });
    letters.set(environmentId, 7).set(`${environmentId}-2`, 13);
    const { text } = await (await portal.signIn({ project, role: 'owner' })).get('/');
    expect(text).toContain('<dd>at least 7</dd>');
    expect(text).not.toMatch(/at least (13|20|41)/);
    expect((await (await portal.signIn()).get('/')).text).toContain('<strong>at least 41</strong>');
  });

  it('tells of each project the erasure that has waited longest for its receipt, its age, and where to look', async () => {
    const { portal, project } = await open();
    const analyst = await portal.signIn({ project, role: 'analyst' });
    expect((await analyst.get('/')).text).toContain('<dt>Oldest open erasure</dt><dd>none</dd>');
    erasures[`${project.id}-production`] = [waitingFor('of-now', 20_000)];
    erasures[`${project.id}-development`] = [waitingFor('of-before', 130_000), waitingFor('of-then', 121_000)];
    const { text } = await analyst.get('/');
    const path = `/projects/${project.id}/environments/development/erasures`;
    expect(text).toContain(`<dd><a href="${path}">2\u00a0min in development</a>, 2 wait</dd>`);
    expect(text).not.toContain('late</span>');
  });

  it('says what to do about an erasure that is late, to administrators with its id and the command', async () => {
    const { portal, project } = await open();
    erasures[`${project.id}-production`] = [waitingFor('the-late-one', 3 * 3_600_000)];
    const { text } = await (await portal.signIn({ project, role: 'owner' })).get('/');
    expect([text.includes('late</span>'), text.includes('Tell whoever runs Playline')]).toEqual([true, true]);
    const all = (await (await portal.signIn()).get('/')).text;
    expect(all).toContain('npm run erasures -- show the-late-one');
  });

  it('tells nobody of erasures of a project that they have no role in', async () => {
    const { portal, project } = await open();
    const other = await portal.addProject('Sea');
    erasures[`${other.id}-production`] = [waitingFor('of-others', 3 * 3_600_000)];
    const { text } = await (await portal.signIn({ project, role: 'owner' })).get('/');
    expect(text).not.toMatch(/late<|of-others|in production/);
  });

  it('shows projects although nobody can tell of erasures', async () => {
    const { portal, project } = await open();
    Object.assign(portal.parts.reads, { openErasures: () => Promise.reject(new Error('away')) });
    const { status, text } = await (await portal.signIn({ project, role: 'analyst' })).get('/');
    expect([status, text.includes('<dt>Oldest open erasure</dt><dd>cannot be told now</dd>')]).toEqual([200, true]);
  });

  it('tells of projects although brokers and counters do not answer', async () => {
    const away = () => Promise.reject(new Error('away'));
    const { portal, project } = await open({ delay: away, letters: away });
    const { status, text } = await (await portal.signIn({ project, role: 'analyst' })).get('/');
    expect([status, text.includes('Sky'), text.split('cannot be told now').length]).toEqual([200, true, 4]);
  });
});
