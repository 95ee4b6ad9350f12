import type { FloorFigure } from './run.ts';

export function startMeter() {
  let [before, startMs] = [process.cpuUsage(), performance.now()];
  return {
    restart: (): void => {
      [before, startMs] = [process.cpuUsage(), performance.now()];
    },
    send: (events: number): void => {
      const { user, system } = process.cpuUsage(before);
      const seconds = (performance.now() - startMs) / 1_000;
      // resourceUsage returns kibibytes.
      const memoryPeakMib = Math.round(process.resourceUsage().maxRSS / 1024);
      process.send?.({ events, cpuSeconds: (user + system) / 1e6, seconds, memoryPeakMib } satisfies FloorFigure);
      process.disconnect?.();
    },
  };
}
