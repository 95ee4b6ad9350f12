import { isNode, nameOf, nodesIn } from './syntax.ts';
import type { Breach, Node, Rule, SourceFile } from './tree.ts';

const MAIN = /^services\/[^/]+\/src\/main\.ts$/;
const ADAPTER = /^@playline\/[^/]+\/./;
/** What makes an adapter; a parser or a constant may be given on. */
const MAKER = /^(open|create|[A-Z])/;

/**
 * A main calls the constructors of adapters itself and gives on what they made. One that is given on uncalled is an adapter
 * named outside of main in all but the import. Where a command opens only what its words need, it is given functions that
 * call them here, and that know addresses and options by themselves.
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

/** Names of a main that are imported from an adapter (`@playline/x/y`) and stand anywhere but where they are called. */
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

/** Where the name stands that is called: `open` of `open(…)`, `new Open(…)` and `open.all(…)`. */
function calleeStart({ type, callee }: Node): number[] {
  if (!['CallExpression', 'NewExpression'].includes(type) || !isNode(callee)) return [];
  return [callee.start];
}

/** In a type, the name of a member (`a.b`, but not `...b`), or that of a property which has a value of its own. */
function isNameAlone({ text }: SourceFile, { start, end }: Node): boolean {
  return (
    /(typeof\s+|(?<!\.)\.\s*)$/.test(text.slice(Math.max(0, start - 12), start)) ||
    /^\s*:/.test(text.slice(end, end + 12))
  );
}
