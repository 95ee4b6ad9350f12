import type { Tree } from './tree.ts';

/** The part of the architecture to which a file belongs: the left column of the table of arrows. */
export type Zone =
  | 'composition root'
  | 'service'
  | 'noun'
  | 'noun adapter'
  | 'stream or http'
  | 'runtime'
  | 'foundation'
  | 'testkit'
  | 'infra'
  | 'test';

/** Where a file is. `folder` is the folder of its package; '' for files at the top. */
export interface Place {
  readonly zone: Zone;
  readonly folder: string;
  /** True for tests and for files in a folder `test`, which are not part of a running service. */
  readonly test: boolean;
  /** The folder of the adapter below `src`; '' outside of an adapter. */
  readonly adapter: string;
}

const FOUNDATIONS = new Set(['packages/errors', 'packages/stores', 'packages/contracts']);
const TEST_FILE = /\.test\.ts$|(^|\/)test\//;

/** Finds the place of a path. The subpath exports of its package.json determine which folders are adapters. */
export function placeOf(path: string, tree: Tree): Place {
  const [top = '', name = ''] = path.split('/');
  const folder = top === 'services' || top === 'packages' ? `${top}/${name}` : path.includes('/') ? top : '';
  const adapter = top === 'packages' ? adapterOf(path, folder, tree) : '';
  return { folder, adapter, test: TEST_FILE.test(path), zone: zoneOf(path, folder, adapter) };
}

function zoneOf(path: string, folder: string, adapter: string): Zone {
  if (folder.startsWith('services/')) return path === `${folder}/src/main.ts` ? 'composition root' : 'service';
  if (folder === 'infra') return 'infra';
  if (folder === 'packages/testkit') return 'testkit';
  if (folder === 'packages/stream' || folder === 'packages/http') return 'stream or http';
  if (folder === 'packages/runtime') return 'runtime';
  if (FOUNDATIONS.has(folder)) return 'foundation';
  if (folder.startsWith('packages/')) return adapter === '' ? 'noun' : 'noun adapter';
  return 'test';
}

function adapterOf(path: string, folder: string, tree: Tree): string {
  const adapters = Object.keys(manifestOf(folder, tree).exports ?? {}).map((key) => key.replace(/^\.\/?/, ''));
  return adapters.find((adapter) => adapter !== '' && path.startsWith(`${folder}/src/${adapter}/`)) ?? '';
}

/** The parts of a package.json that the rules need. */
export interface Manifest {
  name?: string;
  exports?: Record<string, unknown>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/** The package.json of a folder; an empty one when there is none. */
export function manifestOf(folder: string, tree: Tree): Manifest {
  const text = tree.get(folder === '' ? 'package.json' : `${folder}/package.json`);
  return text === undefined ? {} : (JSON.parse(text) as Manifest);
}

/** Names of all dependencies of a package.json. */
export function declaredIn(manifest: Manifest): string[] {
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = manifest;
  return [dependencies, devDependencies, optionalDependencies, peerDependencies].flatMap((list) =>
    Object.keys(list ?? {}),
  );
}
