import { createEngine } from '../clickhouse.ts';
import type { Figure } from '../figure.ts';
import { withOpened } from '../opened.ts';
import { fillChain, fillEnvironment, fillEvents } from '../portal/fill.ts';
import { measureLive } from '../portal/live.ts';
import { measureOverviewQueries, measurePages } from '../portal/pages.ts';
import { openScene } from '../portal/scene.ts';

export const portal: Figure = {
  name: 'portal',
  optional: true,
  measure: (bench) =>
    withOpened(async (keep) => {
      const scene = await openScene(bench, keep);
      const startMs = performance.now();
      const engine = createEngine(bench);
      await fillChain(engine, bench, scene.projectId);
      await fillEnvironment(engine, bench, scene.projectId);
      console.error(`filled in ${Math.round((performance.now() - startMs) / 1_000)} s`);
      return measurePages(bench, scene);
    }),
};

export const live: Figure = {
  name: 'live',
  optional: true,
  measure: (bench) => withOpened(async (keep) => measureLive(bench, await openScene(bench, keep))),
};

/** The counts of the overview alone, for row numbers at which the other pages would take hours to fill. */
export const overview: Figure = {
  name: 'overview',
  optional: true,
  measure: async (bench) => {
    await fillEvents(createEngine(bench), bench);
    console.error('filled');
    return measureOverviewQueries(bench);
  },
};
