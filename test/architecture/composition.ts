import { isNode, nameOf, nodesIn } from './syntax.ts';
import type { Breach, Node, Rule, SourceFile } from './tree.ts';

const MAIN = /^services\/[^/]+\/src\/main\.ts$/;
const ADAPTER = /^@playline\/[^/]+\/./;
/** Names of constructors of adapters. Parsers and constants do not matter. */
const MAKER = /^(open|create|[A-Z])/;

/**
 * A main calls the constructors of adapters itself and passes the results on. Passing on a constructor would let other
 * code open adapters. If a command opens only what its arguments need, it gets functions that call the constructors
 * here and that know addresses and options.
 */
export const checkComposition: Rule = ({ files }) =>
  files
    .filter(({ path }) => MAIN.test(path))
    .flatMap((file) =>
      handedOn(file).map(
        (name): Breach => ({
          rule: 'composition',
          path: file.path,
          found: `gives ${name} on without calling it`,
          mend: `call ${name} here and pass what it opened, or a function that needs nothing of the adapter's own options`,
        }),
      ),
    );

/** Names in a main that are imported from an adapter (`@playline/x/y`) and used in any other way than by a call. */
export function handedOn(file: SourceFile): string[] {
  const imports = file.nodes.filter(
    ({ type, source, importKind }) =>
      type === 'ImportDeclaration' && importKind !== 'type' && isNode(source) && ADAPTER.test(String(source.value)),
  );
  const parts = imports
    .flatMap(({ specifiers }) => nodesIn(specifiers))
    .filter(({ importKind }) => importKind !== 'type');
  const makers = parts.filter(({ type, imported }) => type !== 'ImportSpecifier' || MAKER.test(nameOf(imported)));
  const names = new Set(makers.map(({ local }) => nameOf(local)));
  const passed = new Set([...parts.flatMap(startsOf), ...file.nodes.flatMap(calleeStart)]);
  const given = file.nodes.filter(
    (node) =>
      node.type === 'Identifier' && names.has(nameOf(node)) && !passed.has(node.start) && !isNameAlone(file, node),
  );
  return [...new Set(given.map(nameOf))];
}

const startsOf = ({ local, imported }: Node) => [local, imported].filter(isNode).map(({ start }) => start);

/** Where the called name begins: `open` in `open(…)`, `new Open(…)` and `open.all(…)`. */
function calleeStart({ type, callee }: Node): number[] {
  if (!['CallExpression', 'NewExpression'].includes(type) || !isNode(callee)) return [];
  return [callee.start];
}

/**
 * True for a name that is not the import itself: a member (`a.b`, but not `...b`), or a property with its own value.
 */
function isNameAlone({ text }: SourceFile, { start, end }: Node): boolean {
  return (
    /(typeof\s+|(?<!\.)\.\s*)$/.test(text.slice(Math.max(0, start - 12), start)) ||
    /^\s*:/.test(text.slice(end, end + 12))
  );
}
