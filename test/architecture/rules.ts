import { posix } from 'node:path';
import { type Import, isNode, isTypeOnly, type Node, nameOf, nodesIn, type SourceFile } from '../house/syntax.ts';
import { exportsOf, type Tree } from '../house/tree.ts';

// Rules that Biome cannot check. Each rule returns lines that describe a problem and its fix.

// Location of a file. `folder` is the folder of its package. `adapter` is the folder below `src` that the package
// exports separately, or ''. `test` is true for code that no running service loads.
interface Location {
  readonly zone: Zone;
  readonly folder: string;
  readonly adapter: string;
  readonly test: boolean;
}

/** Allowed imports per zone. `subjects` are all packages without a separate zone; `/*` includes their adapters. */
const MAY_IMPORT = {
  main: ['subjects/*', 'guides', 'stream/*', 'http', 'runtime', 'stores', 'errors', 'contracts'],
  service: ['subjects', 'guides', 'stream', 'http', 'runtime', 'stores', 'errors', 'contracts'],
  subject: ['stores', 'errors', 'contracts', 'guides'],
  adapter: ['stores/*', 'errors', 'contracts'],
  stream: ['runtime', 'stores', 'errors'],
  http: ['runtime', 'stores', 'errors'],
  runtime: ['stores'],
  stores: [],
  errors: [],
  guides: [],
  contracts: [],
  testkit: ['infra/*', 'stores', 'contracts'],
  infra: ['infra/*', 'stream/*', 'runtime', 'stores/*', 'errors', 'contracts'],
  /** System tests and files in the root folder may import anything. */
  top: null,
} satisfies Record<string, readonly string[] | null>;
type Zone = keyof typeof MAY_IMPORT;
const PACKAGE_ZONES: readonly string[] = [
  'stream',
  'http',
  'runtime',
  'stores',
  'errors',
  'contracts',
  'guides',
  'testkit',
];

function toLocation(path: string, tree: Tree): Location {
  const [top = '', name = ''] = path.split('/');
  const folder = ['services', 'packages'].includes(top) ? `${top}/${name}` : path.includes('/') ? top : '';
  const exported = top === 'packages' ? Object.keys(exportsOf(folder, tree)).map((key) => key.slice(2)) : [];
  const adapter = exported.find((key) => key !== '' && path.startsWith(`${folder}/src/${key}/`)) ?? '';
  return { folder, adapter, test: /\.test\.ts$|(^|\/)test\//.test(path), zone: toZone(path, adapter) };
}

function toZone(path: string, adapter: string): Zone {
  const [top = '', name = ''] = path.split('/');
  if (top === 'services') return path === `services/${name}/src/main.ts` ? 'main' : 'service';
  if (top === 'packages' && PACKAGE_ZONES.includes(name)) return name as Zone;
  if (top === 'packages') return adapter === '' ? 'subject' : 'adapter';
  return top === 'infra' ? 'infra' : 'top';
}

/** Services import packages, which import contracts and errors. Only main.ts files import adapters. */
export function checkImports(files: readonly SourceFile[], tree: Tree): string[] {
  return files.flatMap(({ path, imports }) => {
    const from = toLocation(path, tree);
    return imports.flatMap((imported) => {
      const problem = findProblem(imported, { path, from, tree });
      return problem === '' ? [] : [`${path}:${imported.line} imports ${imported.target}: ${problem}`];
    });
  });
}

interface Importer {
  readonly path: string;
  readonly from: Location;
  readonly tree: Tree;
}

function findProblem({ target, typeOnly }: Import, { path, from, tree }: Importer): string {
  if (target === null)
    return from.test || from.zone === 'infra' ? '' : 'write the path as a literal, so that the rules can check it';
  if (target.startsWith('.')) return findPathProblem(from, toLocation(posix.join(posix.dirname(path), target), tree));
  const [, name = '', adapter] = /^@playline\/([^/]+)(\/.*)?$/.exec(target) ?? [];
  const allowed: readonly string[] | null = MAY_IMPORT[from.zone];
  if (name === '' || allowed === null || (from.test && ['testkit', 'infra'].includes(name))) return '';
  if (tree.has(`services/${name}/package.json`))
    return 'services must not be imported; move the shared code to a package';
  if (from.folder === `packages/${name}`) return 'import files of the same package by relative path';
  const kind = name in MAY_IMPORT ? name : 'subjects';
  if (!allowed.includes(kind) && !allowed.includes(`${kind}/*`))
    return `${from.zone} may import ${allowed.join(', ') || 'nothing'} from this repository; declare a port and inject the implementation`;
  const isExempt = from.test || (name === 'stores' && typeOnly);
  if (adapter !== undefined && !allowed.includes(`${kind}/*`) && !isExempt)
    return 'only main.ts of a service may import adapters; take the port as a parameter';
  if (name === 'runtime' && ['stream', 'http'].includes(from.zone) && !typeOnly && !from.test)
    return 'stream and http may import only types from the runtime; take the value as a parameter';
  return '';
}

function findPathProblem(from: Location, to: Location): string {
  if (to.test && !from.test) return 'product code must not import tests; move the shared code out of the test';
  if (from.zone === 'top') return '';
  if (to.folder !== from.folder) return 'export it from the package and import the package by name';
  if (from.test || to.adapter === '' || to.adapter === from.adapter) return '';
  return 'only main.ts of a service may import adapters; move the shared code out of the adapter';
}

/** A main.ts file must call adapter constructors itself. If it passed them on, other code could open adapters. */
export function checkComposition(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => /^services\/[^/]+\/src\/main\.ts$/.test(path))
    .flatMap((file) =>
      [...new Set(findPassedOn(file))].map(
        (name) => `${file.path} passes on ${name}: call it here and pass its result`,
      ),
    );
}

