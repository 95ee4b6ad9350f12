/** Durations measured by the wall clock, each in one file of the tree without breaches. */
export const CLOCK_LINES: { because: string; path: string; lines: string; rule: string }[] = [
  {
    because: 'an age is measured by the wall clock',
    path: 'services/gateway/src/app.ts',
    lines: 'export const ageOf = (atMs: number) => Math.max(0, Date.now() - atMs);',
    rule: 'clocks',
  },
  {
    because: 'a deadline is set by the wall clock',
    path: 'packages/people/src/redis/index.ts',
    lines: 'const dueAt = Date.now() + 5;',
    rule: 'clocks',
  },
  {
    because: 'the wall clock is compared with',
    path: 'infra/local/index.ts',
    lines: 'while (Date.now() < 5);',
    rule: 'clocks',
  },
  {
    because: 'the wall clock is kept under a name that is no instant',
    path: 'services/gateway/src/app.ts',
    lines: 'const now = Date.now();',
    rule: 'clocks',
  },
  {
    because: 'the wall clock stands in for a clock of durations',
    path: 'packages/people/src/index.ts',
    lines: 'export const measure = (now = Date.now) => now();',
    rule: 'clocks',
  },
  {
    because: 'a date is reckoned with',
    path: 'packages/stream/src/index.ts',
    lines: 'export const ms = new Date().getTime() - 5;',
    rule: 'clocks',
  },
];
