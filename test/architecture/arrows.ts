import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import type { Breach, Import, SourceFile, Sources, Tree } from './tree.ts';
import { declaredIn, manifestOf, type Place, placeOf, type Zone } from './zones.ts';

const OURS = /^@playline\/([^/]+)(\/.*)?$/;

/** For each zone, the packages of ours that it may import. `nouns` and `adapters` refer to the noun packages. */
const ARROWS: Record<Zone, { packages: string[]; nouns: boolean; adapters: boolean }> = {
  'composition root': {
    packages: ['stream', 'http', 'runtime', 'stores', 'errors', 'contracts'],
    nouns: true,
    adapters: true,
  },
  service: { packages: ['stream', 'http', 'runtime', 'stores', 'errors', 'contracts'], nouns: true, adapters: false },
  noun: { packages: ['contracts', 'errors', 'stores'], nouns: false, adapters: false },
  // The connections of `stores`.
  'noun adapter': { packages: ['contracts', 'errors', 'stores'], nouns: false, adapters: true },
  'stream or http': { packages: ['errors', 'stores', 'runtime'], nouns: false, adapters: false },
  runtime: { packages: ['stores'], nouns: false, adapters: false },
  foundation: { packages: [], nouns: false, adapters: false },
  testkit: { packages: ['contracts', 'infra'], nouns: false, adapters: false },
  infra: { packages: ['contracts', 'errors', 'stores', 'runtime', 'stream'], nouns: false, adapters: true },
  test: { packages: [], nouns: true, adapters: true },
};

/**
 * Imports must follow the architecture: services import nouns, nouns import contracts. Only one file of a service names
 * adapters.
 */
export function checkArrows({ files, tree }: Sources): Breach[] {
  return files.flatMap((file) => {
    const place = placeOf(file.path, tree);
    return file.imports.flatMap((imported) => {
      const mend = mendOfArrow(place, imported, tree);
      if (mend === '') return [];
      const found = `line ${imported.line} imports ${imported.target}`;
      return [{ rule: 'arrows', path: file.path, found, mend }];
    });
  });
}

/** How to mend the import; '' when it is allowed. */
function mendOfArrow(place: Place, imported: Import, tree: Tree): string {
  const [, name = '', subpath = ''] = OURS.exec(imported.target ?? '') ?? [];
  // Files below `test` test the whole system from outside and may import anything.
  if (name === '' || place.zone === 'test') return '';
  if (tree.has(`services/${name}/package.json`))
    return 'no package or service imports a service: move the noun they share to packages/';
  if (name === 'testkit')
    return place.test
      ? ''
      : 'the testkit is for *.test.ts and folders called test: take what you need as a parameter, or move the file';
  if (name === 'infra') return mendOfInfra(place);
  if (place.folder === `packages/${name}`) return 'inside its own package a file imports by relative path';
  const { packages, nouns, adapters } = ARROWS[place.zone];
  const known = packages.includes(name) || (nouns && isNoun(name));
  if (!known)
    return `${place.zone} files may import of ours: ${allowed(place.zone)}; put a port where it is needed and pass the other side in`;
  if (subpath !== '' && !adapters && !imported.typeOnly && !place.test)
    return 'only src/main.ts of a service names adapters: take the port as a parameter';
  if (name === 'runtime' && place.zone === 'stream or http' && !imported.typeOnly && !place.test)
    return 'stream and http know the runtime by its types: write `import type`, take the value as a parameter';
  return '';
}

function mendOfInfra(place: Place): string {
  const may = place.zone === 'testkit' || place.zone === 'infra' || place.test;
  return may ? '' : 'infra serves deployment and tests: what a service needs of it belongs in contracts';
}

function isNoun(name: string): boolean {
  return !['stream', 'http', 'runtime', 'stores', 'errors', 'contracts', 'testkit', 'infra'].includes(name);
}

function allowed(zone: Zone): string {
  const { packages, nouns } = ARROWS[zone];
  return [...packages, ...(nouns ? ['noun packages'] : [])].join(', ') || 'nothing';
}

/** Relative imports stay in their package, and files with a noun's rules do not import its adapters. */
export function checkRelativeImports({ files, tree }: Sources): Breach[] {
  return files.flatMap((file) => {
    const from = placeOf(file.path, tree);
    return file.imports.flatMap((imported) => {
      if (imported.target === null || !imported.target.startsWith('.')) return [];
      const target = posix.join(posix.dirname(file.path), imported.target);
      const mend = mendOfRelative(from, target, tree);
      if (mend === '') return [];
      const found = `line ${imported.line} imports ${imported.target}`;
      return [{ rule: 'relative imports', path: file.path, found, mend }];
    });
  });
}

