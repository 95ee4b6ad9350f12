import { openClone } from '../clone.ts';
import { type Figure, toRow } from '../figure.ts';
import { withOpened } from '../opened.ts';

/**
 * Time from clone to first stored event, with this checkout's downloads. `up` returns when one event was read back from
 * ClickHouse. The second start needs no installation.
 */
export const start: Figure = {
  name: 'start',
  optional: true,
  measure: () =>
    withOpened(async (keep) => {
      const clone = keep(await openClone());
      const timeUp = async () => {
        const startMs = performance.now();
        await clone.command('up');
        return (performance.now() - startMs) / 1000;
      };
      const first = await timeUp();
      await clone.command('down');
      return [
        toRow({
          case: 'clone to first stored event, warm',
          unit: 'seconds',
          value: clone.seconds + first,
          peer: 'second start of the clone',
          peerValue: await timeUp(),
          notes: `clone ${clone.seconds.toFixed(1)} s`,
        }),
      ];
    }),
};
