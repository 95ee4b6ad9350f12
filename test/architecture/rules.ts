import { posix } from 'node:path';
import { type Import, isNode, isTypeOnly, type Node, nameOf, nodesIn, type SourceFile } from '../house/syntax.ts';
import { exportsOf, type Tree } from '../house/tree.ts';

// What Biome cannot check. Each rule returns lines with what is wrong and what to do.

// Where a file is. `folder` is the folder of its package, and `adapter` its folder below `src` that the package exports
// apart from the rest; '' when there is none. `test` is true for code that no running service loads.
interface Location {
  readonly zone: Zone;
  readonly folder: string;
  readonly adapter: string;
  readonly test: boolean;
}

/** What the files of a zone may import from this repository. `subjects` are all packages without a zone of their own; `/*` adds their adapters. */
const MAY_IMPORT = {
  main: ['subjects/*', 'stream/*', 'http', 'runtime', 'stores', 'errors', 'contracts'],
  service: ['subjects', 'stream', 'http', 'runtime', 'stores', 'errors', 'contracts'],
  subject: ['stores', 'errors', 'contracts'],
  adapter: ['stores/*', 'errors', 'contracts'],
  stream: ['runtime', 'stores', 'errors'],
  http: ['runtime', 'stores', 'errors'],
  runtime: ['stores'],
  stores: [],
  errors: [],
  contracts: [],
  testkit: ['infra/*', 'contracts'],
  infra: ['infra/*', 'stream/*', 'runtime', 'stores/*', 'errors', 'contracts'],
  /** Tests of the whole system, and files at the top, import anything. */
  top: null,
} satisfies Record<string, readonly string[] | null>;
type Zone = keyof typeof MAY_IMPORT;
const PACKAGE_ZONES: readonly string[] = ['stream', 'http', 'runtime', 'stores', 'errors', 'contracts', 'testkit'];

function locationOf(path: string, tree: Tree): Location {
  const [top = '', name = ''] = path.split('/');
  const folder = ['services', 'packages'].includes(top) ? `${top}/${name}` : path.includes('/') ? top : '';
  const exported = top === 'packages' ? Object.keys(exportsOf(folder, tree)).map((key) => key.slice(2)) : [];
  const adapter = exported.find((key) => key !== '' && path.startsWith(`${folder}/src/${key}/`)) ?? '';
  return { folder, adapter, test: /\.test\.ts$|(^|\/)test\//.test(path), zone: zoneOf(path, adapter) };
}

function zoneOf(path: string, adapter: string): Zone {
  const [top = '', name = ''] = path.split('/');
  if (top === 'services') return path === `services/${name}/src/main.ts` ? 'main' : 'service';
  if (top === 'packages' && PACKAGE_ZONES.includes(name)) return name as Zone;
  if (top === 'packages') return adapter === '' ? 'subject' : 'adapter';
  return top === 'infra' ? 'infra' : 'top';
}

/** Imports go from services to packages, and from these to contracts and errors. Only a main names adapters. */
export function checkImports(files: readonly SourceFile[], tree: Tree): string[] {
  return files.flatMap(({ path, imports }) => {
    const from = locationOf(path, tree);
    return imports.flatMap((imported) => {
      const problem = problemOf(imported, { path, from, tree });
      return problem === '' ? [] : [`${path}:${imported.line} imports ${imported.target}: ${problem}`];
    });
  });
}

interface Importer {
  readonly path: string;
  readonly from: Location;
  readonly tree: Tree;
}

function problemOf({ target, typeOnly }: Import, { path, from, tree }: Importer): string {
  if (target === null)
    return from.test || from.zone === 'infra'
      ? ''
      : 'write the path as a literal, so that its direction can be checked';
  if (target.startsWith('.')) return problemOfPath(from, locationOf(posix.join(posix.dirname(path), target), tree));
  const [, name = '', adapter] = /^@playline\/([^/]+)(\/.*)?$/.exec(target) ?? [];
  const allowed: readonly string[] | null = MAY_IMPORT[from.zone];
  if (name === '' || allowed === null || (from.test && ['testkit', 'infra'].includes(name))) return '';
  if (tree.has(`services/${name}/package.json`)) return 'no code imports a service, move what both need to packages';
  if (from.folder === `packages/${name}`) return 'a package imports its own files by relative path';
  const kind = name in MAY_IMPORT ? name : 'subjects';
  if (!allowed.includes(kind) && !allowed.includes(`${kind}/*`))
    return `${from.zone} may import ${allowed.join(', ') || 'nothing'} from this repository; declare a port and take the other side as a parameter`;
  const free = from.test || (name === 'stores' && typeOnly);
  if (adapter !== undefined && !allowed.includes(`${kind}/*`) && !free)
    return 'only main.ts of a service names adapters, take the port as a parameter';
  if (name === 'runtime' && ['stream', 'http'].includes(from.zone) && !typeOnly && !from.test)
    return 'stream and http import types of the runtime only, take the value as a parameter';
  return '';
}

function problemOfPath(from: Location, to: Location): string {
  if (to.test && !from.test) return 'running code does not import tests, move what it needs out of the test';
  if (from.zone === 'top') return '';
  if (to.folder !== from.folder) return 'export it from its package and import that package by name';
  if (from.test || to.adapter === '' || to.adapter === from.adapter) return '';
  return 'only main.ts of a service names adapters, move what both need out of the adapter';
}

/** A main calls the constructors of adapters itself: passing one on would let other code open adapters. */
export function checkComposition(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => /^services\/[^/]+\/src\/main\.ts$/.test(path))
    .flatMap((file) =>
      [...new Set(passedOn(file))].map(
        (name) => `${file.path} passes ${name} on: call it here and pass on what it returns`,
      ),
    );
}

