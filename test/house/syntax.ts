import { posix } from 'node:path';
import { parseAst } from 'vitest/node';
import { exportsOf, type Tree } from './tree.ts';

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
  readonly nodes: readonly Node[];
}

/** An `import`, `export … from` or `import()`. `target` is null if it is not a literal. */
export interface Import {
  readonly target: string | null;
  readonly typeOnly: boolean;
  readonly line: number;
}

export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** Parses the code files of a tree. @throws Error with the path of a file that cannot be parsed */
export function parseSources(tree: Tree): SourceFile[] {
  return [...tree].filter(([path]) => /\.(ts|mts|js|mjs)$/.test(path)).map(([path, text]) => parseFile(path, text));
}

function parseFile(path: string, text: string): SourceFile {
  const nodes: Node[] = [];
  try {
    collect(parseAst(text, { lang: 'ts' }, path) as unknown as Node, nodes);
  } catch (error) {
    throw new Error(`${path} cannot be parsed: ${error}`);
  }
  return { path, text, nodes, imports: nodes.flatMap((node) => toImport(node, text)) };
}

function collect(node: Node, nodes: Node[]): void {
  nodes.push(node);
  for (const field of Object.values(node)) for (const child of nodesIn(field)) collect(child, nodes);
}

function toImport(node: Node, text: string): Import[] {
  if (!/^(Import|ExportNamed|ExportAll)Declaration$|^ImportExpression$|^TSImportType$/.test(node.type)) return [];
  const source = node.source;
  if (!isNode(source)) return [];
  const parts = nodesIn(node.specifiers);
  const target = typeof source.value === 'string' ? source.value : null;
  const typeOnly =
    node.type === 'TSImportType' || isTypeOnly(node) || (parts.length > 0 && parts.every((part) => isTypeOnly(part)));
  return [{ target, typeOnly, line: text.slice(0, node.start).split('\n').length }];
}

export function isTypeOnly({ importKind, exportKind }: Node): boolean {
  return importKind === 'type' || exportKind === 'type';
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** Returns the nodes in a field, which may be a node, a list of nodes, or another value. */
export function nodesIn(value: unknown): Node[] {
  return (Array.isArray(value) ? value : [value]).filter(isNode);
}

/** Returns the name of an identifier, a private name or a literal key, otherwise ''. */
export function nameOf(value: unknown): string {
  if (!isNode(value)) return '';
  if (value.type === 'Literal') return String(value.value);
  return typeof value.name === 'string' ? value.name : '';
}

/** Returns the path of an imported file in the repository, or '' for an external package. */
export function resolveImport(path: string, target: string, tree: Tree): string {
  if (target.startsWith('.')) return posix.join(posix.dirname(path), target);
  const [, name = '', rest = ''] = /^@playline\/([^/]+)(\/.*)?$/.exec(target) ?? [];
  const folder = [`packages/${name}`, `services/${name}`, name].find((at) => tree.has(`${at}/package.json`));
  const found = folder === undefined ? undefined : exportsOf(folder, tree)[`.${rest}`];
  return folder === undefined || found === undefined ? '' : posix.join(folder, found);
}
