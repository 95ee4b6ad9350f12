import { parseAst } from 'vitest/node';
import type { FunctionPart, Import, Node, SourceFile, Sources, Tree } from './tree.ts';

const CODE = /\.(ts|mts|js|mjs)$/;
const SUITE_CALLS = new Set(['describe', 'it', 'test']);
const FUNCTION_TYPES = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/**
 * Parses every code file of a tree.
 * @throws Error with the path of a file that is not TypeScript or JavaScript
 */
export function parseSources(tree: Tree): Sources {
  const code = [...tree].filter(([path]) => CODE.test(path));
  return { tree, files: code.map(([path, text]) => parseFile(path, text)) };
}

function parseFile(path: string, text: string): SourceFile {
  let program: Node;
  try {
    program = parseAst(text, { lang: 'ts' }, path) as unknown as Node;
  } catch (error) {
    throw new Error(`${path} cannot be parsed: ${error}`);
  }
  const lineAt = createLineIndex(text);
  const visited: Visited[] = [];
  walk({ node: program, above: [] }, visited);
  return {
    path,
    text,
    nodes: visited.map(({ node }) => node),
    imports: visited.flatMap(({ node }) => toImport(node, lineAt)),
    functions: visited.flatMap((visit) => toFunction(visit, lineAt)),
  };
}

interface Visited {
  node: Node;
  /** Ancestors of the node, from its parent up to the program. */
  above: readonly Node[];
}

/** Whether a field's value is a node. */
export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** The nodes in a field, which may be a node, a list of nodes, or neither. */
export function nodesIn(value: unknown): Node[] {
  return (Array.isArray(value) ? value : [value]).filter(isNode);
}

/** The name of an identifier, a private name or a literal key; '' for anything else. */
export function nameOf(value: unknown): string {
  if (!isNode(value)) return '';
  if (value.type === 'Literal') return String(value.value);
  return typeof value.name === 'string' ? value.name : '';
}

function walk(visit: Visited, visited: Visited[]): void {
  visited.push(visit);
  const above = [visit.node, ...visit.above];
  for (const field of Object.values(visit.node)) {
    for (const node of nodesIn(field)) walk({ node, above }, visited);
  }
}

/** Lines are counted from one. */
function createLineIndex(text: string): (offset: number) => number {
  const ends = [...text.matchAll(/\n/g)].map((match) => match.index);
  return (offset) => {
    const next = ends.findIndex((end) => end >= offset);
    return (next === -1 ? ends.length : next) + 1;
  };
}

const IMPORT_TYPES = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
]);

function toImport(node: Node, lineAt: (offset: number) => number): Import[] {
  if (!IMPORT_TYPES.has(node.type)) return [];
  const source = node.source;
  // `export { x }` has no source: nothing is imported.
  if (!isNode(source)) return [];
  const target = source.type === 'Literal' && typeof source.value === 'string' ? source.value : null;
  const parts = nodesIn(node.specifiers);
  const typeOnly =
    node.type === 'TSImportType' ||
    node.importKind === 'type' ||
    node.exportKind === 'type' ||
    (parts.length > 0 && parts.every((part) => part.importKind === 'type' || part.exportKind === 'type'));
  return [{ target, typeOnly, line: lineAt(node.start) }];
}

function toFunction({ node, above }: Visited, lineAt: (offset: number) => number): FunctionPart[] {
  const [parent, grandparent] = above;
  if (!FUNCTION_TYPES.has(node.type) || parent === undefined) return [];
  const line = lineAt(node.start);
  const call = parent.type === 'CallExpression' ? calleeName(parent) : '';
  return [
    {
      node,
      line,
      name: nameOf(node.id) || nameOf(parent.id) || nameOf(parent.key) || (call === '' ? '' : `given to ${call}`),
      exported: [parent, grandparent, above[2]].some((up) => up?.type === 'ExportNamedDeclaration') && !isNested(above),
      lines: lineAt(node.end) - line + 1,
      parameters: nodesIn(node.params).length,
      callback: call !== '',
      suite: call === 'describe' || holdsTests(node),
    },
  ];
}

/**
 * Whether a function calls `it` or `test` itself: the body of `describe`, or a suite that tests of several adapters
 * share.
 */
function holdsTests(node: Node): boolean {
  const own = isNode(node.body) ? nodesIn(node.body.body) : [];
  return own.some((statement) => isNode(statement.expression) && SUITE_CALLS.has(calleeName(statement.expression)));
}

function isNested(above: readonly Node[]): boolean {
  return above.some((node) => FUNCTION_TYPES.has(node.type) || node.type === 'ClassBody');
}

/** The first name of the callee: `it` for `it(…)`, `it.each(…)(…)` and `it.for(…)(…)`. */
export function calleeName(call: Node): string {
  let callee: unknown = call.callee;
  while (isNode(callee)) {
    if (callee.type === 'Identifier') return nameOf(callee);
    callee = callee.type === 'MemberExpression' ? callee.object : callee.callee;
  }
  return '';
}
