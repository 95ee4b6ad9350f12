/** Lines that look like breaches and are none. */
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
    what: 'the environment that a comment names',
    path: 'services/gateway/src/app.ts',
    lines: '// process.env is read in main.ts',
  },
];
