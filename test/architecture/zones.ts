import type { Tree } from './tree.ts';

/** Which part of the architecture a file belongs to: the left-hand sides of the table of arrows. */
export type Zone =
  | 'composition root'
  | 'service'
  | 'noun'
  | 'noun adapter'
  | 'stream or http'
  | 'foundation'
  | 'testkit'
  | 'infra'
  | 'test';

/** Where a file lives. `folder` is its package's folder, '' for files at the top. */
export interface Place {
  readonly zone: Zone;
  readonly folder: string;
  /** A test file, or what lies in a folder `test` for tests alone: neither is part of a running service. */
  readonly test: boolean;
  /** The folder of the adapter below `src`, '' outside of one. */
  readonly adapter: string;
}

const FOUNDATIONS = new Set(['packages/errors', 'packages/runtime', 'packages/contracts']);
const TEST_FILE = /\.test\.ts$|(^|\/)test\//;

/** Finds the place of a path; the subpath exports of its package.json say which folders are adapters. */
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
  if (FOUNDATIONS.has(folder)) return 'foundation';
  if (folder.startsWith('packages/')) return adapter === '' ? 'noun' : 'noun adapter';
  return 'test';
}

function adapterOf(path: string, folder: string, tree: Tree): string {
  const adapters = Object.keys(manifestOf(folder, tree).exports ?? {}).map((key) => key.replace(/^\.\/?/, ''));
  return adapters.find((adapter) => adapter !== '' && path.startsWith(`${folder}/src/${adapter}/`)) ?? '';
}

/** The parts of a package.json that the rules read. */
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
