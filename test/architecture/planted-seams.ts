/** One breach of each rule about how files depend on each other. */
export const SEAM_LINES: { because: string; path: string; lines: string; rule: string }[] = [
  {
    because: 'a main gives an adapter on without calling it',
    path: 'services/gateway/src/main.ts',
    lines: "import { openX } from '@playline/people/redis';\nrunService(() => openAll({ openX }));",
    rule: 'composition',
  },
  {
    because: 'a main of commands gives all adapters of a kind on at once',
    path: 'services/gateway/src/main.ts',
    lines: "import * as log from '@playline/stream/kafka';\nprocess.exitCode = await runCommand({ ...log });",
    rule: 'composition',
  },
  {
    because: 'infra reads a file of a package by its path',
    path: 'infra/local/index.ts',
    lines: "export const schemas = new URL('../../packages/contracts/schemas/', import.meta.url);",
    rule: 'paths',
  },
  {
    because: 'two files import each other',
    path: 'services/gateway/src/app.ts',
    lines: "import './routes/messages/route.ts';",
    rule: 'circles',
  },
];