/** Finds constructors that a main.ts file imports from an adapter (`@playline/x/y`) and does not call directly. */
function findPassedOn({ nodes, text }: SourceFile): string[] {
  const parts = nodes
    .filter(
      ({ type, source }) => type === 'ImportDeclaration' && /^@playline\/[^/]+\/./.test(String((source as Node).value)),
    )
    .flatMap((node) => (isTypeOnly(node) ? [] : nodesIn(node.specifiers).filter((part) => !isTypeOnly(part))));
  // Parsers and constants may be passed on.
  const constructors = parts.filter(
    ({ type, imported }) => type !== 'ImportSpecifier' || /^(open|create|[A-Z])/.test(nameOf(imported)),
  );
  const names = new Set(constructors.map(({ local }) => nameOf(local)));
  const called = nodes.map(({ callee }) => callee);
  const imported = parts.flatMap((part) => [part.local, part.imported]);
  const allowed = new Set([...called, ...imported].filter(isNode).map(({ start }) => start));
  const isMember = ({ start, end }: Node) =>
    /(typeof\s+|(?<!\.)\.\s*)$/.test(text.slice(Math.max(0, start - 12), start)) ||
    /^\s*:/.test(text.slice(end, end + 12));
  return nodes
    .filter(
      (node) => node.type === 'Identifier' && names.has(nameOf(node)) && !allowed.has(node.start) && !isMember(node),
    )
    .map(nameOf);
}

/** Texts that must not be committed. The patterns are written so that they do not match this file. */
const FORBIDDEN: readonly [RegExp, string][] = [
  [
    /\b(registry\.(npmjs|yarnpkg)|(repo1?|repo)\.maven|pypi|proxy\.golang|index\.crates|deb\.debian)\.[a-z]+/,
    'configure registries on the machine',
  ],
  [/(?<![\w.}/-])\/(work|root|home|Users|tmp\/dev)\/[\w.-]+/, 'use a path relative to the repository root'],
  [/\b(TO[D]O|FIX[M]E|X[X]X)\b/, 'complete the task now, or document the decision'],
  [
    /\b(decided[ ]points?|design[ ]page|specification[ ]\d|specification[,:]?[ ](parts?|tables?|rows?|query|")|part[ ][A-H],?[ ](row\b|"))/i,
    'refer to a heading in packages/contracts/README.md instead',
  ],
  [/@ts-(ignore|nocheck|expect-error)\b/, 'write the type, or parse the unknown value'],
];

/** Committed text must not depend on a machine, and the lock file must not contain registry URLs. */
export function checkTexts(tree: Tree): string[] {
  const lock = tree.get('package-lock.json') ?? '';
  const locked = /"resolved": "https?:/.test(lock)
    ? ['package-lock.json contains registry URLs: lock with the settings in .npmrc']
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
