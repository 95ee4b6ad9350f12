import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkComposition, checkImports, checkTexts } from './architecture/rules.ts';
import { findSmallFiles } from './house/sources.ts';
import { parseSources } from './house/syntax.ts';
import { readTree, type Tree } from './house/tree.ts';

/** Lower this limit when there are fewer files. Never raise it. */
const SMALL_FILES_MAX = 16;

const findProblems = (tree: Tree, files = parseSources(tree)) => {
  return [...checkImports(files, tree), ...checkComposition(files), ...checkTexts(tree)];
};

const VALID = {
  'packages/contracts/package.json': '{}',
  'packages/people/package.json': '{"exports":{".":"./src/index.ts","./redis":"./src/redis/index.ts"}}',
  'packages/people/src/index.ts': "import '@playline/contracts';",
  'packages/people/src/redis/index.ts': "import '../index.ts';\nimport { Redis } from 'ioredis';",
  'packages/stream/src/index.ts': "import type { Metrics } from '@playline/runtime';",
  'services/gateway/package.json': '{}',
  'services/gateway/src/main.ts':
    "import { openX, type X } from '@playline/people/redis';\nrun({ x: openX(), again: (at: X) => openX(at) });",
  'services/gateway/src/app.ts': "import type { A } from '@playline/people';",
  'services/gateway/src/app.test.ts':
    "import '@playline/testkit';\nimport '@playline/people/redis';\nimport './app.ts';",
  'infra/local/index.ts': "import '@playline/contracts';",
  'test/journeys/erase.test.ts': "import '@playline/people/redis';",
};

/** Violations in one file of the valid tree. Forbidden texts are concatenated, so that this file contains none. */
const PLANTED: [violation: string, path: keyof typeof VALID | 'package-lock.json', text: string][] = [
  ['a service imports an adapter outside main.ts', 'services/gateway/src/app.ts', "import '@playline/people/redis';"],
  ['product code imports a test', 'services/gateway/src/app.ts', "import './app.test.ts';"],
  ['an import is computed', 'services/gateway/src/app.ts', 'void import(globalThis.name);'],
  ['a main.ts imports infra', 'services/gateway/src/main.ts', "import '@playline/infra/kafka';"],
  ['a package imports a service', 'packages/people/src/index.ts', "import '@playline/gateway';"],
  ['a subject package imports stream', 'packages/people/src/index.ts', "import '@playline/stream';"],
  ['a subject package imports its adapter', 'packages/people/src/index.ts', "import './redis/index.ts';"],
  ['stream imports contracts', 'packages/stream/src/index.ts', "export * from '@playline/contracts';"],
  ['stream imports a value of the runtime', 'packages/stream/src/index.ts', "import { a } from '@playline/runtime';"],
  ['infra imports a subject package', 'infra/local/index.ts', "import '@playline/people';"],
  ['a relative import leaves its package', 'services/gateway/src/app.test.ts', "import '../../eraser/src/app.ts';"],
  [
    'a main.ts passes on an adapter',
    'services/gateway/src/main.ts',
    "import { openX } from '@playline/people/redis';\nrun({ openX });",
  ],
  ['a file contains an unfinished task', 'infra/local/index.ts', `// TO${'DO'}: later`],
  ['a file contains a machine-specific path', 'infra/local/index.ts', `// /ro${'ot'}/play`],
  ['the lock file contains a registry URL', 'package-lock.json', '"resolved": "https://mirror.example/x.tgz"'],
];

describe('the repository', () => {
  const tree = readTree(fileURLToPath(new URL('..', import.meta.url)));
  const files = parseSources(tree);

  it('follows the rules for imports, main.ts files and texts', () => {
    expect(findProblems(tree, files)).toEqual([]);
  });

  it(`has at most ${SMALL_FILES_MAX} files under 40 lines with one importer and no explanatory comment`, () => {
    expect(findSmallFiles(files, tree).length).toBeLessThanOrEqual(SMALL_FILES_MAX);
  });
});

describe('the architecture rules', () => {
  it('accept a tree without violations', () => {
    expect(findProblems(new Map(Object.entries(VALID)))).toEqual([]);
  });

  it.each(PLANTED)('report that %s', (_, path, text) => {
    expect(findProblems(new Map(Object.entries({ ...VALID, [path]: text })))).toEqual([expect.stringContaining(path)]);
  });

  it('find small files with one importer, unless a comment explains them', () => {
    const tree = new Map(
      Object.entries({ ...VALID, 'packages/people/src/index.ts': "import './b.ts';\nimport './c.ts';" }),
    );
    tree
      .set('packages/people/src/b.ts', 'export const b = 1;')
      .set('packages/people/src/c.ts', '// Loaded by workers.');
    expect(findSmallFiles(parseSources(tree), tree)).toContain('packages/people/src/b.ts');
    expect(findSmallFiles(parseSources(tree), tree)).not.toContain('packages/people/src/c.ts');
  });
});
