import { openClone } from '../clone.ts';
import type { Figure } from '../figure.ts';
import { toRow } from '../figure.ts';

/**
 * Time from clone to first stored event, with this checkout's downloads. `up` returns when one event has been read back
 * from ClickHouse. Beside it is the second start of the same clone, which needs no installation.
 */
export const start: Figure = {
  name: 'start',
  optional: true,
  async measure() {
    const clone = await openClone();
    try {
      const first = await timed(() => clone.command('up'));
      await clone.command('down');
      const again = await timed(() => clone.command('up'));
      return [
        toRow({
          figure: 'start',
          case: 'clone to first stored event, warm',
          unit: 'seconds',
          ours: clone.seconds + first,
          beside: 'second start of the clone',
          theirs: again,
          also: `clone ${clone.seconds.toFixed(1)} s`,
        }),
      ];
    } finally {
      await clone.close();
    }
  },
};

async function timed(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return (performance.now() - startMs) / 1000;
}
