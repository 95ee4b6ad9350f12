import type { Tree } from './tree.ts';

const manifest = (name: string, parts: object = {}) => JSON.stringify({ name, private: true, ...parts });

/** A small repository without breaches. Each test adds one to it. */
const SOUND: Record<string, string> = {
  'README.md': '# Sound',
  'package.json': manifest('sound', { devDependencies: { vitest: '1.0.0' } }),
  'package-lock.json': '{}',
  'packages/contracts/package.json': manifest('@playline/contracts'),
  'packages/contracts/src/index.ts': 'export const LIMIT = 1;\n',
  'packages/errors/package.json': manifest('@playline/errors'),
  'packages/errors/src/index.ts': 'export const CODE = 1;\n',
  'packages/runtime/package.json': manifest('@playline/runtime'),
  'packages/runtime/src/index.ts': 'export interface Metrics {\n  text(): string;\n}\n',
  'packages/stream/package.json': manifest('@playline/stream', {
    exports: { '.': './src/index.ts', './kafka': './src/kafka/index.ts' },
    dependencies: { '@playline/runtime': '0.1.0', kafkajs: '2.2.4' },
  }),
  'packages/stream/src/index.ts': "import type { Metrics } from '@playline/runtime';\nexport type M = Metrics;\n",
  'packages/stream/src/kafka/index.ts':
    "import { Kafka } from 'kafkajs';\nimport '../index.ts';\nexport const k = Kafka;\n",
  'packages/people/package.json': manifest('@playline/people', {
    exports: { '.': './src/index.ts', './redis': './src/redis/index.ts', './memory': './src/memory/index.ts' },
    dependencies: { '@playline/contracts': '0.1.0', ioredis: '6.0.0' },
  }),
  'packages/people/src/index.ts': "import { LIMIT } from '@playline/contracts';\nexport const A = LIMIT;\n",
  'packages/people/src/redis/index.ts':
    "import { Redis } from 'ioredis';\nimport { A } from '../index.ts';\nexport const r = [Redis, A];\n",
  'packages/people/src/memory/index.ts': 'export const m = 1;\n',
  'packages/testkit/package.json': manifest('@playline/testkit', { dependencies: { '@playline/infra': '0.1.0' } }),
  'packages/testkit/src/index.ts':
    "import { inject } from 'vitest';\nimport '@playline/infra/local';\nexport const i = inject;\n",
  'services/gateway/package.json': manifest('@playline/gateway', {
    dependencies: { '@playline/people': '0.1.0', '@playline/stream': '0.1.0', '@playline/runtime': '0.1.0' },
  }),
  'services/gateway/README.md': '# gateway',
  'services/gateway/src/main.ts':
    "import { openR } from '@playline/people/redis';\nimport { run } from './app.ts';\nrun(openR(process.env.A));\n",
  'services/gateway/src/config.ts': 'export const config = {};\n',
  'services/gateway/src/app.ts': "import type { A } from '@playline/people';\nexport const run = (a: A): A => a;\n",
  'services/gateway/src/app.test.ts':
    "import { it } from 'vitest';\nimport { testStores } from '@playline/testkit';\nimport '@playline/people/memory';\nimport './app.ts';\nit('answers after the acknowledgement', () => testStores());\n",
  'services/gateway/src/routes/messages/route.ts': "import '../../app.ts';\n",
  'services/eraser/package.json': manifest('@playline/eraser'),
  'services/eraser/README.md': '# eraser',
  'services/eraser/src/main.ts': "import './pipeline.ts';\n",
  'services/eraser/src/config.ts': 'export const config = {};\n',
  'services/eraser/src/pipeline.ts': "import './steps/erase.ts';\n",
  'services/eraser/src/steps/erase.ts': 'export const erase = 1;\n',
  'infra/package.json': manifest('@playline/infra', { dependencies: { '@playline/contracts': '0.1.0' } }),
  'infra/local/index.ts': "import '@playline/contracts';\nexport const port = process.env.PORT;\n",
  'test/journeys/erase.test.ts':
    "import { it } from 'vitest';\nimport 'ioredis';\nimport '@playline/people/redis';\nit('finds no row after the erasure', () => {});\n",
};

/** The tree without breaches, with some files added, replaced or (null) removed. */
export function createTree(planted: Record<string, string | null> = {}): Tree {
  const files = Object.entries({ ...SOUND, ...planted });
  return new Map(files.filter((file): file is [string, string] => file[1] !== null));
}

/** The tree without breaches, with lines added at the top of one of its files. */
export function createTreeWith(path: string, lines: string): Tree {
  return createTree({ [path]: `${lines}\n${SOUND[path] ?? ''}` });
}
