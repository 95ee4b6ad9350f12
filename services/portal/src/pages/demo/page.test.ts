import { createIdentityKeyer } from '@playline/people';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { openPortal } from '../../test/open-portal.ts';
import { createDemoLoader } from './loader.ts';

/** @param fail makes the broker refuse records until it is called */
function createLoader(fail = () => false) {
  const sent: string[] = [];
  const loader = createDemoLoader({
    topicPrefix: '',
    keyOf: createIdentityKeyer(Buffer.alloc(32)),
    producer: {
      send: (records, done) => {
        for (const { topic } of records) sent.push(topic);
        setImmediate(done, fail() ? new Error('broker down') : null);
      },
      sendForOffset: async () => ({ partition: 0, offset: 0, loggedAtMs: null }),
    },
    registry: { idOf: async () => 7 },
    consents: { apply: async () => 'applied' },
    onFault: () => {},
  });
  return { loader, sent };
}

it('an owner loads demo data into development, sees the progress, and cannot start a second load before it is done', async () => {
  const { loader, sent } = createLoader();
  const portal = await openPortal({ demo: loader });
  const project = await portal.addProject('A game');
  const owner = await portal.signIn({ project, role: 'owner' });
  const path = `/projects/${project.id}/environments/development/demo`;
  expect((await owner.submit(path, 'load')).status).toBe(303);
  expect((await owner.get(path)).text).toContain('of 30 days');
  const id = project.environments.find(({ kind }) => kind === 'development')!.id;
  expect(() => loader.start(id)).toThrow('already being loaded');
  await until('the load is done', () => loader.stateOf(id)?.kind === 'done', 60_000);
  expect((await owner.get(path)).text).toMatch(/messages of 30 days are loaded/);
  expect(sent.length).toBeGreaterThan(50_000);
  await portal.close();
});

it('demo data cannot be loaded into a production environment', async () => {
  const { loader, sent } = createLoader();
  const portal = await openPortal({ demo: loader });
  const project = await portal.addProject('A game');
  const owner = await portal.signIn({ project, role: 'owner' });
  const path = `/projects/${project.id}/environments/production/demo`;
  expect((await owner.get(path)).text).not.toContain('<button>Load');
  expect(sent).toEqual([]);
  await portal.close();
});

it('a failed load is shown with the number of loaded days, and can be repeated', async () => {
  let isDown = true;
  const { loader } = createLoader(() => isDown);
  loader.start('demo-development');
  await until('the load has failed', () => loader.stateOf('demo-development')?.kind === 'failed');
  isDown = false;
  loader.start('demo-development');
  expect(loader.stateOf('demo-development')?.kind).toBe('running');
  await until('the load is done', () => loader.stateOf('demo-development')?.kind === 'done', 60_000);
});
