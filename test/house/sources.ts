import { posix } from 'node:path';
import { isNode, isTypeOnly, type Node, nameOf, nodesIn, resolveImport, type SourceFile } from './syntax.ts';
import type { Tree } from './tree.ts';

/** Product code: packages, services and infra, without tests and test helpers. */
const PRODUCT = /^(packages|services|infra)\/.*\.ts$/;
const OF_TESTS = /\.(test|bench)\.ts$|(^|\/)test\//;

/** One name that a file imports from another. `name` is `*` for all names, or for an import without names. */
export interface Taken {
  readonly from: SourceFile;
  readonly name: string;
  readonly local: string;
  readonly isType: boolean;
}

export interface House {
  readonly files: readonly SourceFile[];
  readonly byPath: ReadonlyMap<string, SourceFile>;
  /** The product files that a product file imports or re-exports. */
  taken(file: SourceFile): readonly Taken[];
  /** The file that declares a name, found through any number of `export … from`. */
  declaring(file: SourceFile, name: string): SourceFile;
}

/** The product code of a repository, given its parsed files. */
export function readHouse(sources: readonly SourceFile[], tree: Tree): House {
  const files = sources.filter(({ path }) => PRODUCT.test(path) && !OF_TESTS.test(path));
  const byPath = new Map(files.map((file) => [file.path, file]));
  const known = new Map<SourceFile, readonly Taken[]>();
  const taken = (file: SourceFile): readonly Taken[] => {
    const found = known.get(file) ?? file.nodes.flatMap((node) => takenBy(node, { file, tree, byPath }));
    known.set(file, found);
    return found;
  };
  return { files, byPath, taken, declaring: createDeclaring(taken) };
}

interface Around {
  file: SourceFile;
  tree: Tree;
  byPath: ReadonlyMap<string, SourceFile>;
}

function takenBy(node: Node, { file, tree, byPath }: Around): Taken[] {
  if (!/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type) || !isNode(node.source)) return [];
  const from = byPath.get(resolveImport(file.path, String(node.source.value), tree));
  if (from === undefined) return [];
  const parts = nodesIn(node.specifiers);
  if (parts.length === 0) return [{ from, name: '*', local: '*', isType: isTypeOnly(node) }];
  return parts.map((part) => {
    const isType = isTypeOnly(node) || isTypeOnly(part);
    const [given, local] =
      node.type === 'ImportDeclaration' ? [part.imported, part.local] : [part.local, part.exported];
    return { from, name: nameOf(given) || '*', local: nameOf(local), isType };
  });
}

const isExport = (file: SourceFile, { from, local }: Taken) =>
  file.nodes.some(
    (node) =>
      /^Export(Named|All)Declaration$/.test(node.type) &&
      isNode(node.source) &&
      posix.basename(String(node.source.value)) === posix.basename(from.path) &&
      (node.type === 'ExportAllDeclaration' ||
        nodesIn(node.specifiers).some((part) => nameOf(part.exported) === local)),
  );

function declaresName({ nodes }: SourceFile, name: string): boolean {
  return nodes.some(
    (node) =>
      node.type === 'ExportNamedDeclaration' &&
      isNode(node.declaration) &&
      (nameOf(node.declaration.id) === name ||
        nodesIn(node.declaration.declarations).some((one) => nameOf(one.id) === name)),
  );
}

function createDeclaring(taken: House['taken']): House['declaring'] {
  const known = new Map<string, SourceFile | null>();
  const find = (file: SourceFile, name: string): SourceFile | null => {
    const key = `${file.path} ${name}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    known.set(key, null);
    const passed = () =>
      taken(file)
        .filter((one) => (one.local === name || one.local === '*') && isExport(file, one))
        .map((one) => find(one.from, one.name === '*' ? name : one.name))
        .find((found) => found !== null);
    const found = declaresName(file, name) ? file : (passed() ?? null);
    known.set(key, found);
    return found;
  };
  return (file, name) => find(file, name) ?? file;
}

/** All files that are reachable from a file by following every imported name, except for types, to its declaration. */
export function closureOf(house: House, start: SourceFile): SourceFile[] {
  const entered = new Set([start]);
  for (const file of entered)
    for (const { from, name, isType } of house.taken(file))
      if (!isType) entered.add(name === '*' ? from : house.declaring(from, name));
  return [...entered];
}

/** The product files that import each product file. */
export function importersOf(house: House): Map<SourceFile, Set<SourceFile>> {
  const importers = new Map(house.files.map((file) => [file, new Set<SourceFile>()]));
  for (const file of house.files)
    for (const { from } of house.taken(file)) if (from !== file) importers.get(from)?.add(file);
  return importers;
}

/** Product files of less than 40 lines with one importer, without a comment at their top with the reason why they are apart. */
export function findSmallFiles(files: readonly SourceFile[], tree: Tree): string[] {
  return [...importersOf(readHouse(files, tree))]
    .filter(([{ text }, importers]) => importers.size === 1 && !/^\/[/*]/.test(text) && text.split('\n').length <= 40)
    .map(([{ path }]) => path);
}
