import { posix } from 'node:path';
import { isNode, isTypeOnly, type Node, nameOf, nodesIn, resolveImport, type SourceFile } from './syntax.ts';
import type { Tree } from './tree.ts';

const PRODUCT = /^(packages|services|infra)\/.*\.ts$/;
const TEST_CODE = /\.(test|bench)\.ts$|(^|\/)test\//;

/** A name that a file imports from another file. `name` is `*` for all names or for an import without names. */
export interface ImportedName {
  readonly from: SourceFile;
  readonly name: string;
  readonly local: string;
  readonly isType: boolean;
}

export interface Codebase {
  readonly files: readonly SourceFile[];
  readonly byPath: ReadonlyMap<string, SourceFile>;
  /** Returns the names that a product file imports or re-exports from product files. */
  importedBy(file: SourceFile): readonly ImportedName[];
  /** Returns the file that declares a name, following re-exports. */
  findDeclaringFile(file: SourceFile, name: string): SourceFile;
}

export function readCodebase(sources: readonly SourceFile[], tree: Tree): Codebase {
  const files = sources.filter(({ path }) => PRODUCT.test(path) && !TEST_CODE.test(path));
  const byPath = new Map(files.map((file) => [file.path, file]));
  const cache = new Map<SourceFile, readonly ImportedName[]>();
  const importedBy = (file: SourceFile): readonly ImportedName[] => {
    const found = cache.get(file) ?? file.nodes.flatMap((node) => toImportedNames(node, { file, tree, byPath }));
    cache.set(file, found);
    return found;
  };
  return { files, byPath, importedBy, findDeclaringFile: createFindDeclaringFile(importedBy) };
}

interface ImportContext {
  file: SourceFile;
  tree: Tree;
  byPath: ReadonlyMap<string, SourceFile>;
}

function toImportedNames(node: Node, { file, tree, byPath }: ImportContext): ImportedName[] {
  if (!/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type) || !isNode(node.source)) return [];
  const from = byPath.get(resolveImport(file.path, String(node.source.value), tree));
  if (from === undefined) return [];
  const parts = nodesIn(node.specifiers);
  if (parts.length === 0) return [{ from, name: '*', local: '*', isType: isTypeOnly(node) }];
  return parts.map((part) => {
    const isType = isTypeOnly(node) || isTypeOnly(part);
    const [original, local] =
      node.type === 'ImportDeclaration' ? [part.imported, part.local] : [part.local, part.exported];
    return { from, name: nameOf(original) || '*', local: nameOf(local), isType };
  });
}

const isExport = (file: SourceFile, { from, local }: ImportedName) =>
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

function createFindDeclaringFile(importedBy: Codebase['importedBy']): Codebase['findDeclaringFile'] {
  const cache = new Map<string, SourceFile | null>();
  const find = (file: SourceFile, name: string): SourceFile | null => {
    const key = `${file.path} ${name}`;
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    cache.set(key, null);
    const findReexported = () =>
      importedBy(file)
        .filter((one) => (one.local === name || one.local === '*') && isExport(file, one))
        .map((one) => find(one.from, one.name === '*' ? name : one.name))
        .find((found) => found !== null);
    const found = declaresName(file, name) ? file : (findReexported() ?? null);
    cache.set(key, found);
    return found;
  };
  return (file, name) => find(file, name) ?? file;
}

/** Returns all files that are reachable from a file by following imported names, except types. */
export function findReachable(codebase: Codebase, start: SourceFile): SourceFile[] {
  const reachable = new Set([start]);
  for (const file of reachable)
    for (const { from, name, isType } of codebase.importedBy(file))
      if (!isType) reachable.add(name === '*' ? from : codebase.findDeclaringFile(from, name));
  return [...reachable];
}

export function findImporters(codebase: Codebase): Map<SourceFile, Set<SourceFile>> {
  const importers = new Map(codebase.files.map((file) => [file, new Set<SourceFile>()]));
  for (const file of codebase.files)
    for (const { from } of codebase.importedBy(file)) if (from !== file) importers.get(from)?.add(file);
  return importers;
}

/** Finds product files under 40 lines with one importer and without a leading comment that explains the separation. */
export function findSmallFiles(files: readonly SourceFile[], tree: Tree): string[] {
  return [...findImporters(readCodebase(files, tree))]
    .filter(([{ text }, importers]) => importers.size === 1 && !/^\/[/*]/.test(text) && text.split('\n').length <= 40)
    .map(([{ path }]) => path);
}