/** Constructors that a main imports from an adapter (`@playline/x/y`) and uses in any other way than by a call. */
function passedOn({ nodes, text }: SourceFile): string[] {
  const parts = nodes
    .filter(
      ({ type, source }) => type === 'ImportDeclaration' && /^@playline\/[^/]+\/./.test(String((source as Node).value)),
    )
    .flatMap((node) => (isTypeOnly(node) ? [] : nodesIn(node.specifiers).filter((part) => !isTypeOnly(part))));
  // Parsers and constants may be passed on.
  const makers = parts.filter(
    ({ type, imported }) => type !== 'ImportSpecifier' || /^(open|create|[A-Z])/.test(nameOf(imported)),
  );
  const names = new Set(makers.map(({ local }) => nameOf(local)));
  const called = nodes.map(({ callee }) => callee);
  const imported = parts.flatMap((part) => [part.local, part.imported]);
  const fine = new Set([...called, ...imported].filter(isNode).map(({ start }) => start));
  const isMember = ({ start, end }: Node) =>
    /(typeof\s+|(?<!\.)\.\s*)$/.test(text.slice(Math.max(0, start - 12), start)) ||
    /^\s*:/.test(text.slice(end, end + 12));
  return nodes
    .filter((node) => node.type === 'Identifier' && names.has(nameOf(node)) && !fine.has(node.start) && !isMember(node))
    .map(nameOf);
}

/** Texts that are not committed, written so that this file does not contain them. */
const FORBIDDEN: readonly [RegExp, string][] = [
  [
    /\b(registry\.(npmjs|yarnpkg)|(repo1?|repo)\.maven|pypi|proxy\.golang|index\.crates|deb\.debian)\.[a-z]+/,
    'registries are a setting of the machine',
  ],
  [/(?<![\w.}/-])\/(work|root|home|Users|tmp\/dev)\/[\w.-]+/, 'write paths from the top of the repository'],
  [/\b(TO[D]O|FIX[M]E|X[X]X)\b/, 'do it now, or write the decision down'],
  [
    /\b(decided[ ]points?|design[ ]page|specification[ ]\d|specification[,:]?[ ](parts?|tables?|rows?|query|")|part[ ][A-H],?[ ](row\b|"))/i,
    'readers do not have that page, name a heading of packages/contracts/README.md',
  ],
  [/@ts-(ignore|nocheck|expect-error)\b/, 'write the type, or parse what is unknown'],
];

/** Committed text is about the project only, and the lock file installs from the registry that the machine uses. */
export function checkTexts(tree: Tree): string[] {
  const lock = tree.get('package-lock.json') ?? '';
  const locked = /"resolved": "https?:/.test(lock)
    ? ['package-lock.json names a registry: lock with the settings of .npmrc']
    : [];
  const found = [...tree]
    .filter(([path]) => !['package-lock.json', 'LICENSE'].includes(path))
    .flatMap(([path, text]) =>
      FORBIDDEN.filter(([pattern]) => pattern.test(text)).map(
        ([pattern, fix]) => `${path} contains ${pattern.exec(text)?.[0]}: ${fix}`,
      ),
    );
  return [...locked, ...found];
}
