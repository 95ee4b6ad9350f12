/** Lines that look like breaches but are allowed. */
export const ALLOWED_LINES: { what: string; path: string; lines: string }[] = [
  {
    what: 'the body of a describe',
    path: 'services/gateway/src/app.test.ts',
    lines: `describe('x', () => {${'\n'.repeat(60)}});`,
  },
  {
    what: 'a suite that two tests run',
    path: 'services/gateway/src/test/suite.ts',
    lines: `import { it } from 'vitest';\nexport function suite() {\nit('says three words', () => {});${'\n'.repeat(60)}}`,
  },
  {
    what: 'the four parameters that a caller gives its callback',
    path: 'services/gateway/src/app.ts',
    lines: 'call((error, request, response, next) => {});',
  },
  {
    what: 'an adapter named by main.ts',
    path: 'services/gateway/src/main.ts',
    lines: "import '@playline/stream/kafka';",
  },
  {
    what: 'a main that calls its adapters',
    path: 'services/gateway/src/main.ts',
    lines: [
      "import { openX, type X } from '@playline/people/redis';",
      'runService(async () => run({ x: openX(process.env.A), reopen: (at: X) => openX(at) }));',
    ].join('\n'),
  },
  {
    what: 'two files of which one takes a type alone',
    path: 'services/gateway/src/app.ts',
    lines: "import type { R } from './routes/messages/route.ts';",
  },
  {
    what: 'the wall clock of instants',
    path: 'services/gateway/src/app.ts',
    lines: [
      'export const row = (given: number | null, clock: { sweep(nowMs: number): void }, { wallClockMs = Date.now } = {}) => {',
      'const receivedAt = given ?? Date.now();',
      'clock.sweep(Date.now());',
      'return { receivedAt, endedAtMs: Date.now(), text: new Date().toISOString(), madeAt: wallClockMs() }; };',
    ].join('\n'),
  },
  {
    what: 'durations of tests',
    path: 'services/gateway/src/app.test.ts',
    lines: 'const now = Date.now();',
  },
  {
    what: 'lists of known length in a call, and lists of any length in literals',
    path: 'services/gateway/src/app.ts',
    lines: [
      'const LEVELS = [1, 2];',
      'export const most = (...given: number[]) => Math.max(...given, ...LEVELS, ...[3, 4]);',
      'export const both = (a: number[], b: number[]) => [...a, ...b];',
    ].join('\n'),
  },
  {
    what: 'the environment that a comment names',
    path: 'services/gateway/src/app.ts',
    lines: '// process.env is read in main.ts',
  },
];
