import { createEngine } from '../clickhouse.ts';
import type { Figure } from '../figure.ts';
import { fillEnvironment } from '../portal/fill.ts';
import { fillChain } from '../portal/fill-chain.ts';
import { measurePages } from '../portal/pages.ts';
import { openScene } from '../portal/scene.ts';
import { measureTap } from '../portal/tap.ts';

/** The portal: its pages over a filled environment, live messages, and the cost of users who watch them. */
export const portal: Figure = {
  name: 'portal',
  optional: true,
  async measure(bench) {
    const scene = await openScene(bench);
    try {
      const startedAt = performance.now();
      const engine = createEngine(bench);
      const chain = await fillChain(engine, bench, scene.projectId);
      const filled = { ...chain, ...(await fillEnvironment(engine, bench, scene.projectId)) };
      const seconds = Math.round((performance.now() - startedAt) / 1_000);
      console.error(
        `filled with ${Object.entries(filled)
          .map(([name, count]) => `${count} ${name}`)
          .join(', ')} in ${seconds} s`,
      );
      return [...(await measurePages(bench, scene)), ...(await measureTap(bench, scene))];
    } finally {
      await scene.close();
    }
  },
};