function mendOfRelative(from: Place, target: string, tree: Tree): string {
  const to = placeOf(target, tree);
  if (to.test && !from.test) return 'what tests use stays in tests: move the code out of the test file';
  if (from.folder === 'test' || from.folder === '') return '';
  if (!target.startsWith(`${from.folder}/`))
    return 'relative imports stay inside their package: export it there and import the package by name';
  if (from.test || to.adapter === '' || to.adapter === from.adapter) return '';
  return 'adapters are named by src/main.ts of a service only: move what both need to the noun, take the port as a parameter';
}

/**
 * No file refers to a file of another package by its path; it imports the package. Only processes are started by path.
 */
export function checkPaths({ files, tree }: Sources): Breach[] {
  return files.flatMap((file) => {
    const from = placeOf(file.path, tree);
    if (from.test || ['test', 'testkit'].includes(from.zone)) return [];
    const paths = file.nodes.flatMap(({ type, value }) =>
      type === 'Literal' && typeof value === 'string' && value.startsWith('../') ? [value] : [],
    );
    const targets = paths.map((path) => posix.join(posix.dirname(file.path), path));
    return targets
      .filter((target) => target.startsWith('packages/') && !target.startsWith(`${from.folder}/`))
      .map((target) => ({
        rule: 'paths',
        path: file.path,
        found: `names ${target} by its path`,
        mend: 'let that package export what is needed, and import it by name',
      }));
  });
}

/** The package that imports a vendor package must declare it. Only adapters use vendor clients of stores. */
export function checkVendors({ files, tree }: Sources): Breach[] {
  const root = declaredIn(manifestOf('', tree));
  const everywhere = [...tree.keys()]
    .filter((path) => path.endsWith('/package.json'))
    .flatMap((path) => declaredIn(manifestOf(posix.dirname(path), tree)));
  return files.flatMap((file) => {
    const place = placeOf(file.path, tree);
    const own = declaredIn(manifestOf(place.folder, tree));
    // Tests, and the kit that only they import, use the dependencies at the top of the repository.
    const declared = new Set([
      ...own,
      ...(place.test || place.zone === 'testkit' ? root : []),
      ...(place.zone === 'test' ? everywhere : []),
    ]);
    return file.imports.flatMap((imported) => vendorBreaches(file, imported, { place, declared }));
  });
}

const STORE_CLIENTS = new Set([
  'ioredis',
  '@clickhouse/client',
  'kafkajs',
  '@platformatic/kafka',
  '@kafkajs/confluent-schema-registry',
]);

function vendorBreaches(file: SourceFile, imported: Import, at: { place: Place; declared: Set<string> }): Breach[] {
  const found = `line ${imported.line} imports ${imported.target}`;
  const breach = (mend: string) => [{ rule: 'vendor packages', path: file.path, found, mend }];
  const { place, declared } = at;
  if (imported.target === null) {
    const computed = place.test || place.zone === 'infra';
    return computed ? [] : breach('write the imported path as a literal, so that the arrows can be checked');
  }
  if (imported.target.startsWith('.') || isBuiltin(imported.target)) return [];
  const vendor = packageOf(imported.target);
  const ours = OURS.test(imported.target);
  if (!declared.has(vendor) && !(ours && place.test))
    return breach(
      `declare ${vendor} in ${['', 'test'].includes(place.folder) ? '' : `${place.folder}/`}package.json, or do without it`,
    );
  const adapter =
    place.adapter !== '' ||
    place.folder === 'packages/stores' ||
    place.test ||
    ['infra', 'testkit'].includes(place.zone);
  if (STORE_CLIENTS.has(vendor) && !adapter)
    return breach('clients of stores are used in adapters only: put the call behind a port');
  return [];
}

function packageOf(target: string): string {
  const parts = target.split('/');
  return target.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '');
}

/** Only infra, tests and main.ts of a service read the environment. Everything else gets settings as parameters. */
export function checkEnvironment({ files, tree }: Sources): Breach[] {
  return files.flatMap((file) => {
    const { zone, test } = placeOf(file.path, tree);
    if (test || ['composition root', 'infra', 'testkit', 'test'].includes(zone)) return [];
    const reads = file.nodes.filter(
      (node) =>
        node.type === 'MemberExpression' && /^process\s*\??\.\s*env$/.test(file.text.slice(node.start, node.end)),
    );
    if (reads.length === 0) return [];
    const mend = 'read the environment in src/main.ts through parseConfig and pass the settings in';
    return [{ rule: 'environment', path: file.path, found: 'reads process.env', mend }];
  });
}
